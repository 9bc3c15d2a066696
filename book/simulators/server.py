"""A server with a fixed number of users, a step at a time: when each token comes, and what its wait was.

Every user sends a request, waits for its answer, and sends the next (a closed loop). A step gives one
token to each request that is being answered, and carries up to `chunk` tokens of the prompts that wait; in
turn, so that whoever is being answered waits for both, or at once, so that the longer of the two decides.

Lengths are drawn evenly between `shortest` times the nominal one and the nominal one, from a seed. Closed
forms stand below: the mean wait between tokens, and the share of waits in which a prompt is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

ROUNDS = 10  # requests a user


@dataclass(frozen=True, eq=False)
class Run:
    """What a run leaves. Seconds throughout.

    gaps: [steps] the wait that a step was, and waiting: [steps] how many requests felt it between two of
    their tokens. first: [requests] from being sent to the first token. between: [requests] mean wait between
    two tokens, which is the request's TPOT. seconds: the whole run.
    """

    gaps: np.ndarray
    waiting: np.ndarray
    first: np.ndarray
    between: np.ndarray
    seconds: float

    @property
    def mean(self) -> float:
        """The mean wait between two tokens, over all tokens."""
        return float((self.gaps * self.waiting).sum() / self.waiting.sum())

    def percentile(self, share: float) -> float:
        """The wait that `share` of all waits between two tokens don't exceed: 0.5, 0.99."""
        order = np.argsort(self.gaps, kind="stable")
        reached = np.cumsum(self.waiting[order])
        place = np.searchsorted(reached, share * reached[-1])
        return float(self.gaps[order][min(int(place), len(order) - 1)])

    def good(self, first: float, between: float) -> float:
        """Goodput: requests per second that keep both limits, on TTFT and on TPOT, seconds."""
        kept = (self.first <= first) & (self.between <= between)
        return float(kept.sum() / self.seconds)


def serve(
    users: int,
    prompt: int,
    output: int,
    *,
    step: Callable[[int], float],
    part: Callable[[int, int, int, int], float],
    chunk: int = 8192,
    at_once: bool = False,
    rounds: int = ROUNDS,
    shortest: float = 0.8,
    seed: int = 0,
) -> Run:
    """A run of `users` times `rounds` requests with `prompt` tokens in and `output` out, nominally.

    step(batch): seconds of a step without prompts. part(tokens, done, length, batch): seconds that `tokens`
    of a prompt of `length` add, `done` of whose tokens came before. at_once: prompts and answers overlap.
    Raises ValueError for sizes that can't be.
    """
    if min(users, rounds, chunk) < 1 or min(prompt, output) < 2 or not 0 < shortest <= 1:
        raise ValueError(
            f"users = {users}, rounds = {rounds}, chunk = {chunk}, prompt = {prompt}, output = {output}, "
            f"shortest = {shortest}: counts start at 1, lengths at 2, and shortest lies between 0 and 1."
        )
    random = np.random.Generator(np.random.PCG64(seed))
    count = users * rounds
    inputs, outputs = (random.integers(ceil(n * shortest), n + 1, count) for n in (prompt, output))
    sent, first, done = np.zeros((3, count))
    read, left = np.zeros((2, count), int)
    queue, fresh = list(range(users)), users
    running: list[int] = []
    gaps: list[float] = []
    waiting: list[int] = []
    clock = 0.0
    while queue or running:
        more, room, ready = 0.0, chunk, []
        while queue and room:
            one = queue[0]
            tokens = int(min(room, inputs[one] - read[one]))
            more += part(tokens, int(read[one]), int(inputs[one]), len(running))
            read[one] += tokens
            room -= tokens
            if read[one] == inputs[one]:
                ready.append(queue.pop(0))
        usual = step(len(running)) if running else 0.0
        took = max(usual, more) if at_once else usual + more
        clock += took
        if running:
            gaps.append(took)
            waiting.append(len(running))
        left[running] -= 1
        over = [one for one in running if not left[one]]
        done[over] = clock
        running = [one for one in running if left[one]]
        for one in ready:
            first[one] = clock
            left[one] = outputs[one] - 1
            running.append(one)
        for _ in over:
            if fresh < count:
                sent[fresh] = clock
                queue.append(fresh)
                fresh += 1
    return Run(np.array(gaps), np.array(waiting), first - sent, (done - first) / (outputs - 1), clock)


# ------------------------------------------------------------------------------------- closed forms


def mean_wait(step: float, prompt: float, users: float, output: float, rounds: float = ROUNDS) -> float:
    """The mean wait between two tokens: a step, and one prompt of each other user for every `output` tokens.

    Of the first of `rounds` requests half the prompts are read before anybody is answered, on average.
    """
    return step + (1 - 1 / (2 * rounds)) * (users - 1) / output * prompt


def share_of_stalls(users: float, output: float, chunks: float = 1) -> float:
    """The share of waits in which somebody's prompt is read: (users - 1) chunks / output, at most 1.

    Where it exceeds one per cent the 99th percentile of the wait is a step with a prompt in it.
    """
    return min(1.0, (users - 1) * chunks / output)

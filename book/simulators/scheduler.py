"""Requests of random length on a few slots: static and continuous batching, an iteration at a time.

An iteration gives each request in a slot one token; its length is the unit of time. Static batching
starts a batch together and frees no slot before its longest member is done. Continuous batching
(iteration-level scheduling; Yu et al., "Orca", OSDI 2022) gives a freed slot to the next request at
the next iteration.

Every run comes from a seed. Lengths are drawn with comparisons and multiplications only, so that they
are the same on every machine; times of arrival are rounded, so that a logarithm's last bit is no matter.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from book.say import say
from book.simulators.trace import Span, Trace

Lengths = Literal["exponential", "constant"]

USEFUL = "useful"  # a slot that makes a token
HELD = "held"  # a slot whose request is done, but not its batch

ARRIVAL_DIGITS = 6  # of an iteration
BATCHES = 512  # of static batching that are measured for a picture
SHOWN = 16  # requests of static batching that a picture needs at the least


@dataclass(frozen=True, eq=False)
class Requests:
    """Who comes, in order of arrival. arrivals: [n] in iterations from 0. lengths: [n] whole tokens."""

    arrivals: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True, eq=False)
class Schedule:
    """Who was served where and when, one entry a request, in iterations.

    slot: which one. start: when it got it. freed: when the slot could be given to the next.
    """

    requests: Requests
    slots: int
    slot: np.ndarray
    start: np.ndarray
    freed: np.ndarray

    @property
    def done(self) -> np.ndarray:
        """When each request has its last token."""
        return self.start + self.requests.lengths

    @property
    def wait(self) -> np.ndarray:
        """From each request's arrival to its first iteration."""
        return self.start - self.requests.arrivals

    @property
    def busy(self) -> int:
        """Iterations in which at least one slot is taken."""
        order = np.argsort(self.start, kind="stable")
        start, freed = self.start[order], np.maximum.accumulate(self.freed[order])
        since = np.concatenate(([start[0]], np.maximum(start[1:], freed[:-1])))
        return int((freed - since).sum())

    @property
    def efficiency(self) -> float:
        """Slot-iterations that make a token, of all slot-iterations of the busy iterations."""
        return float(self.requests.lengths.sum() / (self.slots * self.busy))


# ------------------------------------------------------------------------------------- who comes


def draw(
    count: int, mean: float, seed: int, lengths: Lengths = "exponential", rate: float = math.inf
) -> Requests:
    """`count` requests of `mean` tokens, `rate` of them an iteration; at infinity all are there at 0.

    Lengths are "constant", or "exponential" in whole tokens (geometric: each token is the last one with
    probability 1/mean). Arrivals are a Poisson process. Raises ValueError for sizes that can't be.
    """
    if count < 1 or not rate > 0:
        raise ValueError(f"count = {count}, rate = {rate}: give at least one request, and a positive rate.")
    if not mean >= 1 or (lengths == "constant" and mean != int(mean)):
        raise ValueError(f"mean = {mean}: a request has at least one token, and a constant length is whole.")
    if lengths == "constant":
        sizes = np.full(count, int(mean))
    else:
        # longer[j]: the probability of more than j + 1 tokens, down to what a double can't resolve
        longer = np.multiply.accumulate(np.full(math.ceil(37 * mean), 1 - 1 / mean))
        sizes = 1 + np.searchsorted(-longer, -_random(seed, 0).random(count))
    if rate == math.inf:
        return Requests(np.zeros(count), sizes)
    gaps = -np.log1p(-_random(seed, 1).random(count)) / rate
    return Requests(np.cumsum(np.round(gaps, ARRIVAL_DIGITS)), sizes)


def _random(seed: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, stream]))


# -------------------------------------------------------------------------------- who is served when


def static(requests: Requests, slots: int) -> Schedule:
    """A batch takes who waits, up to `slots` of them, and ends with its longest member."""
    _slots(slots)
    count = len(requests.lengths)
    slot, start, freed = np.zeros((3, count), int)
    first, now = 0, 0
    while first < count:
        now = max(now, math.ceil(requests.arrivals[first]))
        here = int(np.searchsorted(requests.arrivals, now, side="right"))
        last = min(first + slots, here)
        batch = slice(first, last)
        slot[batch], start[batch] = np.arange(last - first), now
        now += int(requests.lengths[batch].max())
        freed[batch] = now
        first = last
    return Schedule(requests, slots, slot, start, freed)


def continuous(requests: Requests, slots: int) -> Schedule:
    """The first in the queue takes the slot that is freed first, at the next iteration."""
    _slots(slots)
    slot, start = np.zeros((2, len(requests.lengths)), int)
    free = [(0, s) for s in range(slots)]
    for i, (arrival, length) in enumerate(zip(requests.arrivals, requests.lengths, strict=True)):
        since, slot[i] = free[0]
        start[i] = max(since, math.ceil(arrival))
        heapq.heapreplace(free, (int(start[i] + length), int(slot[i])))
    return Schedule(requests, slots, slot, start, start + requests.lengths)


def _slots(slots: int) -> None:
    if slots < 1 or slots != int(slots):
        raise ValueError(f"slots = {slots}: give a whole number of slots, at least 1.")


# ------------------------------------------------------------------------------------ what is shown


def spans(schedule: Schedule, until: float, first_lane: int = 0) -> tuple[Span, ...]:
    """What the slots do before the iteration `until`: useful work, and slots that are held for nothing."""
    found = []
    for slot, start, done, freed in zip(
        schedule.slot, schedule.start, schedule.done, schedule.freed, strict=True
    ):
        for kind, begin, end in ((USEFUL, start, done), (HELD, done, freed)):
            if begin < min(end, until):
                found.append(Span(first_lane + int(slot), float(begin), float(min(end, until)), kind))
    return tuple(found)


def side_by_side(
    batch: int, mean: float, seed: int, lengths: Lengths = "exponential", batches: int = BATCHES
) -> Trace:
    """The same queue of requests under both schedulers: static batching's slots above, continuous below.

    The run is `batches` times `batch` requests long, all there at the start. Its first two static
    batches are drawn, or more of small ones; the whole of it is measured:
    efficiency, continuous_efficiency: useful slot-iterations of all. efficiency_error: the standard
    error of the first. longest: the mean length of a static batch, in iterations.
    """
    requests = draw(batch * batches, mean, seed, lengths)
    one, other = static(requests, batch), continuous(requests, batch)
    longest = requests.lengths.reshape(batches, batch).max(1)
    until = float(longest[: max(2, SHOWN // batch)].sum())
    return Trace(
        lanes=(
            *(say("static {slot}", slot=i + 1) for i in range(batch)),
            *(say("continuous {slot}", slot=i + 1) for i in range(batch)),
        ),
        spans=(*spans(one, until), *spans(other, until, batch)),
        measured={
            "efficiency": one.efficiency,
            "efficiency_error": ratio_error(requests.lengths.reshape(batches, batch).sum(1), batch * longest),
            "continuous_efficiency": other.efficiency,
            "longest": float(longest.mean()),
        },
    )


def ratio_error(above: np.ndarray, below: np.ndarray) -> float:
    """The standard error of sum(above) / sum(below) over independent pairs (delta method)."""
    ratio = above.sum() / below.sum()
    return float(np.std(above - ratio * below, ddof=1) / below.mean() / math.sqrt(len(above)))


# ------------------------------------------------------------------------------------- closed forms


def harmonic(n: Any) -> Any:
    """1 + 1/2 + ... + 1/n, of a whole number or a SymPy symbol."""
    if hasattr(n, "free_symbols"):
        import sympy

        return sympy.harmonic(n)
    return math.fsum(1 / i for i in range(1, n + 1))


def expected_longest(batch: Any, mean: Any) -> Any:
    """The expected maximum of `batch` exponential lengths of that mean, in its unit.

    The first of B is done after mean/B, the first of the B - 1 others mean/(B - 1) later, and so on.
    """
    return mean * harmonic(batch)


def static_efficiency(batch: Any) -> Any:
    """Mean over expected maximum of `batch` exponential lengths: 1/(1 + 1/2 + ... + 1/batch)."""
    return 1 / harmonic(batch)


def queue_wait(utilisation: Any, service: Any, variation: Any = 1) -> Any:
    """The expected wait for one server with Poisson arrivals, in the unit of the mean `service` time.

    variation: the squared coefficient of variation of the service times: 1 if they are exponential, 0
    if they are constant, 1 - 1/mean if they are exponential in whole tokens. Pollaczek and Khinchine.
    A scheduler that looks at the queue between iterations adds half an iteration.
    """
    return utilisation / (1 - utilisation) * service * (1 + variation) / 2

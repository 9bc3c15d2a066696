"""The law of four numbers (chapter 09), over the terms of a step, and the law of the first token.

>>> found = fit_terms(terms, times, cells)    # terms: `step_terms.step_terms`, one a measured step
>>> found.law(terms[0])                       # seconds
>>> found.intervals, found.held_out().mean()  # 95 %, and the error on rows that were not fitted
>>> serving.tpot(d, 64, 7800, found.law, outputs=922)
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from book.cost import Number
from book.roofline import most
from book.serving.deployment import Deployment, possible
from book.serving.fitting import Fitted, fit_columns
from book.serving.kernel_times import plain
from book.serving.step_terms import CHUNK, ROUNDS, Terms, lone_prompt, one_request, step_terms


@dataclass(frozen=True)
class TermLaw:
    """time = weights W + cache KV + sequence B + overhead, and the terms that tables give, seconds.

    weights, cache: seconds per second of floor, 1 / eta_w and 1 / eta_kv. sequence: seconds for each
    sequence of the batch. overhead: seconds a step of a model with `layers` layers. None of the four
    is a cause: each is what its column carries in these rows.
    """

    weights: float = 1.0
    cache: float = 1.0
    sequence: float = 0.0
    overhead: float = 0.0
    layers: int = 0

    def parts(self, terms: Terms) -> dict[str, Number]:
        """Seconds by name; they add up to the time, unless that is the floor.

        For another model the overhead goes by its layers.
        """
        scale = terms.layers / self.layers if self.layers else 1.0
        return {
            "weights": self.weights * terms.weights,
            "cache": self.cache * terms.cache,
            "rows": terms.rows,
            "all_reduces": terms.all_reduces,
            "prompts": terms.prompts,
            "sequences": self.sequence * terms.sequences,
            "overhead": self.overhead * scale,
        }

    def __call__(self, terms: Terms) -> Number:
        """The predicted time of a step of these terms, seconds: never less than its floor."""
        return most(sum(self.parts(terms).values()), terms.floor)

    def below_its_floor(self, terms: Terms) -> bool:
        """Whether the parts add up to less than the step's floor: a term is missing."""
        return bool(sum(self.parts(terms).values()) < terms.floor)

    def step(
        self, d: Deployment, batch: float, context: float, outputs: float | None = None, **more: Any
    ) -> Number:
        """Seconds of a mean step; everything as for `step_terms.step_terms`."""
        return self(step_terms(d, batch, context, outputs, **more))


@dataclass(frozen=True)
class FirstToken:
    """TTFT = slope * (the wait behind others, and one's own prompt) + start, seconds.

    slope: seconds per second that the tables say. start: what a request costs before its prompt runs.
    The mean request of a run waits for `first_wave` prompts. A queue for memory is not in it.
    """

    slope: float = 1.0
    start: float = 0.0

    def __call__(self, work: Number) -> Number:
        """The predicted time behind `work` seconds of prompts."""
        return self.slope * work + self.start

    def first_token(
        self,
        d: Deployment,
        length: float,
        batch: float,
        *,
        engine: str = "vLLM",
        chunk: int = CHUNK,
        rounds: float = ROUNDS,
    ) -> Number:
        """Seconds from a request to its first token, on average, in a run of `batch` users.

        Raises ValueError for no user, less than one request each, and a prompt that the model doesn't take.
        """
        possible(d.model, batch=batch, length=length)
        one_request(rounds)
        return self(first_wave(batch, rounds) * lone_prompt(d, length, engine, chunk))


def first_wave(users: Number, rounds: float = ROUNDS) -> Number:
    """Prompts, one's own included, for which the mean request of a run waits: 1 + (users - 1)/(2 rounds).

    All users start together and send `rounds` requests each. Each of the first ones waits for half of the
    others' prompts, every later one for its own alone.
    """
    return 1 + (users - 1) / (2 * rounds)


@dataclass(frozen=True, eq=False)
class TermFit:
    """A `TermLaw` fitted to steps of one engine on one kind of card."""

    fitted: Fitted
    layers: int

    @property
    def law(self) -> TermLaw:
        """The law. Raises ImpossibleLaw if one of its numbers can't be; `fitted` has them all the same."""
        return TermLaw(**self.fitted.checked().factors, layers=self.layers)

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """{name: (low, high)}, 95 %, by drawing whole cells again."""
        return self.fitted.intervals

    def held_out(self) -> np.ndarray:
        """[rows] mean error of each row over random halves that were not fitted."""
        return self.fitted.held_out()


def fit_terms(terms: Sequence[Terms], times: Sequence[float], cells: Sequence[Hashable]) -> TermFit:
    """Four numbers for the steps of one model. times: seconds. cells: rows with equal entries err together.

    Raises ValueError for no rows, or for rows of models with different numbers of layers.
    """
    layers = {t.layers for t in terms}
    if len(layers) != 1:
        raise ValueError(
            f"terms: {len(layers)} numbers of layers, {sorted(layers)}; fit one model at a time."
        )
    columns = {
        "weights": [plain(t.weights) for t in terms],
        "cache": [plain(t.cache) for t in terms],
        "sequence": [plain(t.sequences) for t in terms],
        "overhead": [1.0] * len(terms),
    }
    lowest = {"weights": 1, "cache": 1, "sequence": 0, "overhead": 0}
    given = [plain(t.tables) for t in terms]
    return TermFit(fit_columns(columns, times, given=given, cells=cells, lowest=lowest), layers.pop())

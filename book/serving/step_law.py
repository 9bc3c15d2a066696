"""The law of two numbers (chapter 09): a step's time as a line over its floor, and how far to trust the line.

>>> found = fit(floors, times)
>>> found.law(floor)                          # the time it predicts for another floor
>>> found.intervals, found.held_out()         # 95 %, and the error on rows that were not fitted
>>> found.checked()                           # raises ImpossibleLaw by the name of what can't be

The law of four numbers, over the terms of a step, is `term_law`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from book.cost import Number
from book.serving.deployment import Deployment
from book.serving.fitting import Fitted, ImpossibleLaw, fit_columns
from book.serving.phases import decode_step, prefill

__all__ = ["IDEAL", "Fit", "ImpossibleLaw", "StepLaw", "fit"]


@dataclass(frozen=True)
class StepLaw:
    """time = slope * floor + overhead, in seconds: the law of a lightly loaded engine.

    slope: seconds per second of floor, 1 / efficiency: what scales with the work.
    overhead: seconds that every step pays whatever it moves. What the line can't see (other users'
    prompts, all-reduces, a cache that is read at another rate) is in one of the two.
    """

    slope: float = 1.0
    overhead: float = 0.0

    @property
    def efficiency(self) -> float:
        """The share of the floor's rate that the engine reaches once overhead is paid."""
        return 1 / self.slope

    def __call__(self, floor: Number) -> Number:
        """The predicted time of a step whose floor is `floor` seconds."""
        return self.slope * floor + self.overhead

    def step(self, d: Deployment, batch: Number, context: Number, **more: Any) -> Number:
        """Seconds of a decode step. Raises ValueError for `more`, which a line knows nothing of."""
        _knows_nothing_of(more)
        return self(decode_step(d, batch, context).time)

    def first_token(self, d: Deployment, length: Number, batch: Number, **more: Any) -> Number:
        """Seconds of `batch` prompts that are read at once and wait for nobody: the floor, of `IDEAL`.

        Raises ValueError as `step`, and of any other line: what it multiplies is the time of bytes.
        """
        _knows_nothing_of(more)
        if self != IDEAL:
            raise ValueError(
                f"law = {self}: a line over the floors of steps knows nothing of prompts; give law=, "
                "a `book.serving.term_law.FirstToken`."
            )
        return prefill(d, length, batch).time


def _knows_nothing_of(more: Mapping[str, Any]) -> None:
    if more:
        raise ValueError(
            f"{', '.join(f'{k} = {v!r}' for k, v in more.items())}: a line over the floor can't use that; "
            "give law=, one of `book.serving.term_law`."
        )


IDEAL = StepLaw()


@dataclass(frozen=True, eq=False)
class Fit:
    """A two-number law fitted to measurements, point by point."""

    fitted: Fitted

    @property
    def law(self) -> StepLaw:
        """The line, whether it can be or not: see `refusals`, `checked`."""
        return StepLaw(self.slope, self.overhead)

    @property
    def residuals(self) -> tuple[float, ...]:
        """Measured minus predicted, seconds."""
        return self.fitted.residuals

    @property
    def slope(self) -> float:
        """Seconds per second of floor."""
        return self.fitted.factors["slope"]

    @property
    def efficiency(self) -> float:
        """1 / slope."""
        return 1 / self.slope

    @property
    def overhead(self) -> float:
        """Seconds."""
        return self.fitted.factors["overhead"]

    @cached_property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """{"slope", "overhead": (low, high)}, 95 %: Student's t on what the line leaves.

        Endless with two points, which leave nothing. For a handful of points only; of many rows that
        err together, `fitted.intervals`, which draws whole cells.
        """
        x, _ = self.fitted._scaled
        weight = 1 / self.fitted.times if self.fitted.relative else 1
        left = np.asarray(self.residuals) * weight
        free = len(left) - 2
        if not free:
            return {name: (-np.inf, np.inf) for name in self.fitted.columns}
        spread = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * (left @ left) / free)
        half = _student(free) * spread
        return {
            name: (f - float(h), f + float(h))
            for (name, f), h in zip(self.fitted.factors.items(), half, strict=True)
        }

    def held_out(self) -> np.ndarray:
        """[rows] mean error of each row when it was not fitted."""
        return self.fitted.held_out()

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why this can be no law, a sentence each: an efficiency over 1, a negative overhead."""
        return self.fitted.refusals

    def checked(self) -> Fit:
        """Itself. Raises ImpossibleLaw by the name of the number that can't be."""
        self.fitted.checked()
        return self


def _student(free: int) -> float:
    """The 97.5 % point of Student's t with `free` degrees of freedom (Cornish and Fisher's expansion).

    The first ones are exact: the expansion is no good there.
    """
    exact = {1: 12.7062, 2: 4.30265, 3: 3.18245, 4: 2.77645}
    if free in exact:
        return exact[free]
    z = 1.959964
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / free + second / free**2 + third / free**3


def fit(floors: Sequence[float], times: Sequence[float], *, relative: bool = False) -> Fit:
    """The line that fits best in the least-squares sense. Both in seconds, point by point.

    relative: weigh each error as a share of its time, for a sweep over orders of magnitude. Else one
    per cent of the longest time can outweigh the whole overhead, which the shortest ones show.

    Raises ValueError with fewer than two points, fewer than two different floors, or numbers that
    are not positive. With exactly two points the line goes through both, and proves nothing. What
    an engine can't have is not refused here but by `Fit.checked`: noisy points may still be looked at.
    """
    if len(floors) != len(times):
        raise ValueError(
            f"floors = {len(floors)} numbers, times = {len(times)}: give one time for each floor."
        )
    if len(floors) < 2:
        raise ValueError(
            f"floors = {list(floors)}: a line needs two points at least; measure at another floor."
        )
    x, y = np.asarray(floors, float), np.asarray(times, float)
    for name, values in (("floors", x), ("times", y)):
        bad = values[~(np.isfinite(values) & (values > 0))]
        if bad.size:
            raise ValueError(f"{name}: {bad[0]} is not a positive number of seconds; leave that point out.")
    if np.ptp(x) == 0:
        raise ValueError(
            f"floors are all {x[0]} s: slope and overhead can't be told apart; measure at another floor."
        )
    columns = {"slope": x, "overhead": np.ones(len(x))}
    return Fit(fit_columns(columns, y, relative=relative, lowest={"slope": 1, "overhead": 0}))

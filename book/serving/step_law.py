"""The step law (chapter 09): time = floor / efficiency + overhead, two numbers for a whole engine.

>>> law = fit(floors, times).law
>>> law.efficiency, law.overhead
>>> law(floor)                        # the time it predicts for another floor
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from book.cost import Number


@dataclass(frozen=True)
class StepLaw:
    """time = slope * floor + overhead, in seconds.

    slope: seconds per second of floor, 1 / efficiency: what scales with the work.
    overhead: seconds that every step pays whatever it moves (launches, all-reduces, scheduling).
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


IDEAL = StepLaw()


@dataclass(frozen=True)
class Fit:
    """A law fitted to measurements. residuals: measured minus predicted, seconds, in their order."""

    law: StepLaw
    residuals: tuple[float, ...]

    @property
    def slope(self) -> float:
        """Seconds per second of floor."""
        return self.law.slope

    @property
    def efficiency(self) -> float:
        """1 / slope."""
        return self.law.efficiency

    @property
    def overhead(self) -> float:
        """Seconds."""
        return self.law.overhead


def fit(floors: Sequence[float], times: Sequence[float], *, relative: bool = False) -> Fit:
    """The law that fits best in the least-squares sense. Both in seconds, point by point.

    relative: weigh each error as a share of its time, for a sweep over orders of magnitude. Else one
    per cent of the longest time can outweigh the whole overhead, which the shortest ones show.

    Raises ValueError with fewer than two points, fewer than two different floors, or numbers that
    are not positive. With exactly two points the line goes through both, and proves nothing.
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
    slope, overhead = np.polyfit(x, y, 1, w=1 / y if relative else None)
    law = StepLaw(float(slope), float(overhead))
    return Fit(law, tuple(float(r) for r in y - law(x)))

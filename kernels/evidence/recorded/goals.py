"""What these kernels must reach on a card, and what a record of one reached.

A goal is a ratio of two numbers of one run, so that it means the same on every card: the time of torch's
kernel for the same work over ours, a share of the bandwidth that the card just showed, or the shortest
time of a sweep over its longest. It is judged by the points of a record and by nothing else, and by the
worst of them; of a rehearsal, which has no measured point, nothing is judged unless it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from book.say import say
from kernels.evidence import recorded

TORCH = "torch"  # how the names of its kernels begin, in `baselines`

ANY = math.inf  # of sizes: no largest

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Goal:
    """At least `bound`, at every size of `kernel` (its key) that is `within`: name -> smallest and largest.

    ratio: "torch", the time of torch's fastest kernel over ours; "bandwidth", the formula's bytes/s over
    the bandwidth of the same run; "flat", the shortest time over the longest, which takes both ends
    of the axis: `ends`, the sizes at which it begins and stops.
    """

    kernel: str
    ratio: Literal["torch", "bandwidth", "flat"]
    bound: float
    within: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ends: tuple[Sizes, ...] = ()

    def holds_at(self, sizes: Sizes) -> bool:
        """Whether it is set at these sizes; never at those of another version of the kernel."""
        return all(low <= sizes.get(name, math.nan) <= high for name, (low, high) in self.within.items())

    @property
    def where(self) -> str:
        """The sizes that it is set at in words, "m ≤ 64"; "" for all."""
        return ", ".join(_between(name, *ends) for name, ends in self.within.items())

    def ratios(self, points: Iterable[Mapping[str, Any]]) -> list[float]:
        """Its ratio at each of these points of its kernel that tells one; the goal is held to the least."""
        mine = [point for point in points if not point["alarms"] and self.holds_at(point["sizes"])]
        if self.ratio == "flat":
            at = [point["sizes"] for point in mine]
            if not all(any(end.items() <= sizes.items() for sizes in at) for end in self.ends):
                return []
            shortest = min(point["seconds"] for point in mine)
            return [shortest / point["seconds"] for point in mine]
        ratio = _of_torch if self.ratio == TORCH else _of_bandwidth
        return [found for found in map(ratio, mine) if found is not None]


def _between(name: str, low: float, high: float) -> str:
    if low == high:
        return f"{name} = {low:g}"
    return f"{low:g} ≤ " * (low > 0) + name + f" ≤ {high:g}" * (high < ANY)


GOALS = (
    Goal("stream", "torch", 0.92),
    Goal("matmul", "torch", 0.85, dict.fromkeys("mkn", (8192, 8192))),
    Goal("linear", "torch", 1.0, {"m": (0, 64)}),
    Goal("linear", "torch", 0.85, {"m": (65, ANY)}),
    # At the next smaller n, 14,336, what the goal leaves is less than a graph takes to start.
    Goal("gemv", "bandwidth", 0.90, {"n": (128_256, ANY)}),
    Goal("decode_attention", "bandwidth", 0.85, {"batch": (64, 64), "context": (4096, 4096)}),
    Goal("decode_attention.heads", "flat", 0.95, {"heads": (8, 64)}, ({"heads": 8}, {"heads": 64})),
    Goal("flash_attention", "torch", 0.7),
)


@dataclass(frozen=True)
class Outcome:
    """What became of a goal. dtype: of the sweep; ratios: one for each size that tells, () if none does."""

    goal: Goal
    dtype: str = ""
    ratios: tuple[float, ...] = ()

    @property
    def reached(self) -> float | None:
        """The least of its ratios; None where it wasn't measured."""
        return min(self.ratios, default=None)

    @property
    def met(self) -> bool | None:
        """Whether it was reached; None where it wasn't measured."""
        return None if self.reached is None else self.reached >= self.goal.bound

    @property
    def words(self) -> str:
        """Met, by how much it was missed, or that it was not measured."""
        if self.reached is None:
            return recorded.NOT_MEASURED
        if self.met:
            return say("met")
        return say("missed by {gap:.2g}", gap=self.goal.bound - self.reached)


def judge(record: recorded.Record, *, rehearsals: bool = False) -> tuple[Outcome, ...]:
    """The outcomes of each goal: for each dtype that its kernel was timed in, or one that says it wasn't.

    rehearsals: see `recorded.measured`.
    """
    return tuple(outcome for goal in GOALS for outcome in _judged(goal, record, rehearsals))


def _judged(goal: Goal, record: recorded.Record, rehearsals: bool) -> Iterator[Outcome]:
    found = [
        Outcome(goal, sweep["dtype"], tuple(ratios))
        for one in recorded.measured([record], rehearsals=rehearsals)
        for sweep in one["sweeps"]
        if sweep["experiment"] == goal.kernel and (ratios := goal.ratios(_with_shares(one, sweep)))
    ]
    yield from found or [Outcome(goal)]


def _with_shares(record: recorded.Record, sweep: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The points of a sweep, each with its share of the bandwidth of the run, whatever share it says."""
    kept = record["ceilings"].get(sweep.get("arithmetic", sweep["dtype"]))
    if kept is None:
        return [{**point, "of_bandwidth": None} for point in sweep["points"]]
    return [{**point, "of_bandwidth": point["bytes_per_s"] / kept["bandwidth"]} for point in sweep["points"]]


def _of_torch(point: Mapping[str, Any]) -> float | None:
    """The time of torch's fastest kernel over ours, whoever else was faster."""
    vendor = point.get("baseline") or {}
    every = {**vendor.get("others", {}), **({vendor["name"]: vendor["seconds"]} if vendor else {})}
    seconds = [taken for name, taken in every.items() if name.startswith(TORCH)]
    return min(seconds) / point["seconds"] if seconds else None


def _of_bandwidth(point: Mapping[str, Any]) -> float | None:
    return point.get("of_bandwidth")

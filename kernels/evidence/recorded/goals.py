"""What these kernels must reach on a card, and what a record of one reached.

A goal is a ratio of two numbers of one run, so that no datasheet enters it: the time of torch's
kernel for the same work over ours, a share of the bandwidth that the card just showed, or the shortest
time of a sweep over its longest. It is judged by the points of a record and by nothing else, and by the
worst of them; of a rehearsal, which has no measured point, nothing is judged unless it is asked for.

Runs of a kernel scatter. Where the fifths of both times leave open whether the bound was reached, the goal
is neither met nor missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from book.say import say
from kernels.evidence import recorded
from kernels.evidence.timed.clocks import Gain

TORCH = "torch"  # how the names of its kernels begin, in `baselines`

ANY = math.inf  # of sizes: no largest
EXACT = Gain(1.0, 1.0, 1.0)  # of a time to itself

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

    def ratios(self, points: Iterable[Mapping[str, Any]]) -> list[Gain]:
        """Its ratio at each point of its kernel that tells one, with the ends that the noise leaves open.

        The goal is held to the least.
        """
        mine = [point for point in points if not point["alarms"] and self.holds_at(point["sizes"])]
        if self.ratio == "flat":
            at = [point["sizes"] for point in mine]
            if not all(any(end.items() <= sizes.items() for sizes in at) for end in self.ends):
                return []
            shortest = min(mine, key=lambda point: point["seconds"])
            return [EXACT if point is shortest else _times(shortest, point) for point in mine]
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
    ratios: tuple[Gain, ...] = ()

    @property
    def reached(self) -> float | None:
        """The least of its ratios; None where it wasn't measured."""
        return min((ratio.likely for ratio in self.ratios), default=None)

    @property
    def met(self) -> bool | None:
        """Whether it was reached at every size, however the runs scatter; None where it wasn't measured."""
        return all(ratio.low >= self.goal.bound for ratio in self.ratios) if self.ratios else None

    @property
    def missed(self) -> bool | None:
        """Whether it was missed at some size, however the runs scatter; None where it wasn't measured."""
        return any(ratio.high < self.goal.bound for ratio in self.ratios) if self.ratios else None

    @property
    def words(self) -> str:
        """Met, by how much it was missed, that the noise hides it, or that it was not measured."""
        if self.reached is None:
            return recorded.NOT_MEASURED
        if self.met:
            return say("met")
        if self.missed:
            return say("missed by {gap:.2g}", gap=self.goal.bound - self.reached)
        low, high = (min(getattr(ratio, end) for ratio in self.ratios) for end in ("low", "high"))
        return say("too noisy to tell: {low:.3f} to {high:.3f}", low=low, high=high)


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


def _times(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Gain:
    """How many times as fast ours ran as theirs. low and high of each, s: a time without them is exact."""
    (short, middle, long), (quick, own, slow) = map(_ends, (theirs, ours))
    return Gain(middle / own, short / slow, long / quick)


def _ends(time: Mapping[str, Any]) -> tuple[float, float, float]:
    seconds = time["seconds"]
    return time.get("low") or seconds, seconds, time.get("high") or seconds


def _of_torch(point: Mapping[str, Any]) -> Gain | None:
    """The time of torch's fastest kernel over ours, whoever else was faster."""
    vendor = point.get("baseline") or {}
    others = {name: {"seconds": taken} for name, taken in (vendor.get("others") or {}).items()}
    every = {**others, **(vendor.get("timings") or {}), **({vendor["name"]: vendor} if vendor else {})}
    if again := vendor.get("again"):  # what has changed on the card meanwhile is noise, too
        (low, _, high), (other_low, _, other_high) = map(_ends, (point, again))
        point = {**point, "low": min(low, other_low), "high": max(high, other_high)}
    torch_s = [timing for name, timing in every.items() if name.startswith(TORCH)]
    return _times(min(torch_s, key=lambda timing: timing["seconds"]), point) if torch_s else None


def _of_bandwidth(point: Mapping[str, Any]) -> Gain | None:
    share = point.get("of_bandwidth")
    return None if share is None else _times({"seconds": share * point["seconds"]}, point)

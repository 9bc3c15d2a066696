"""A measured time beside its floor: over it, or under it for a reason that can be computed.

A reason is a bound that still holds for the row: what an L2 cache can keep from one repetition to the next,
what fewer experts would weigh. That it holds doesn't prove that it is what happened; nobody watched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from book import catalog, roofline
from book.against import operations
from book.against.operations import NotAnswerable, Operation, Row
from book.say import say

OVER = ""
# Of one multiprocessor. NVIDIA's say 64 for the A100 (whitepaper); twice that is a bound with room.
L2_BYTES_A_CLOCK = 128
FITS_IN_L2, PARTLY_IN_L2 = "fits_in_l2", "partly_in_l2"
SKEWED, GROUP_LIMITED = "skewed_routing", "group_limited_routing"
HALF_THE_CACHE, FEWER_RAN = "half_of_the_cache_read", "fewer_ran_than_asked"
UNEXPLAINED = "unexplained"

# What each reason means: the criterion, as it is computed.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        FITS_IN_L2: say(
            "All bytes of the problem fit into the card's L2 cache. The benchmark repeats one problem and "
            "empties no cache, so its memory need not have been asked. The cache's own speed is not exceeded."
        ),
        PARTLY_IN_L2: say(
            "More than an L2 cache, but what is left after taking one L2 off could have been read "
            "in the time."
        ),
        SKEWED: say(
            "The router of the benchmark is uneven by design, and so touches fewer experts than even routing "
            "would on average. The line is an expectation and no floor; the time suffices for the few that "
            "one token must touch."
        ),
        GROUP_LIMITED: say(
            "The collector lets the router choose among half of the groups of experts, so at most half of "
            "them are touched. Again the line is an expectation."
        ),
        HALF_THE_CACHE: say(
            "The benchmark's cache held keys only, used for values as well: half of the bytes. Its authors "
            "have mended that since."
        ),
        FEWER_RAN: say(
            "So many users were asked for, and their cache doesn't fit beside the weights. With as many as "
            "fit, the time lies over the floor."
        ),
        UNEXPLAINED: say("None of these."),
    }
)


@dataclass(frozen=True)
class Verdict:
    """One row judged. floor: seconds; expected: what it takes on average, None where that is the floor.

    ratio: floor over measured, so 1 is perfect and above 1 is under the floor. limit: which wall the floor
    is. reason: OVER, or why it can lie under it.
    """

    row: Row
    floor: float
    seconds: float
    bytes: float
    limit: str
    reason: str = OVER
    expected: float | None = None

    @property
    def ratio(self) -> float:
        """Floor over measured: the share of the time that the floor explains."""
        return self.floor / self.seconds

    @property
    def below_expected(self) -> bool:
        """Whether it is faster than what is expected on average, which no bound forbids."""
        return self.expected is not None and self.seconds < self.expected


def judge(op: Operation, row: Row) -> Verdict:
    """Raises NotAnswerable for a row that can't be; catalog.UnknownName for a card that isn't known."""
    card = catalog.accelerator(str(row["accelerator"]))
    seconds = row["seconds"]
    if isinstance(seconds, str) or not seconds > 0:
        raise NotAnswerable(f"seconds = {seconds!r}: must be a time above zero.")
    w = operations.work(op, card, row)
    memory, compute = w.bytes / card.bandwidth, w.flops / w.peak
    floor = float(roofline.time(w.flops, w.bytes, w.peak, card.bandwidth))
    expected = None if w.expected_bytes is None else max(compute, w.expected_bytes / card.bandwidth)
    reason = OVER if seconds >= floor else _reason(w, memory, compute, seconds, card)
    limit = "memory" if memory >= compute else "compute"
    return Verdict(row, floor, seconds, w.bytes, limit, reason, expected)


def _reason(
    w: operations.Work, memory: float, compute: float, seconds: float, card: catalog.Accelerator
) -> str:
    if seconds < compute or not card.l2_bytes:
        return UNEXPLAINED
    if w.bytes <= card.l2_bytes:
        return FITS_IN_L2 if seconds >= w.bytes / _l2_bandwidth(card) else UNEXPLAINED
    return PARTLY_IN_L2 if (w.bytes - card.l2_bytes) / card.bandwidth <= seconds else UNEXPLAINED


def _l2_bandwidth(card: catalog.Accelerator) -> float:
    """Bytes/s that no L2 cache here exceeds, by its multiprocessors and clock; inf if unknown."""
    return card.sm_count * L2_BYTES_A_CLOCK * card.clock if card.clock else float("inf")


def judged(op: Operation | str, rows: Iterable[Row]) -> tuple[Verdict, ...]:
    """All of them, in their order. Raises as `judge`."""
    kind = operations.operation(op) if isinstance(op, str) else op
    return tuple(judge(kind, row) for row in rows)


def counts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """{"rows": all, "under_floor": those under it, reason: how many of them}, only reasons that occur."""
    found: dict[str, int] = {"rows": 0, "under_floor": 0}
    for v in verdicts:
        found["rows"] += 1
        if v.reason != OVER:
            found["under_floor"] += 1
            found[v.reason] = found.get(v.reason, 0) + 1
    return found


def as_row(verdict: Verdict) -> dict[str, Any]:
    """The row with what was found beside it, for a file."""
    return {
        **verdict.row,
        "floor_s": verdict.floor,
        "floor_over_measured": verdict.ratio,
        "limit": verdict.limit,
        "reason": verdict.reason,
    }

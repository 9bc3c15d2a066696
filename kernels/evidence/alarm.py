"""The impossible-result alarm: a measurement that beats the machine measured something else.

Nothing runs faster than max(flops / peak, bytes / bandwidth). When a number says otherwise, the
number is wrong, or it is the number of another experiment. Each alarm names the usual causes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from book import catalog
from book.say import say
from kernels.contract.errors import ImpossibleResult

TOLERANCE = 0.03  # two timings of the same work on a quiet GPU differ by this much

CAUSES = {
    "l2": say("the data sat in L2: flush the cache before every run, or make the tensors larger"),
    "sparse": say("the peak is the sparse one: a datasheet's headline is often twice the dense rate"),
    "card": say("it is another card: SXM, PCIe and NVL versions of one name differ by up to a factor of two"),
    "batch": say("concurrency is not batch: requests in flight are more than sequences in one step"),
    "experts": say("routing is uneven, or all experts were charged: only the chosen ones are read"),
    "clock": say("the clock stopped before the work did: synchronise, or time with events"),
    "warm": say("the ceiling was measured on a slower clock than the kernel: measure both in the same run"),
    "boost": say("the clock ran above the datasheet's boost clock, as GeForce cards may"),
    "throttled": say("the slower one ran at a lower clock, for heat or power: measure both again, or fix it"),
    "work": say("less was done than was charged: check the result, and poison the output first"),
}


@dataclass(frozen=True)
class Alarm:
    """One impossible figure. what: the figure's name; value and limit in the same SI unit."""

    what: str
    value: float
    limit: float
    limit_name: str
    unit: str
    causes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The alarm in words, with the usual causes."""
        share = 100 * self.value / self.limit
        figures = f"{_number(self.value)} against {_number(self.limit)} {self.unit}".strip()
        return say(
            "Impossible result: {what} is {share:.0f} % of {limit} ({figures}). Usual causes: {causes}.",
            what=self.what,
            share=share,
            limit=self.limit_name,
            figures=figures,
            causes="; ".join(CAUSES[name] for name in self.causes),
        )


def inspect(
    *,
    bytes_per_s: float | None = None,
    flops_per_s: float | None = None,
    bandwidth: float | None = None,
    peak: float | None = None,
    measured_bandwidth: float | None = None,
    measured_peak: float | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Alarm, ...]:
    """Every way in which these rates are impossible, the worst cause first; () if they are not.

    bytes_per_s, flops_per_s: what was achieved, compulsory bytes and useful FLOPs over seconds.
    bandwidth, peak: the card's datasheet, dense. measured_bandwidth, measured_peak: the ceilings
    of the same run. tolerance: relative.
    """
    memory = (say("the bandwidth"), bytes_per_s, "bytes/s")
    arithmetic = (say("the arithmetic rate"), flops_per_s, "FLOP/s")
    sheet, here = say("the card's dense datasheet"), say("the ceiling measured in this run")
    checks = (
        (*memory, bandwidth, sheet, ("l2", "card", "experts", "work", "clock")),
        (*memory, measured_bandwidth, here, ("l2", "warm", "work")),
        (*arithmetic, peak, sheet, ("card", "boost", "batch", "work", "clock")),
        (*arithmetic, measured_peak, here, ("warm", "work", "clock")),
    )
    return tuple(
        Alarm(what, value, limit, name, unit, causes)
        for what, value, unit, limit, name, causes in checks
        if value and limit and value > limit * (1 + tolerance)
    )


def against_floor(seconds: float, floor: float, tolerance: float = TOLERANCE) -> tuple[Alarm, ...]:
    """An alarm if `seconds` is less than the floor max(flops / F, bytes / beta), in seconds.

    For whole-model numbers, where the bytes are a claim: batch, experts and cache are in the floor.
    """
    if seconds * (1 + tolerance) >= floor:
        return ()
    causes = ("batch", "experts", "sparse", "card", "l2")
    return (Alarm(say("the speed"), 1 / seconds, 1 / floor, say("the floor's"), say("per second"), causes),)


def dtype_ratio(
    rates: Mapping[str, float],
    card: catalog.Accelerator | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Alarm, ...]:
    """An alarm for each pair of dtypes in which the narrower gains more than it can.

    rates: dtype -> rate of the same work in it, in any one unit (1/s, token/s, FLOP/s). Fewer bytes
    and a higher dense peak are all that either side of the ridge has to give: for FP8 over BF16 two
    is the limit. The peaks are `card`'s (B300's fp4 is 3.1 times its fp8); where the card or its
    rate isn't known, as many times more as the bytes are fewer. Pairs with fp32 need a card: its
    peak is another unit's. Raises catalog.UnknownName for a name that is no dtype.
    """
    return tuple(
        Alarm(
            say("{narrow} over {wide}", narrow=narrow.upper(), wide=wide.upper()),
            rates[narrow] / rates[wide],
            limit,
            say("the ratio {limit:.3g} that fewer bytes and a higher peak allow", limit=limit),
            "",
            ("sparse", "l2", "card", "throttled", "work"),
        )
        for narrow, wide, limit in _pairs(rates, card)
        if rates[narrow] / rates[wide] > limit * (1 + tolerance)
    )


def _pairs(rates: Mapping[str, float], card: catalog.Accelerator | None) -> list[tuple[str, str, float]]:
    """(narrow, wide, the most that narrow may gain) for each pair that can be told apart."""
    found = []
    for wide, narrow in combinations(sorted(rates, key=catalog.effective_bits, reverse=True), 2):
        limit = catalog.effective_bits(wide) / catalog.effective_bits(narrow)
        if limit == 1:
            continue
        peaks = [card.peaks.get(catalog.dtype(name).rate) if card else None for name in (wide, narrow)]
        if all(peaks):
            limit = max(limit, peaks[1] / peaks[0])
        elif wide == "fp32":
            continue
        found.append((narrow, wide, limit))
    return found


def raise_if(alarms: tuple[Alarm, ...]) -> None:
    """Raise ImpossibleResult with the sentences, if there are any."""
    if alarms:
        raise ImpossibleResult("\n".join(alarm.sentence for alarm in alarms))


def _number(value: float) -> str:
    return f"{value:.4g}"

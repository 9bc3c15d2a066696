"""The impossible-result alarm: a measurement that beats the machine measured something else.

Nothing runs faster than max(flops / peak, bytes / bandwidth). When a number says otherwise, the
number is wrong, or it is the number of another experiment. Each alarm names the usual causes.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.contract.errors import ImpossibleResult

TOLERANCE = 0.03  # two timings of the same work on a quiet GPU differ by this much

CAUSES = {
    "l2": "the data sat in L2: flush the cache before every run, or make the tensors larger",
    "sparse": "the peak is the sparse one: a datasheet's headline is often twice the dense rate",
    "card": "it is another card: SXM, PCIe and NVL versions of one name differ by up to a factor of two",
    "batch": "concurrency is not batch: requests in flight are more than sequences in one step",
    "experts": "all experts were charged: a mixture of experts reads only those that the tokens chose",
    "clock": "the clock stopped before the work did: synchronise, or time with events",
    "warm": "the ceiling was measured on a slower clock than the kernel: measure both in the same run",
    "boost": "the clock ran above the datasheet's boost clock, as GeForce cards may",
    "work": "less was done than was charged: check the result, and poison the output first",
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
        causes = "; ".join(CAUSES[name] for name in self.causes)
        return (
            f"Impossible result: {self.what} is {share:.0f} % of {self.limit_name} ({figures}). "
            f"Usual causes: {causes}."
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
    memory = ("the bandwidth", bytes_per_s, "bytes/s")
    arithmetic = ("the arithmetic rate", flops_per_s, "FLOP/s")
    sheet, here = "the card's dense datasheet", "the ceiling measured in this run"
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
    return (Alarm("the speed", 1 / seconds, 1 / floor, "the floor's", "per second", causes),)


def dtype_ratio(fp8: float, bf16: float, tolerance: float = TOLERANCE) -> tuple[Alarm, ...]:
    """An alarm if FP8 is more than twice as fast as BF16 (rates of any one unit).

    Half the bytes and twice the dense peak: two is all that either side of the ridge can give.
    """
    if fp8 / bf16 <= 2 * (1 + tolerance):
        return ()
    causes = ("sparse", "l2", "card", "work")
    return (Alarm("FP8 over BF16", fp8 / bf16, 2.0, "the ratio 2 that halved bytes allow", "", causes),)


def raise_if(alarms: tuple[Alarm, ...]) -> None:
    """Raise ImpossibleResult with the sentences, if there are any."""
    if alarms:
        raise ImpossibleResult("\n".join(alarm.sentence for alarm in alarms))


def _number(value: float) -> str:
    return f"{value:.4g}"

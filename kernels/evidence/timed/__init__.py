"""The rung "timed": the kernel on the GPU that is here, against ceilings of the same run.

Correctness comes first, on random data and with every fresh tensor poisoned with NaN, so that an
element that was never written can't pass. Then seconds with the cache flushed, and what they are
worth: bytes/s and FLOP/s as shares of the bandwidth and the arithmetic that this card just showed,
and of its datasheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from book import roofline
from book.catalog import Accelerator, UnsupportedDtype
from book.say import say
from kernels.contract.accuracy import relative_error
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS
from kernels.evidence import alarm
from kernels.evidence.poison import poisoned
from kernels.evidence.sweeps import described, sweep
from kernels.evidence.timed.ceilings import Ceilings, ceilings, room
from kernels.evidence.timed.clocks import Clock
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.machine import Device, gpu_here

MEASURED_TOLERANCE = 0.05  # kernels may beat a measured ceiling by this much: it is a kernel's too


@dataclass(frozen=True)
class Timed:
    """One size, timed. SI units; shares are fractions of one.

    seconds (median), low, high (20th and 80th percentile), runs: see Timing. bytes_per_s: the
    formula's compulsory bytes over seconds; flops_per_s: its useful FLOPs over seconds.
    of_roof: flops_per_s over what the measured ceilings allow at this intensity (for a kernel with
    no FLOPs, bytes/s over the measured bandwidth). of_datasheet: seconds of the datasheet's floor
    over seconds, or None for a card that the catalog lacks. dram_bytes: what the hardware counted.
    way, launch_seconds, empty_seconds: see Timing.
    """

    sizes: Mapping[str, int]
    dtype: str
    seconds: float
    low: float
    high: float
    runs: int
    intensity: float
    bytes_per_s: float
    flops_per_s: float
    of_bandwidth: float
    of_peak: float
    of_roof: float
    of_datasheet: float | None
    relative_error: float
    dram_bytes: float | None = None
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)
    way: str = ""
    launch_seconds: float | None = None
    empty_seconds: float | None = None

    def as_record(self) -> dict[str, Any]:
        """The point as a record keeps it."""
        return {**asdict(self), "alarms": list(self.alarms), "notes": list(self.notes)}


# ------------------------------------------------------------------------------- correctness


def check(experiment: Experiment, inputs: Mapping[str, Any], dtype: str) -> float:
    """||out - ref|| / ||ref|| of one poisoned run against float64; raises PhysicsDisagrees if wrong."""
    import torch

    expected = experiment.expected(inputs)
    with poisoned():
        results = experiment.results(inputs)
    if not all(torch.isfinite(got.double()).all() for got in results):
        raise PhysicsDisagrees(
            f"{experiment.name}: the result holds NaN or infinity: some elements were never written, "
            "or overflowed."
        )
    error = relative_error(results, expected)
    allowed = experiment.tolerance(dtype)
    if error > allowed:
        raise PhysicsDisagrees(
            f"{experiment.name}: relative error {error:.2e} in {dtype}, allowed {allowed:.0e}: the kernel is "
            "wrong on this device; its time means nothing."
        )
    return error


# ----------------------------------------------------------------------------- measurements


def measure(
    experiment: Experiment,
    device: Device,
    dtype: str,
    sizes: Mapping[str, int],
    clock: Clock,
    tops: Ceilings,
    budget: float = 0.3,
) -> Timed:
    """Check, time and judge one size of `experiment`.

    clock: a GraphClock on a GPU (see gpu_clock). tops: the ceilings of this run. budget: seconds of timing.
    Raises PhysicsDisagrees if the result is wrong. Impossible figures are flagged in `alarms`.
    """
    sizes, note = shrink(experiment, sizes, dtype, room(device))
    inputs = experiment.inputs(**sizes, dtype=dtype, device=device.torch_device, seed=0)
    error = check(experiment, inputs, dtype)
    timing = clock.time(lambda: experiment.run(**inputs), budget)
    cost = experiment.formula(dtype, **sizes)
    bytes_per_s, flops_per_s = cost.bytes / timing.seconds, cost.flops / timing.seconds
    card = device.card()
    peak = peak_of(experiment, card, dtype) if card else None
    floor = roofline.time(cost.flops, cost.bytes, peak, card.bandwidth) if peak else None
    allowed = roofline.time(cost.flops, cost.bytes, tops.peak, tops.bandwidth)
    facts = {"bytes_per_s": bytes_per_s, "flops_per_s": flops_per_s}
    alarms = (
        *alarm.inspect(**facts, bandwidth=card.bandwidth if card else None, peak=peak),
        *alarm.inspect(
            **facts,
            measured_bandwidth=tops.bandwidth,
            measured_peak=tops.peak if tops.peak_measured else None,
            tolerance=MEASURED_TOLERANCE,
        ),
    )
    return Timed(
        sizes=dict(sizes),
        dtype=dtype,
        seconds=timing.seconds,
        low=timing.low,
        high=timing.high,
        runs=timing.runs,
        intensity=cost.intensity,
        bytes_per_s=bytes_per_s,
        flops_per_s=flops_per_s,
        of_bandwidth=bytes_per_s / tops.bandwidth,
        of_peak=flops_per_s / tops.peak,
        of_roof=allowed / timing.seconds,
        of_datasheet=floor / timing.seconds if floor else None,
        relative_error=error,
        alarms=tuple(a.sentence for a in alarms),
        notes=(*([note] if note else []), *timing.notes),
        way=timing.way,
        launch_seconds=timing.launch_seconds,
        empty_seconds=timing.empty_seconds,
    )


def shrink(
    experiment: Experiment, sizes: Mapping[str, int], dtype: str, available: int
) -> tuple[dict[str, int], str]:
    """Sizes that fit in `available` bytes with their float64 reference, and a sentence if they shrank.

    The largest size other than the sweep's axis is halved until the tensors fit. Raises
    Unsupported if they never do.
    """
    wanted, sizes = dict(sizes), dict(sizes)

    def need() -> float:
        moved = experiment.formula(dtype, **sizes).bytes
        # the tensors, and float64 copies with a temporary
        return moved * (1 + 2 * 8 / min(experiment.itemsizes(dtype).values()))

    while need() > available:
        others = [name for name in sizes if name != experiment.axis] or list(sizes)
        name = max(others, key=sizes.get)
        if sizes[name] <= 256:
            raise Unsupported(
                f"{experiment.name} at {described(wanted)} needs {need() / 1e9:.2f} GB and "
                f"{available / 1e9:.2f} GB are free: close other GPU programs, or choose smaller sizes."
            )
        sizes[name] //= 2
    if sizes == wanted:
        return sizes, ""
    return sizes, say(
        "Too little memory for {wanted}: measured at {sizes} instead.",
        wanted=described(wanted),
        sizes=described(sizes),
    )


def why_not(experiment: Experiment, device: Device, dtype: str) -> str:
    """Why this device can't run `experiment` in `dtype`: a sentence, or "". By its target and its card."""
    known = [where for where in (TARGETS.get(device.target or ""), device.card()) if where]
    return next(filter(None, (experiment.why_not(where, dtype) for where in known)), "")


def default_dtype(experiment: Experiment, device: Device) -> str:
    """The experiment's first dtype that this device has. Raises Unsupported if it has none."""
    for dtype in experiment.dtypes:
        if not why_not(experiment, device, dtype):
            return dtype
    raise Unsupported(
        f"{experiment.name} runs in {', '.join(experiment.dtypes)}; {device.name} has "
        f"{', '.join(device.dtypes)}: choose another card, or another kernel."
    )


def peak_of(experiment: Experiment, card: Accelerator, dtype: str) -> float | None:
    """FLOP/s of the units that do the work, by the datasheet; None where it gives no such rate."""
    try:
        return card.peak(experiment.arithmetic(dtype), experiment.unit)
    except UnsupportedDtype:
        return None


def run(
    experiment: Experiment,
    *,
    dtype: str | None = None,
    device: Device | None = None,
    clock: Clock | None = None,
    tops: Ceilings | None = None,
    **sizes: Any,
) -> tuple[tuple[Timed, ...], Ceilings]:
    """Time `experiment` over its sweep on the GPU that is here: the points, and the ceilings.

    One of `sizes` may be a list. Raises Unsupported, with a sentence, where there is no GPU, or none
    that has `dtype`.
    """
    device = device or gpu_here()
    if device is None:
        raise Unsupported(
            "No GPU here: nothing can be timed; run this on a machine with one, or use cpu_roofline()."
        )
    dtype = dtype or default_dtype(experiment, device)
    if reason := why_not(experiment, device, dtype):
        raise Unsupported(reason)
    clock = clock or gpu_clock(device)[0]
    tops = tops or ceilings(device, experiment.arithmetic(dtype), clock)
    rows = sweep(experiment, "timed", **sizes)
    return tuple(measure(experiment, device, dtype, row, clock, tops) for row in rows), tops

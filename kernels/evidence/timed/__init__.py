"""The rung "timed": the kernel on the GPU that is here, against ceilings of the same run.

Correctness comes first, on random data and with every fresh tensor poisoned with NaN, so that an
element that was never written can't pass. Then seconds with the cache flushed, and what they are
worth: bytes/s and FLOP/s as shares of the bandwidth and the arithmetic that this card just showed,
and of its datasheet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from book import roofline
from book.catalog import Accelerator, UnsupportedDtype
from kernels.contract.errors import Unsupported
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS
from kernels.evidence import alarm
from kernels.evidence.poison import poisoned
from kernels.evidence.sweeps import sweep
from kernels.evidence.timed import launched, memory
from kernels.evidence.timed.ceilings import Ceilings, ceilings, room
from kernels.evidence.timed.checking import check
from kernels.evidence.timed.clocks import Clock
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.machine import Device, gpu_here

__all__ = ["Ceilings", "Timed", "ceilings", "check", "measure", "poisoned", "run"]
MEASURED_TOLERANCE = 0.05  # kernels may beat a measured ceiling by this much: it is a kernel's too


@dataclass(frozen=True)
class Timed:
    """One size, timed. SI units; shares are fractions of one.

    seconds (median), low, high (20th and 80th percentile), runs: see Timing. bytes_per_s: the
    formula's compulsory bytes over seconds; flops_per_s: its useful FLOPs over seconds.
    of_roof: flops_per_s over what the measured ceilings allow at this intensity (for a kernel with
    no FLOPs, bytes/s over the measured bandwidth). of_datasheet: seconds of the datasheet's floor
    over seconds, or None for a card that the catalog lacks. dram_bytes: what the hardware counted.
    baseline: {"name", "seconds", "share", "others", "relative_error"} of the vendor's own kernel for the
    same work, by the same clock; share: its seconds over ours, above one where ours is faster;
    relative_error: of its result against ours; low, high, runs, way, launch_seconds, empty_seconds,
    notes: of its Timing, and "timings" has the same of the others. plan: the fields of
    the plan that ran. kernels: what was launched, with registers, spills and shared memory where known.
    way, launch_seconds, empty_seconds: see Timing. began, ended: when it was timed, on the machine's
    monotonic clock, which the driver's samples are taken by.
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
    baseline: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    kernels: tuple[Mapping[str, Any], ...] = ()
    way: str = ""
    launch_seconds: float | None = None
    empty_seconds: float | None = None
    began: float = 0.0
    ended: float = 0.0

    def as_record(self) -> dict[str, Any]:
        """The point as a record keeps it."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("began", "ended")}
        return {**kept, **{name: list(kept[name]) for name in ("alarms", "notes", "kernels")}}


# ----------------------------------------------------------------------------- measurements


def measure(
    experiment: Experiment,
    device: Device,
    dtype: str,
    sizes: Mapping[str, int],
    clock: Clock,
    tops: Ceilings,
    budget: float = 0.3,
    baselines: bool = False,
    first: Callable[[Timed], None] = lambda found: None,
) -> Timed:
    """Check, time and judge one size of `experiment`.

    clock: a GraphClock on a GPU (see gpu_clock). tops: the ceilings of this run. budget: seconds of
    timing. baselines: the vendor's kernels for the same work are timed beside it; before they are, `first`
    is given what was found until then, as they may take the process with them. Raises Unsupported,
    with both numbers, for a size that does not fit into memory (no size is ever changed), and
    PhysicsDisagrees if the result is wrong. Impossible figures are flagged in `alarms`.
    """
    need = memory.need(experiment, dtype, sizes, room(device))
    inputs = experiment.inputs(**sizes, dtype=dtype, device=device.torch_device, seed=0)
    error = check(experiment, inputs, dtype, rows=need.rows, pieces=need.pieces)
    began = time.monotonic()
    run = launched.OneRun(experiment, inputs, dtype, sizes)
    timing = clock.time(run, budget)
    ended = time.monotonic()
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
    found = Timed(
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
        notes=timing.notes,
        plan=launched.plan_as_record(experiment.plan(**sizes, dtype=dtype, target=None)),
        kernels=launched.kernels_of(lambda: experiment.run(**inputs)),
        way=timing.way,
        launch_seconds=timing.launch_seconds,
        empty_seconds=timing.empty_seconds,
        began=began,
        ended=ended,
    )
    if not baselines:
        return found
    from kernels.evidence.timed import baselines as vendors  # late: it stays at home, see `bundle.AT_HOME`

    if not vendors.known(experiment, dtype):
        return found
    first(found)
    baseline, notes = vendors.beside(experiment, inputs, dtype, clock, timing, budget, run)
    return replace(found, baseline=baseline, notes=(*found.notes, *notes))


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

    One of `sizes` may be a list. A point that doesn't fit into memory is left out, which a note of the
    first point says. Raises Unsupported, with a sentence, where there is no GPU, or none that has
    `dtype`, or where no point fits.
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
    points: list[Timed] = []
    left_out: list[str] = []
    for row in sweep(experiment, "timed", **sizes):
        try:
            points.append(measure(experiment, device, dtype, row, clock, tops))
        except Unsupported as error:
            left_out.append(str(error))
    if not points:
        raise Unsupported(" ".join(left_out))
    return (replace(points[0], notes=(*points[0].notes, *left_out)), *points[1:]), tops

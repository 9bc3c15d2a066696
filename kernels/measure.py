"""Time every kernel on the GPU of this machine and keep the result as a record.

    python -m kernels.measure --out kernels/records/h100.json

Needs a checkout, torch and Triton, and nothing of the book's other packages. First every kernel is
checked against float64; then the two ceilings are measured; then come the sweeps, and the record is
written anew after each, so a run that is cut short keeps what it had.
Exit codes: 0 done; 1 a kernel was wrong or a result impossible; 2 nothing to measure on.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from book.drawing.number_text import si
from book.drawing.tables import table as as_table
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.experiment import Experiment
from kernels.evidence import alarm, launch_overhead, recorded, timed
from kernels.evidence.cpu import cpu_roofline
from kernels.evidence.experiments import choose
from kernels.evidence.recorded import write
from kernels.evidence.recorded.write import empty
from kernels.evidence.sweeps import sweep
from kernels.evidence.timed import dram
from kernels.evidence.timed.clocks import Clock
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.cpu import LABEL
from kernels.evidence.timed.machine import Device, clocks, cpu_here, gpu_here, why_not_timed

Tell = Callable[[str], None]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m kernels.measure", description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=Path, help="the record to write (JSON)")
    parser.add_argument("--kernels", help="comma-separated names; all kernels by default")
    parser.add_argument(
        "--dtype", choices=("bf16", "fp16", "fp32"), help="by default each kernel's best here"
    )
    parser.add_argument("--quick", action="store_true", help="three points a sweep and shorter timing")
    parser.add_argument(
        "--device", choices=("gpu", "cpu"), default="gpu", help="cpu: this CPU's roofline, by torch"
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, write the record, print a table; returns the exit code."""
    asked = arguments(words)
    command = "python -m kernels.measure " + shlex.join(sys.argv[1:] if words is None else list(words))
    tell: Tell = lambda line: print(line, flush=True)  # noqa: E731
    if asked.device == "cpu":
        record = empty(cpu_here(), command)
        measure_cpu(record, asked.quick)
        record["status"] = "complete"
        recorded.save(record, asked.out)
        tell(table(record))
        tell(f"wrote {asked.out}")
        return 0
    try:
        names = [n.strip() for n in asked.kernels.split(",")] if asked.kernels else None
        experiments = choose(names)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    device = gpu_here()
    reason = why_not_timed(device)
    if reason:
        print(
            f"Nothing to measure: {reason}. Run this on a machine with a GPU and without TRITON_INTERPRET, "
            "or add --device cpu to record this CPU's own roofline.",
            file=sys.stderr,
        )
        return 2
    record = empty(device, command)
    clock, cold = gpu_clock(device)
    record["cold_cache"] = cold.as_record()
    good = measure_gpu(
        record,
        experiments,
        device,
        clock,
        asked.out,
        tell,
        quick=asked.quick,
        dtype=asked.dtype,
        launches=launch_overhead.gpu if names is None else None,
    )
    tell(table(record))
    tell(f"wrote {asked.out}")
    return 0 if good else 1


def measure_gpu(
    record: dict[str, Any],
    experiments: dict[str, Experiment],
    device: Device,
    clock: Clock,
    out: Path,
    tell: Tell,
    *,
    quick: bool = False,
    dtype: str | None = None,
    counters: Callable[..., tuple[float, float]] = dram.dram_bytes,
    launches: Callable[..., launch_overhead.Overhead] | None = launch_overhead.gpu,
) -> bool:
    """Fill `record`, writing it to `out` after each sweep; True if nothing was wrong or impossible.

    counters: reads DRAM bytes of one run (see kernels.evidence.timed.dram). launches: times launch
    overhead (see kernels.evidence.launch_overhead); None leaves it out.
    """
    began, right = time.perf_counter(), {}
    tell(f"{device.name}: checking {len(experiments)} kernels against float64")
    for name, experiment in experiments.items():
        try:
            chosen = _dtype(experiment, device, dtype)
        except Unsupported as error:
            record["notes"].append(f"Not timed: {error}")
            tell(f"  {error}")
            continue
        record["correct"][name] = outcome = check_all(experiment, device, chosen)
        tell(f"  {name} in {chosen}: {outcome['verdict']}")
        if outcome["verdict"] == "correct":
            right[name] = (experiment, chosen)
    recorded.save(record, out)
    good = len(right) == len(record["correct"])
    for number, (name, (experiment, chosen)) in enumerate(right.items(), 1):
        arithmetic = experiment.arithmetic(chosen)
        try:
            tops = _ceilings(record, device, arithmetic, clock, tell)
        except Unsupported as error:
            record["notes"].append(f"Not timed: {name}: {error}")
            tell(f"  {name}: {error}")
            continue
        rows = sweep(experiment, "timed")
        rows = [rows[0], rows[len(rows) // 2], rows[-1]] if quick and len(rows) > 3 else rows
        points = []
        for row in rows:
            point, problem = _point(experiment, device, chosen, row, clock, tops, 0.1 if quick else 0.3)
            if point is None:
                record["notes"].append(problem)
                good = good and problem.startswith("Not timed")
                tell(f"  {problem}")
                continue
            points.append(point)
            good = good and not point.alarms
            for line in (*point.notes, *point.alarms):
                tell(f"  {name}: {line}")
        entries = [p.as_record() for p in points]
        _count_traffic(record, experiment, chosen, entries, counters)
        fixed = {s: v for s, v in rows[0].items() if s != experiment.axis}
        record["sweeps"].append(
            {
                "experiment": name,
                "axis": experiment.axis,
                "dtype": chosen,
                "arithmetic": arithmetic,
                "fixed": fixed,
                "points": entries,
            }
        )
        record["clocks"]["after"] = clocks()
        recorded.save(record, out)
        took = time.perf_counter() - began
        tell(f"[{number}/{len(right)}] {name}: {len(points)} points, {took:.0f} s so far")
    for found in _dtypes_compared(record, device):
        record["notes"].append(found.sentence)
        tell(f"  {found.sentence}")
        good = False
    if launches:
        _overhead(record, device, launches, quick, tell)
    record["status"] = "complete"
    recorded.save(record, out)
    return good


def _dtypes_compared(record: dict[str, Any], device: Device) -> tuple[alarm.Alarm, ...]:
    """The ceilings of this run in all its dtypes, those that were measured, held against each other."""
    tops = {dtype: write.ceilings_of(kept) for dtype, kept in record["ceilings"].items()}
    peaks = {dtype: top.peak for dtype, top in tops.items() if top.peak_measured}
    return alarm.dtype_ratio(peaks, device.card(), timed.MEASURED_TOLERANCE)


def _overhead(record: dict[str, Any], device: Device, launches: Callable, quick: bool, tell: Tell) -> None:
    """Put the cost of a launch under "overhead"; floors are those of the bandwidth just measured."""
    tops = next(iter(record["ceilings"].values()), None)
    reached = (tops["bandwidth"], tops["bandwidth_by"]) if tops else None
    try:
        kept = launches(device, bandwidth=reached, quick=quick)
    except Unsupported as error:
        record["notes"].append(str(error))
        return
    record["overhead"] = kept.as_record()
    for one in kept.lines:
        tell(f"launch: {one.work}, {one.way}: {si(one.per_launch, 's')} each")


def check_all(experiment: Experiment, device: Device, dtype: str) -> dict[str, Any]:
    """Every size of the "counted" sweep, run poisoned on the device and compared with float64."""
    errors = []
    for sizes in sweep(experiment, "counted"):
        inputs = experiment.inputs(**sizes, dtype=dtype, device=device.torch_device, seed=1)
        try:
            errors.append(timed.check(experiment, inputs, dtype))
        except PhysicsDisagrees as error:
            return {"dtype": dtype, "verdict": str(error), "sizes": sizes}
    return {"dtype": dtype, "verdict": "correct", "relative_error": max(errors), "runs": len(errors)}


def measure_cpu(record: dict[str, Any], quick: bool) -> None:
    """Fill `record` with this CPU's roofline by torch, under names of its own: no run of ours."""
    line = cpu_roofline(budget=0.05 if quick else 0.15)
    record["notes"].append(f"{LABEL}: torch's kernels in fp32, not this repository's.")
    record["ceilings"]["fp32"] = write.ceilings_as_record(line.ceilings)
    for name, axis, points in (("torch linear", "m", line.linear), ("torch dial", "k", line.dial)):
        record["sweeps"].append(write.sweep_as_record(name, axis, "fp32", points))


def table(record: dict[str, Any]) -> str:
    """The record as a short text table."""
    lines = [f"{record['device']['name']}, {record['status']}, commit {record['commit']}"]
    for dtype, tops in record["ceilings"].items():
        lines.append(
            f"ceilings in {dtype}: {si(tops['bandwidth'], 'B/s')} ({tops['bandwidth_by']}), "
            f"{si(tops['peak'], 'FLOP/s')} ({tops['peak_by']})"
        )
    rows = [
        {
            "kernel": done["experiment"],
            "size": f"{done['axis']} = {p['sizes'][done['axis']]:,}",
            "time": si(p["seconds"], "s"),
            "traffic": si(p["bytes_per_s"], "B/s"),
            "arithmetic": si(p["flops_per_s"], "FLOP/s"),
            "of roof": f"{100 * p['of_roof']:.0f} %" if p.get("of_roof") else "",
            "": "impossible" if p["alarms"] else "",
        }
        for done in record["sweeps"]
        for p in done["points"]
    ]
    if rows:
        lines.append(repr(as_table(rows, list(rows[0]))))
    return "\n".join([*lines, *record["notes"]])


def _dtype(experiment: Experiment, device: Device, asked: str | None) -> str:
    """What was asked for, where this kernel and this device have it; else the best that both have."""
    if asked in experiment.dtypes and not timed.why_not(experiment, device, asked):
        return asked
    return timed.default_dtype(experiment, device)


def _point(*what: Any) -> tuple[timed.Timed | None, str]:
    try:
        return timed.measure(*what), ""
    except PhysicsDisagrees as error:
        return None, f"Wrong: {error}"
    except Unsupported as error:
        return None, f"Not timed: {error}"


def _ceilings(record: dict[str, Any], device: Device, dtype: str, clock: Clock, tell: Tell) -> timed.Ceilings:
    if dtype not in record["ceilings"]:
        tell(f"measuring the ceilings in {dtype}")
        record["ceilings"][dtype] = write.ceilings_as_record(timed.ceilings(device, dtype, clock))
    return write.ceilings_of(record["ceilings"][dtype])


def _count_traffic(
    record: dict[str, Any], experiment: Experiment, dtype: str, entries: list[dict], counters: Callable
) -> None:
    """DRAM bytes of the smallest and the largest point; a note, once, where they can't be read."""
    if record["device"]["kind"] != "gpu" or any("DRAM bytes were not counted" in n for n in record["notes"]):
        return
    for entry in {id(e): e for e in (*entries[:1], *entries[-1:])}.values():
        try:
            entry["dram_bytes"] = sum(counters(experiment, dtype=dtype, sizes=entry["sizes"]))
        except Unsupported as error:
            record["notes"].append(str(error))
            return


if __name__ == "__main__":
    sys.exit(main())

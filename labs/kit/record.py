"""Keeps what a student measured as a record of the book, so that the chapters' figures can show it.

The file says which machine, which versions and which lab; nothing in it says whose it is.

    path = record.export("my-roofline.json", device, {"fp32": tops}, sweeps, command="lab1-your-roofline")
    confirm(linear.experiment, records=path).figure()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernels.evidence import recorded
from kernels.evidence.recorded import write
from kernels.evidence.timed.ceilings import Ceilings
from kernels.evidence.timed.machine import Device


def export(
    path: str | Path,
    device: Device,
    ceilings: Mapping[str, Ceilings],
    sweeps: Iterable[Mapping[str, Any]],
    *,
    command: str,
    notes: Iterable[str] = (),
) -> Path:
    """Write a record to `path`, in one step, and return where it lies.

    ceilings: by dtype. sweeps: {"experiment", "axis", "dtype", "points"} and, if any size stays the
    same, "fixed". A point is a `timed.Timed`, or a mapping of its sizes, "seconds", "bytes_per_s",
    "flops_per_s" and "intensity", in SI units. command: the lab. Raises RecordError for a record
    that could not be read again, and writes nothing then.
    """
    path = Path(path)
    made = write.empty(device, command)
    made["ceilings"] = {dtype: write.ceilings_as_record(tops) for dtype, tops in ceilings.items()}
    made["sweeps"] = [_sweep(one) for one in sweeps]
    made["notes"] = list(notes)
    made["status"] = "complete"
    recorded.save(made, path)
    return path.resolve()


def _sweep(given: Mapping[str, Any]) -> dict[str, Any]:
    points = [p.as_record() if hasattr(p, "as_record") else p for p in given["points"]]
    return write.sweep_as_record(
        given["experiment"], given["axis"], given["dtype"], points, given.get("fixed")
    )

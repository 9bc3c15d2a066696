"""Puts a record together (see `recorded` for what is in one). `kernels.measure` and the labs use it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from book import roofline
from book.cost import Cost
from kernels.evidence import recorded
from kernels.evidence.timed.ceilings import Ceilings
from kernels.evidence.timed.machine import Device, commit, facts, software
from kernels.evidence.timed.sampling import clocks

ROOT = Path(__file__).resolve().parents[3]


def empty(device: Device, command: str) -> dict[str, Any]:
    """A record with its provenance and nothing measured yet; of an imaginary device, a rehearsal's."""
    return {
        "schema": recorded.SCHEMA,
        "kind": recorded.REHEARSED if device.imaginary else recorded.MEASURED,
        "device": facts(device),
        "software": software(),
        "clocks": {"before": clocks(device)} if device.kind == "gpu" else {},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": version(ROOT),
        "command": command,
        "status": "partial",
        "correct": {},
        "ceilings": {},
        "sweeps": [],
        "notes": [],
    }


def version(root: Path) -> str:
    """The commit of a checkout at `root`, the version of a notebook's unpacked modules, or "unknown".

    A folder inside somebody's own repository is not a checkout of ours, so `root` itself must be one.
    """
    if (root / ".git").exists():
        return commit(root)
    return f"release {root.name}" if root.parent.name == "notebooks" else "unknown"


def ceilings_as_record(tops: Ceilings) -> dict[str, Any]:
    """Ceilings as a record keeps them."""
    return {**vars(tops), "notes": list(tops.notes)}


def ceilings_of(kept: Mapping[str, Any]) -> Ceilings:
    """The ceilings that a record keeps."""
    known = {field.name for field in fields(Ceilings)}
    return Ceilings(**{n: tuple(v) if n == "notes" else v for n, v in kept.items() if n in known})


def of_roof(cost: Cost, seconds: float, kept: Mapping[str, Any]) -> float:
    """The share of what the ceilings that a record keeps allow for this work, in `seconds`."""
    return roofline.time(cost.flops, cost.bytes, kept["peak"], kept["bandwidth"]) / seconds


def point_as_record(point: Mapping[str, Any]) -> dict[str, Any]:
    """A timed point with its sizes beside its rates (see `cpu.timed_point`), as a record keeps it."""
    if "sizes" in point:
        return dict(point)
    rates = {name: point[name] for name in ("seconds", "bytes_per_s", "flops_per_s", "intensity")}
    known = {*rates, "low", "high", "runs", "form", "relative_error", "alarms"}
    extra = {name: point[name] for name in ("low", "high", "runs", "form") if name in point}
    return {
        "sizes": {name: value for name, value in point.items() if name not in known},
        **rates,
        **extra,
        "relative_error": point.get("relative_error"),
        "alarms": list(point.get("alarms", ())),
    }


def sweep_as_record(
    experiment: str,
    axis: str,
    dtype: str,
    points: Iterable[Mapping[str, Any]],
    fixed: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """One sweep as a record keeps it. experiment: its key, with "torch " before it if torch ran it."""
    return {
        "experiment": experiment,
        "axis": axis,
        "dtype": dtype,
        "fixed": dict(fixed or {}),
        "points": [point_as_record(point) for point in points],
    }

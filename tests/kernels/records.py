"""A made record that a check has nothing against: what each test changes one thing of. No measurement."""

import copy

from book import catalog, roofline
from kernels.decode_attention import experiment as decode
from kernels.evidence import recorded, timed
from kernels.linear import experiment as linear

CARD = catalog.accelerator("h100_sxm")
REACHED = 0.8  # of the floor, by every made time


def point(experiment, dtype="bf16", **sizes):
    cost = experiment.formula(dtype, **sizes)
    floor = roofline.time(cost.flops, cost.bytes, timed.peak_of(experiment, CARD, dtype), CARD.bandwidth)
    seconds = floor / REACHED
    return {
        "sizes": sizes,
        "seconds": seconds,
        "low": 0.98 * seconds,
        "high": 1.03 * seconds,
        "runs": 20,
        "bytes_per_s": cost.bytes / seconds,
        "flops_per_s": cost.flops / seconds,
        "intensity": cost.intensity,
        "relative_error": 1e-3,
        "baseline": {"name": "torch.matmul", "seconds": 0.9 * seconds},
        "alarms": [],
    }


def sweep(experiment, axis, points):
    return {
        "experiment": experiment.key,
        "axis": axis,
        "dtype": "bf16",
        "arithmetic": experiment.arithmetic("bf16"),
        "fixed": {},
        "points": points,
    }


def ceilings(dtype, peak):
    reached = {"bandwidth": 0.92 * CARD.bandwidth, "peak": 0.85 * peak}
    return {
        "dtype": dtype,
        **reached,
        "bandwidth_by": "torch copy",
        "peak_by": "torch.matmul 8192",
        "bandwidths": {"torch copy": reached["bandwidth"]},
        "peaks": {"torch.matmul 8192": reached["peak"]},
        "notes": [],
    }


def made(**changes):
    """A complete record of two kernels on an H100; changes: top fields in place of its own."""
    cache = {"heads": 32, "kv_heads": 8, "head_dim": 128}
    sweeps = [
        sweep(linear, "m", [point(linear, m=m, k=8192, n=8192) for m in (1, 16, 4096)]),
        sweep(decode, "context", [point(decode, batch=16, context=c, **cache) for c in (512, 4096)]),
    ]
    record = {
        "schema": recorded.SCHEMA,
        "kind": "measured",
        "device": {
            "name": "NVIDIA H100 80GB HBM3",
            "kind": "gpu",
            "torch_device": "cuda",
            "accelerator": "h100_sxm",
            "target": "sm_90",
            "memory_bytes": CARD.usable,
            "l2_bytes": CARD.l2_bytes,
            "sm_count": CARD.sm_count,
        },
        "software": {"python": "3.12.3", "torch": "2.13.0", "triton": "3.7.1", "cuda": "13.0", "hip": None},
        "clocks": {"before": {"driver_version": "580.0", "clocks.sm": "1980"}},
        "date": "2026-02-03T04:05:06+00:00",
        "commit": "0123456789ab",
        "command": "python -m kernels.measure --out x.json",
        "status": "complete",
        "correct": {s["experiment"]: {"dtype": "bf16", "verdict": "correct"} for s in sweeps},
        "ceilings": {
            arithmetic: ceilings(arithmetic, CARD.peak(arithmetic))
            for arithmetic in dict.fromkeys(s["arithmetic"] for s in sweeps)
        },
        "sweeps": sweeps,
        "notes": [],
        "by": "Ada",
    }
    return copy.deepcopy(record | changes)


def rehearsal():
    """The same as a rehearsal's: on an imaginary card, and with what a launch cost there."""
    record = made(kind="rehearsed")
    record["device"]["imaginary"] = True
    record["overhead"] = {"bandwidth": 3e12, "bandwidth_by": "torch copy", "lines": [], "laws": []}
    return record

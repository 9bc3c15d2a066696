"""The last stage: DRAM bytes of the smallest and the largest point of each kernel, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from kernels.contract.errors import Unsupported
from kernels.evidence.addresses import address
from kernels.evidence.timed import dram
from kernels.measure.run import Run
from kernels.measure.work import Job

MOST = 600.0  # seconds


def count(run: Run, jobs: Sequence[Job], read: Callable[..., list[Any]] = dram.all_bytes) -> None:
    """Put "dram_bytes" into points of the record; a note for each kernel of which they can't be read."""
    wanted: list[tuple[Job, dict[str, Any]]] = []
    for job in jobs:
        for kept in run.record["sweeps"]:
            if (kept["experiment"], kept["dtype"]) == (job.key, job.dtype) and kept["points"]:
                ends = {id(p): p for p in (kept["points"][0], kept["points"][-1])}.values()
                wanted += [(job, p) for p in ends if p.get("dram_bytes") is None]
    if not wanted:
        return
    run.tell("counting DRAM bytes")
    left = MOST if run.until is None else min(MOST, run.until - time.monotonic())
    requests = [
        {"experiment": address(job.experiment), "dtype": job.dtype, "sizes": point["sizes"]}
        for job, point in wanted
    ]
    try:
        counted = read(requests, timeout=left)
    except Unsupported as error:
        run.record["notes"].append(str(error))
        run.tell(f"  {error}")
        return
    for (job, point), found in zip(wanted, counted, strict=True):
        if isinstance(found, str):
            note = f"{job.key}: {found}"
            if note not in run.record["notes"]:
                run.record["notes"].append(note)
        else:
            point["dram_bytes"] = sum(found)
    run.save()

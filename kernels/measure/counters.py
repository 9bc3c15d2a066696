"""The last stage: DRAM bytes of the smallest and the largest point of each kernel, in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernels.contract.errors import Unsupported
from kernels.evidence.addresses import address
from kernels.evidence.timed import dram
from kernels.measure.run import Run
from kernels.measure.work import Job

MOST = 600.0  # seconds
LEAST = 30.0  # with less left it is not begun: ncu imports torch and Triton before it counts anything
NO_TIME = (
    "DRAM bytes were not counted: of the minutes {left:.0f} s were left, and {least:.0f} s is the least that "
    "it takes; the same command with --resume counts them."
)


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
    if run.device.architecture.startswith("gfx"):
        _note(run, "DRAM bytes were not counted: that takes NVIDIA's tool, and this is a card of AMD's.")
        return
    if run.left() < LEAST:
        _note(run, NO_TIME.format(left=max(0.0, run.left()), least=LEAST))
        return
    run.tell("counting DRAM bytes")
    requests = [
        {"experiment": address(job.experiment), "dtype": job.dtype, "sizes": point["sizes"]}
        for job, point in wanted
    ]
    try:
        counted = read(requests, timeout=min(MOST, run.left()))
    except Unsupported as error:
        _note(run, str(error))
        return
    for (job, point), found in zip(wanted, counted, strict=True):
        if isinstance(found, str):
            note = f"{job.key}: {found}"
            if note not in run.record["notes"]:
                run.record["notes"].append(note)
        else:
            point["dram_bytes"] = sum(found)
    run.save()


def _note(run: Run, line: str) -> None:
    if line not in run.record["notes"]:
        run.record["notes"].append(line)
    run.tell(f"  {line}")

"""DRAM bytes as the hardware counted them, through Nsight Compute (`ncu`) where it may be used.

The formula predicts compulsory bytes; only the memory controller knows what was really moved. The
kernel runs once in a process of its own under `ncu`, which flushes the caches before it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernels.contract.errors import Unsupported
from kernels.contract.experiment import Experiment
from kernels.evidence.addresses import address, find
from kernels.evidence.child_process import ROOT, environment

READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
_UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def ncu_path() -> str | None:
    """Where `ncu` is, or None."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("ncu") or shutil.which("ncu", path=str(Path(home) / "bin"))


def dram_bytes(
    experiment: Experiment,
    *,
    dtype: str,
    sizes: Mapping[str, int],
    call: Callable[..., Any] = subprocess.run,
    ncu: str | None = None,
) -> tuple[float, float]:
    """(bytes read, bytes written) by one run of `experiment`, all its launches together.

    call, ncu: how and what to start, for tests. Raises Unsupported, saying why, where the counters
    can't be read.
    """
    ncu = ncu or ncu_path()
    if ncu is None:
        raise Unsupported("DRAM bytes were not counted: `ncu` (NVIDIA Nsight Compute) is not installed here.")
    request = json.dumps({"experiment": address(experiment), "dtype": dtype, "sizes": dict(sizes)})
    command = [
        ncu, "--csv", "--print-units", "base", "--profile-from-start", "off",
        "--metrics", f"{READ},{WRITE}", sys.executable, "-m", "kernels.evidence.timed.dram", request,
    ]  # fmt: skip
    try:
        done = call(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            cwd=ROOT,
            env=environment(interpret=False),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unsupported(f"DRAM bytes were not counted: `ncu` did not run ({error}).") from None
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        raise Unsupported(
            "DRAM bytes were not counted: the driver lets only administrators read GPU counters here "
            "(ERR_NVGPUCTRPERM); an administrator can allow it for everybody."
        )
    return parse(done.stdout)


def parse(text: str) -> tuple[float, float]:
    """(bytes read, bytes written), summed over the kernels in the CSV that `ncu --csv` prints.

    The program's own lines and ncu's `==PROF==` lines come before the table. Raises Unsupported if
    there is no table, or a counter in it has no number.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise Unsupported("DRAM bytes were not counted: `ncu` printed no table; no kernel was profiled.")
    totals = {READ: 0.0, WRITE: 0.0}
    seen: set[str] = set()
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        name = row.get("Metric Name")
        if name not in totals:
            continue
        try:
            totals[name] += float(row["Metric Value"].replace(",", "")) * _UNITS[row["Metric Unit"]]
        except (ValueError, KeyError):
            raise Unsupported(
                f"DRAM bytes were not counted: {name} reads {row['Metric Value']!r} {row['Metric Unit']!r}; "
                "this GPU does not have that counter."
            ) from None
        seen.add(name)
    if seen != set(totals):
        raise Unsupported("DRAM bytes were not counted: `ncu` left a counter out of its table.")
    return totals[READ], totals[WRITE]


def main(request: str) -> None:
    """Run one experiment once between the profiler's start and stop; it was compiled before."""
    import torch

    asked = json.loads(request)
    experiment = find(asked["experiment"])
    inputs = experiment.inputs(**asked["sizes"], dtype=asked["dtype"], device="cuda", seed=0)
    experiment.run(**inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    experiment.run(**inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1])

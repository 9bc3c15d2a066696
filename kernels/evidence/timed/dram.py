"""DRAM bytes as the hardware counted them, through Nsight Compute (`ncu`) where it may be used.

The formula predicts compulsory bytes; only the memory controller knows what was really moved. All
kernels and sizes run once each in one process under `ncu`, which flushes the caches before every
launch: starting it, and importing torch and Triton, costs more than most of what it counts. A launch
of the kernel that does nothing stands before each, so that the table can be cut.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernels.contract.errors import Unsupported
from kernels.evidence.addresses import find
from kernels.evidence.child_process import ROOT, environment

KILLED = 1.0  # seconds in which a process that was killed is gone
READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
_UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def ncu_path() -> str | None:
    """Where `ncu` is, or None."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("ncu") or shutil.which("ncu", path=str(Path(home) / "bin"))


Counts = tuple[float, float]
MARK = "noop_kernel"  # the launch that stands before each request's own


def all_bytes(
    requests: Sequence[Mapping[str, Any]],
    *,
    timeout: float = 600,
    call: Callable[..., Any] | None = None,
    ncu: str | None = None,
) -> list[Counts | str]:
    """For each request (bytes read, bytes written) by one run, all its launches together; or why not.

    requests: {"experiment": its address, "dtype", "sizes"}. call, ncu: how and what to start, for
    tests. Raises Unsupported, saying why, where the counters can't be read at all.
    """
    ncu = ncu or ncu_path()
    if ncu is None:
        raise Unsupported("DRAM bytes were not counted: `ncu` (NVIDIA Nsight Compute) is not installed here.")
    command = [
        ncu, "--csv", "--print-units", "base", "--profile-from-start", "off",
        "--metrics", f"{READ},{WRITE}", sys.executable, "-m", "kernels.evidence.timed.dram",
    ]  # fmt: skip
    try:
        done = (call or _whole_group)(command, json.dumps([dict(one) for one in requests]), timeout)
    except subprocess.TimeoutExpired:
        raise Unsupported(
            f"DRAM bytes were not counted: `ncu` was not done after {timeout:.0f} s, and was stopped."
        ) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise Unsupported(f"DRAM bytes were not counted: `ncu` did not run ({error}).") from None
    if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:
        raise Unsupported(
            "DRAM bytes were not counted: the driver lets only administrators read GPU counters here "
            "(ERR_NVGPUCTRPERM); an administrator can allow it for everybody."
        )
    return parse_all(done.stdout, len(requests))


def _whole_group(command: Sequence[str], asked: str, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run it, and end it with the process that it profiles if it takes too long, or if we are stopped."""
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=ROOT,
        env=environment(interpret=False),
        start_new_session=True,
    )
    try:
        out, said = process.communicate(asked, timeout)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the card's driver holds it: leave it behind
            process.wait(KILLED)
        raise
    return subprocess.CompletedProcess(list(command), process.returncode, out, said)


def parse_all(text: str, count: int) -> list[Counts | str]:
    """The table of `ncu --csv`, cut at each launch of MARK: the bytes of each request, or why not.

    The program says with a line "failed INDEX: why" what it could not run. Raises Unsupported if there is
    no table.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        said = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
        why = f" It says: {said[0]}" if said else ""
        raise Unsupported(
            f"DRAM bytes were not counted: `ncu` printed no table; no kernel was profiled.{why}"
        )
    head, *rows = [line for line in lines[start:] if line.startswith('"')]
    name = next(csv.reader([head])).index("Kernel Name")
    groups: list[list[str]] = []
    marks: set[str] = set()
    for row in rows:
        fields = next(csv.reader([row]))
        if fields[name].startswith(MARK):
            if fields[0] not in marks:  # a launch has a row for each counter
                marks.add(fields[0])
                groups.append([])
        elif groups:
            groups[-1].append(row)
    said = {}
    for line in lines[:start]:
        if line.startswith("failed "):
            index, _, reason = line.removeprefix("failed ").partition(": ")
            said[index] = reason
    found: list[Counts | str] = []
    for i in range(count):
        try:
            if str(i) in said:
                raise Unsupported(f"DRAM bytes were not counted: {said[str(i)]}")
            found.append(parse("\n".join([head, *(groups[i] if i < len(groups) else [])])))
        except Unsupported as error:
            found.append(str(error))
    return found


def parse(text: str) -> Counts:
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


def main() -> None:
    """Run each request of standard input once between the profiler's start and stop; compiled before."""
    import torch

    from kernels import noop

    nothing = torch.empty(1, device="cuda")
    noop.noop(nothing)
    for i, asked in enumerate(json.load(sys.stdin)):
        try:
            experiment = find(asked["experiment"])
            inputs = experiment.inputs(**asked["sizes"], dtype=asked["dtype"], device="cuda", seed=0)
            experiment.run(**inputs)
            torch.cuda.synchronize()
            run: Callable[[], Any] = lambda e=experiment, x=inputs: e.run(**x)  # noqa: E731
        except Exception as error:  # noqa: BLE001 - told; the others are counted
            first = str(error).strip().partition("\n")[0]
            print(f"failed {i}: {type(error).__name__}: {first}", flush=True)
            run = lambda: None  # noqa: E731 - its mark stands, so that the others keep their places
        torch.cuda.profiler.start()
        noop.noop(nothing)
        run()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        inputs = run = None  # type: ignore[assignment]
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

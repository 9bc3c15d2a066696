"""One synchronisation after the other is taken out of compiled kernels: does the race detector miss it?

    python -m tests.kernels.executed.mutations            # prints the table
    python -m tests.kernels.executed.mutations --write    # and writes mutations.json, what the tests hold
    python -m tests.kernels.executed.mutations --only sm_90:gemv,sm_90:decode_attention

An entry says of a kernel and a kind how many there are, how many of them the detector misses when they are
gone, how many change a result here, and of each that is not missed the line and the reason.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from kernels.contract.processes import ROOT
from kernels.contract.targets import target
from kernels.evidence import child_process
from tests.kernels.executed import diary

TABLE = Path(__file__).with_name("mutations.json")
SIZES: dict[str, dict[str, int]] = {
    "matmul": {"m": 128, "k": 256, "n": 256},
    "linear": {"m": 16, "k": 1024, "n": 64},
    "flash_attention": {"batch": 1, "length": 200, "heads": 1, "kv_heads": 1, "head_dim": 64},
    "decode_attention": {"batch": 1, "heads": 4, "kv_heads": 1, "head_dim": 64, "context": 256},
    "gemv": {"m": 1, "k": 1024, "n": 16},
}
CHIPS = {"sm_80": tuple(SIZES), "sm_90": tuple(SIZES), "sm_100": ("matmul", "linear", "flash_attention")}
CASES = [f"{chip}:{name}" for chip, names in CHIPS.items() for name in names]
QUICK = ["sm_80:matmul", "sm_90:matmul", "sm_90:decode_attention"]  # those of `make test`

KINDS = {
    "barrier": r"bar\.sync",
    "cp.async wait": r"cp\.async\.wait_\w+",
    "wgmma wait": r"wgmma\.wait_group.*",
    "mbarrier wait": r"bra.*",  # back to the try, see `synchronisations`
    "tcgen05 wait": r"tcgen05\.wait.*",
    "proxy fence": r"fence\.proxy\.async.*",
    "other fence": r"(?:wgmma\.fence|tcgen05\.fence|fence\.(?!proxy\.async)|membar).*",
}
# Of kinds that no watch is kept on here, why.
NOT_WATCHED = {
    "mbarrier wait": "its first try succeeds here: products have ended when they begin",
    "tcgen05 wait": "nothing here overwrites what its load reads",
    "other fence": "the order of registers and of tensor memory is not watched",
}

REASONS = {
    "barrier": diary.why,
    "cp.async wait": diary.why_wait,
    "wgmma wait": diary.why_wait,
    "proxy fence": lambda place, diaries: "no tensor core reads what this fence alone lets it see",
}


@dataclass
class Run:
    """One launch as it was asked for: what `machine.launch` was called with, and memory before."""

    label: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    before: np.ndarray


def table(cases: list[str]) -> dict[str, Any]:
    """case -> kernel -> kind -> its entry. In a process that compiles."""
    return {case: dict(_kernels(*case.split(":"))) for case in cases}


def _kernels(chip: str, name: str) -> Iterator[tuple[str, Any]]:
    from kernels.evidence.experiments import all_experiments

    for run in _recorded(all_experiments()[name], chip, SIZES[name]):
        found: dict[str, dict[str, Any]] = {}
        expected, seen, diaries = _again(run)
        assert not seen, f"{chip} {name}: {seen[0]}"
        kernel = run.arguments[0]
        for kind, place in synchronisations(kernel):
            entry = found.setdefault(kind, {"there": 0, "missed": 0, "changes": 0, "not missed": []})
            got, races, _ = _again(run, without=place)
            entry["there"] += 1
            entry["missed"] += bool(races)
            entry["changes"] += not np.array_equal(got, expected)
            reason = NOT_WATCHED.get(kind) or REASONS[kind](kernel.code[place], diaries)
            if kind == "barrier" and bool(races) != (reason == diary.NEEDED):
                entry.setdefault("against brute force", []).append([_line(kernel.code[place]), reason])
            if not races:
                entry["not missed"].append([_line(kernel.code[place]), reason])
        yield run.label, found


def synchronisations(kernel: Any) -> Iterator[tuple[str, int]]:
    """(kind, place in the code) of each."""
    for place, one in enumerate(kernel.code):
        for kind, pattern in KINDS.items():
            if re.fullmatch(pattern, one.form) and (
                kind != "mbarrier wait" or "try_wait" in kernel.code[place - 1].form
            ):
                yield kind, place


def _line(one: Any) -> str:
    """The text of the line that an instruction comes from; comments above it change its number."""
    import triton

    name, _, number = one.where.partition(":")
    for folder in (ROOT / "kernels", Path(triton.__file__).parent / "language"):
        for path in sorted(folder.rglob(name)):
            return f"{name}: {path.read_text(encoding='utf-8').splitlines()[int(number) - 1].strip()}"
    return name


def _recorded(experiment: Any, chip: str, sizes: dict[str, int]) -> list[Run]:
    """The launches of an experiment, each with the memory that it began with."""
    from kernels.evidence.executed import execution, machine

    found: list[Run] = []
    launch = machine.launch

    def recording(kernel: Any, memory: Any, *arguments: Any, **options: Any) -> Any:
        found.append(Run(kernel.name, (kernel, memory, *arguments), options, memory.bytes.copy()))
        return launch(kernel, memory, *arguments, **options)

    machine.launch = recording
    try:
        dtype = experiment.best_dtype(target(chip))
        _, error = execution.execute(experiment, target(chip), dtype, sizes)
    finally:
        machine.launch = launch
    assert error <= experiment.tolerance(dtype)
    return found


def _again(run: Run, without: int | None = None) -> tuple[np.ndarray, list[str], list[diary.Diary]]:
    """Memory after the launch, its races and diaries; `without` the instruction at this place."""
    from kernels.evidence.executed import machine
    from kernels.evidence.executed.ptx import Instruction, NotExecutable

    kernel, memory, *rest = run.arguments
    memory.bytes[:] = run.before
    if without is not None:
        nothing = Instruction("nothing", (), where=kernel.code[without].where, run=lambda machine, on: None)
        kernel = replace(kernel, code=[*kernel.code[:without], nothing, *kernel.code[without + 1 :]])
    diary.Diary.kept.clear()
    detector = machine.SharedRaces
    machine.SharedRaces = diary.Diary if without is None else detector
    try:
        seen = list(machine.launch(kernel, memory, *rest, **run.options | {"count": False}).races)
    except NotExecutable as error:  # it noticed in another way
        seen = [str(error)]
    finally:
        machine.SharedRaces = detector
    return memory.bytes.copy(), seen, list(diary.Diary.kept)


def main(argv: list[str] | None = None) -> None:
    """The command."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--write", action="store_true")
    options.add_argument("--only", default=",".join(CASES))
    chosen = options.parse_args(argv)
    made = {"triton": version("triton"), "cases": table(chosen.only.split(","))}
    text = json.dumps(made, indent=1) + "\n"
    if chosen.write:
        child_process.write_atomically(TABLE, text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()

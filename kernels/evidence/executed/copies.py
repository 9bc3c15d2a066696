"""Asynchronous copies from global into shared memory: cp.async."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.evidence.executed.access import shared_place, who
from kernels.evidence.executed.counts import count_global, count_shared
from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.groups import closes
from kernels.evidence.executed.operands import address, integer, reader
from kernels.evidence.executed.ptx import Instruction, Kernel, NotExecutable


@dataclass
class Copy:
    """Bytes on their way into shared memory. group: the number of its group, in each program."""

    index: np.ndarray
    words: np.ndarray
    program: np.ndarray
    warp: np.ndarray
    cells: np.ndarray | None
    group: np.ndarray


@family(r"cp\.async\.(?:ca|cg)\.shared(?:::cta)?\.global(?:\.L2::(?:64|128|256)B)?", 3, 4)
def _copy(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """It lands at its wait, as late as it may. A last operand says how many of its bytes are not zeros."""
    to, of = (address(kernel, text) for text in one.operands[:2])
    size = integer(one.operands[2])
    filled = reader(kernel, one.operands[3]) if len(one.operands) == 4 else None
    if size not in (4, 8, 16):
        raise NotExecutable(f"{one.form} of {size} bytes")
    unit = min(size, 8)
    word, policy = UINT[unit * 8], one.form.split(".")[2]

    def run(machine: Any, on: Any) -> None:
        target, source, live = machine.full(to(machine)), machine.full(of(machine)), machine.threads(on)
        reads = live if filled is None else live & (machine.full(filled(machine)) > 0)
        if filled is not None and (machine.full(filled(machine))[reads] != size).any():
            raise NotExecutable(f"{machine.now}: a part of its {size} bytes: not known here.")
        words = np.zeros((*machine.shape, size // unit), word)
        if reads.any():
            safe = machine.memory.checked(machine, source, size, reads)
            if machine.counts is not None:
                count_global(machine, "load", source, size, reads, policy)
            if machine.global_races is not None:
                machine.global_races.read(*who(machine, safe, size, reads), str(machine.now))
            loaded = machine.memory.bytes.view(word)[(safe // unit)[..., None] + np.arange(size // unit)]
            words = np.where(reads[..., None], loaded, words)
        flat = shared_place(machine, target, size, live)[live]
        if machine.counts is not None:
            count_shared(machine, "cp.async", target, size, live)
        program, warp = machine.full(machine.program)[live], machine.full(machine.warp)[live]
        cells = None
        if machine.races is not None:
            cells = machine.races.cells(flat, size)
            machine.races.write(cells, program[:, None], warp[:, None], str(machine.now), in_flight=True)
        index = (flat // unit)[:, None] + np.arange(size // unit)
        machine.copies.append(Copy(index, words[live], program, warp, cells, machine.copy_groups.current()))

    return run


family(r"cp\.async\.commit_group", 0)(closes("copy_groups"))


@family(r"cp\.async\.wait_(group|all)", 0, 1)
def _wait(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    newest = (
        integer("".join(one.operands)) if found[1] == "group" else -1
    )  # all: also what no commit has followed

    def run(machine: Any, on: Any) -> None:
        over = machine.copy_groups.over(machine.active(on), newest)
        waiting = []
        for copy in machine.copies:
            landed = copy.group < over
            if landed.all():
                _land(machine, copy, slice(None))
                continue
            if landed.any() and (lanes := landed[copy.program]).any():
                _land(machine, copy, lanes)
                copy = _rest(copy, ~lanes)
            if len(copy.program):
                waiting.append(copy)
        machine.copies = waiting

    return run


def _land(machine: Any, copy: Copy, lanes: Any) -> None:
    machine.shared.view(copy.words.dtype)[copy.index[lanes]] = copy.words[lanes]
    if machine.races is not None:
        machine.races.land(copy.cells[lanes], copy.program[lanes][:, None], copy.warp[lanes][:, None])


def _rest(copy: Copy, lanes: np.ndarray) -> Copy:
    cells = None if copy.cells is None else copy.cells[lanes]
    return Copy(
        copy.index[lanes], copy.words[lanes], copy.program[lanes], copy.warp[lanes], cells, copy.group
    )


@family(r"fence\.proxy\.async(?:\.(?:global|shared::(?:cta|cluster)))?", 0)
def _proxy(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    def run(machine: Any, on: Any) -> None:
        if machine.races is not None:
            machine.races.fence(machine.active(on))

    return run

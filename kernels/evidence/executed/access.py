"""Loads and stores, and the fences between them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed.conversions import fit
from kernels.evidence.executed.counts import count_global, count_shared
from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import address, reader
from kernels.evidence.executed.ptx import WIDTH, Instruction, Kernel, NotExecutable, vector

# Cache policies: they change no result, and are kept in the counts.
POLICY = r"((?:\.(?:L1::\w+|L2::\w+|ca|cg|cs|lu|cv|wb|wt|nc))*)"
# Strong accesses (PTX ISA, "Memory consistency model"): beside each other and beside atomics they don't race.
# A volatile one is a relaxed one of the whole system.
STRONG = r"(\.volatile|\.relaxed\.(?:cta|cluster|gpu|sys))?"
KIND = r"(b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64)"


@family(rf"ld\.param\.{KIND}", 2)
def _parameter(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    out, name = kernel.index[one.operands[0]], one.operands[1].strip("[]")
    width, kind = kernel.width[one.operands[0]], found[1]
    if name not in {name for _, name in kernel.parameters}:
        raise NotExecutable(f"{one.form} of {name}")
    return lambda machine, on: machine.put(out, fit(machine.arguments[name], kind, width), on)


@family(rf"(ld|st){STRONG}\.(global|shared(?:::cta)?){POLICY}(?:\.v([24]))?\.{KIND}", 2, 3)
def _access(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    load, strong, space, kind = found[1] == "ld", bool(found[2]), found[3][:6], found[6]
    policy = ((found[2] or "") + found[4]).strip(".")
    where, data = (one.operands[1], one.operands[0]) if load else one.operands[:2]
    names, unit = vector(data), WIDTH[kind] // 8
    if len(names) != int(found[5] or 1):
        raise NotExecutable(f"{one.form} of {len(names)} registers")
    if len(names) * unit > (32 if space == "global" else 16) or (strong and space == "shared"):
        raise NotExecutable(one.form)
    get, size, word = address(kernel, where), len(names) * unit, UINT[unit * 8]
    direction = "load" if load else "store"
    places = [kernel.index.get(name) for name in names]
    widths = [kernel.width.get(name, 0) for name in names]
    sources = [] if load else [reader(kernel, name, kind.replace("f", "b")) for name in names]

    def run(machine: Any, on: Any) -> None:
        lanes = machine.full(get(machine))
        if space == "global":
            flat = machine.memory.checked(machine, lanes, size, on)
            memory = machine.memory.bytes
            if machine.counts is not None:
                count_global(machine, direction, lanes, size, on, policy)
            if machine.global_races is not None:
                _watch(machine.global_races, load, strong, who(machine, flat, size, on), str(machine.now))
        else:
            flat = shared_place(machine, lanes, size, on)
            memory = machine.shared
            if machine.counts is not None:
                count_shared(machine, direction, lanes, size, on)
            if machine.races is not None:
                cells, program, warp = lanes_of(
                    on,
                    machine.races.cells(flat, size),
                    machine.full(machine.program),
                    machine.full(machine.warp),
                )
                race = machine.races.read if load else machine.races.write
                race(cells, program[..., None], warp[..., None], str(machine.now))
        words, index = memory.view(word), flat // unit
        if load:
            for i, place in enumerate(places):
                if place is not None:
                    machine.put(place, fit(words[index + i], kind, widths[i]), on)
            return
        for i, source in enumerate(sources):
            value, place = source(machine).astype(word, copy=False), index + i
            if on is not None:
                value, place = machine.full(value)[on], place[on]
            words[place] = value
            if machine.races is not None and (other := words[place] != value).any():
                machine.report(
                    "one place is written",
                    f"{machine.now}: at once by threads that differ in what they write",
                    int(other.sum()),
                )

    return run


def _watch(races: Any, load: bool, strong: bool, where: tuple[np.ndarray, ...], what: str) -> None:
    """Has the accesses to these cells looked at; `where` as `who` has it."""
    cells, program, mark = where
    if load:
        races.read(cells, program, mark, what, strong=strong)
    elif strong:  # an atomic that gives nothing back
        races.update(cells, program, what)
    else:
        races.write(cells, program, mark, what)


def who(machine: Any, flat: np.ndarray, size: int, on: Any) -> tuple[np.ndarray, ...]:
    """Cells of global memory that lanes access, their programs in the launch, and their marks."""
    cells, program, mark = lanes_of(
        on, machine.global_races.cells(flat, size), machine.full(machine.programs), machine.marks()
    )
    return cells, program[..., None], mark[..., None]


def lanes_of(on: Any, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return arrays if on is None else tuple(array[on] for array in arrays)


def shared_place(machine: Any, lanes: np.ndarray, size: int, on: Any) -> np.ndarray:
    """Places of lanes' shared accesses in the memory of the batch; raises CardRefuses for a bad one."""
    live = lanes if on is None else lanes[on]
    if (live & (size - 1)).any() or live.min() < 0 or live.max() + size > machine.size:
        raise CardRefuses(
            f"{machine.now}: a shared address outside a program's {machine.size} bytes, or no "
            f"multiple of its {size} bytes."
        )
    return (lanes if on is None else np.where(on, lanes, 0)) + machine.base


@family(
    r"fence\.(?:sc|acq_rel)\.(?:cta|cluster|gpu|sys)|fence\.mbarrier_init\.release\.cluster"
    r"|membar\.(?:cta|gl|sys)|createpolicy\.fractional\.L2::\w+(?:\.L2::\w+)?\.b64|prefetch\.global\.L[12]",
    *(0, 1, 2),
)
def _nothing(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """Order of memory between units, and hints: everything is in order here."""
    return lambda machine, on: None

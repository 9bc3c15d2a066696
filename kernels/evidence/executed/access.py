"""Loads and stores, and the fences between them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed.conversions import fit
from kernels.evidence.executed.counts import count_global, count_shared
from kernels.evidence.executed.flow import goes_only_into_stores
from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.global_races import DEVICE, PLAIN, SCOPES
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
    strong = (found[2] or "").strip(".")
    if strong and found[3] != "global":
        raise NotExecutable(one.form)
    return _moved(kernel, one, found[1] == "ld", found[3][:6], strong, found[4], found[5], found[6])


# In the first order of words Triton writes an atomic that changes nothing.
@family(
    r"ld\.(?:global\.(cta|cluster|gpu|sys)\.(acquire|relaxed)|acquire\.(cta|cluster|gpu|sys)\.global)"
    r"\.(b32|b64)",
    2,
)
def _ordered(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    strong = f"{found[2] or 'acquire'}.{found[1] or found[3]}"
    return _moved(kernel, one, True, "global", strong, "", None, found[4])


def _moved(
    kernel: Kernel,
    one: Instruction,
    load: bool,
    space: str,
    strong: str,
    policy: str,
    vectors: str | None,
    kind: str,
) -> Run:
    """A load or store; strong: what makes it so, "relaxed.gpu", or nothing."""
    policy = f"{strong}{policy}".strip(".")
    strength = SCOPES[strong.rpartition(".")[2]] if "." in strong else DEVICE if strong else PLAIN
    acquires = strong.startswith("acquire") and strength == DEVICE
    where, data = (one.operands[1], one.operands[0]) if load else one.operands[:2]
    names, unit = vector(data), WIDTH[kind] // 8
    if len(names) != int(vectors or 1):
        raise NotExecutable(f"{one.form} of {len(names)} registers")
    if len(names) * unit > (32 if space == "global" else 16):
        raise NotExecutable(one.form)
    get, size, word = address(kernel, where), len(names) * unit, UINT[unit * 8]
    direction = "load" if load else "store"
    places = [kernel.index.get(name) for name in names]
    widths = [kernel.width.get(name, 0) for name in names]
    only_stored = cache(lambda: goes_only_into_stores(kernel, one))
    sources = [] if load else [reader(kernel, name, kind.replace("f", "b")) for name in names]

    def run(machine: Any, on: Any) -> None:
        lanes = machine.full(get(machine))
        if space == "global":
            flat = machine.memory.checked(machine, lanes, size, on)
            memory = machine.memory.bytes
            if machine.counts is not None:
                count_global(machine, direction, lanes, size, on, policy)
            if machine.global_races is not None:
                where, what = who(machine, flat, size, on), str(machine.now)
                if not load:
                    machine.global_races.write(*where, what, strength=strength)
                else:
                    machine.global_races.read(*where, what, strength=strength, only_stored=only_stored)
                    if acquires:
                        synchronise(machine, lanes, machine.threads(on), "acquire")
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


def who(machine: Any, flat: np.ndarray, size: int, on: Any) -> tuple[np.ndarray, ...]:
    """Cells of global memory that lanes access, their programs in the launch, and their marks."""
    cells, program, mark = lanes_of(
        on, machine.global_races.cells(flat, size), machine.full(machine.programs), machine.marks()
    )
    return cells, program[..., None], mark[..., None]


def synchronise(machine: Any, lanes: np.ndarray, live: np.ndarray, order: str) -> None:
    """Each live lane acquires, releases, or both, at its address, among all programs."""
    programs, marks = machine.full(machine.programs)[live], machine.marks()[live]
    for program, where, mark in zip(programs, lanes[live], marks, strict=True):
        machine.global_races.synchronise(
            int(program),
            int(where),
            int(mark),
            acquire=order in ("acquire", "acq_rel"),
            release=order in ("release", "acq_rel"),
        )


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

"""Loads, stores, atomics and asynchronous copies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed import formats
from kernels.evidence.executed.conversions import fit
from kernels.evidence.executed.counts import count_global, count_shared
from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import address, reader
from kernels.evidence.executed.ptx import WIDTH, Instruction, Kernel, NotExecutable, vector

# Cache policies: they change no result, and are kept in the counts.
POLICY = r"((?:\.(?:L1::\w+|L2::\w+|ca|cg|cs|lu|cv|wb|wt|nc))*)"
KIND = r"(b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64)"


@family(rf"ld\.param\.{KIND}")
def _parameter(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    out, name = kernel.index[one.operands[0]], one.operands[1].strip("[]")
    width, kind = kernel.width[one.operands[0]], found[1]
    if name not in {name for _, name in kernel.parameters}:
        raise NotExecutable(f"{one.form} of {name}")
    return lambda machine, on: machine.put(out, fit(machine.arguments[name], kind, width), on)


@family(rf"(ld|st)\.(global|shared(?:::cta)?){POLICY}(?:\.v([24]))?\.{KIND}")
def _access(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    load, space, policy, kind = found[1] == "ld", found[2][:6], found[3].strip("."), found[5]
    where, data = (one.operands[1], one.operands[0]) if load else one.operands[:2]
    names, unit = vector(data), WIDTH[kind] // 8
    if len(names) != int(found[4] or 1):
        raise NotExecutable(f"{one.form} of {len(names)} registers")
    if len(names) * unit > (32 if space == "global" else 16):  # 32 on Blackwell
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
                cells, program = _on(
                    on, machine.global_races.cells(flat, size), machine.full(machine.programs)
                )
                race = machine.global_races.read if load else machine.global_races.write
                race(cells, program[..., None], str(machine.now))
        else:
            flat = shared_place(machine, lanes, size, on)
            memory = machine.shared
            if machine.counts is not None:
                count_shared(machine, direction, lanes, size, on)
            if machine.races is not None:
                cells, program, warp = _on(
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


def _on(on: Any, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
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


# -------------------------------------------------------------------------------------- atomics

_COMBINE = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_WHOLE, _BITS = ("u32", "s32", "u64", "s64"), ("b32", "b64")
_KINDS = {
    "add": ("u32", "s32", "u64", "f32", "f64", "bf16x2", "f16x2"),
    "min": _WHOLE,
    "max": _WHOLE,
    **dict.fromkeys(("and", "or", "xor", "exch", "cas"), _BITS),
}
_ORDER = r"(?:\.(relaxed|acquire|release|acq_rel))?(?:\.(?:gpu|sys|cta|cluster))?"


@family(
    rf"(atom|red)(?:\.global)?{_ORDER}(?:\.global)?{_ORDER}\.(add|min|max|and|or|xor|exch|cas)"
    r"(?:\.noftz)?(?:\.v([24]))?\.(b32|b64|u32|s32|u64|s64|f32|f64|bf16x2|f16x2)"
)
def _atomic(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    returns, what, kind = found[1] == "atom", found[4], found[6]
    order = found[2] or found[3] or "relaxed"
    vector_of = {None: (kind,), "2": ("f32", "bf16x2", "f16x2"), "4": ("f32", "bf16x2", "f16x2")}[found[5]]
    if kind not in _KINDS[what] or kind not in vector_of or (not returns and what in ("exch", "cas")):
        raise NotExecutable(one.form)
    operands = one.operands if returns else ("_", *one.operands)
    outs = [kernel.index.get(name) for name in vector(operands[0])]
    get, plain = address(kernel, operands[1]), kind.replace("f", "b") if "x2" not in kind else "b32"
    values = [reader(kernel, name, plain) for name in vector(operands[2])]
    swap = reader(kernel, operands[3], plain) if what == "cas" else None
    unit = WIDTH[kind] // 8

    def combined(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        if what == "exch":
            return new
        if "x2" in kind:
            pairs = zip(formats.halves(old, kind), formats.halves(new, kind), strict=True)
            return formats.packed(*(a + b for a, b in pairs), kind)
        return formats.bits(_COMBINE[what](formats.numbers(old, kind), formats.numbers(new, kind)), kind)

    def run(machine: Any, on: Any) -> None:
        lanes = machine.full(get(machine))
        machine.memory.checked(machine, lanes, unit * len(values), on)
        live = machine.threads(on)
        if machine.counts is not None:
            count_global(machine, "atomic", lanes, unit * len(values), on, order)
            machine.counts.atomics += int(live.sum())
        if machine.global_races is not None and order != "relaxed":
            _synchronise(machine, lanes, live, order)
        words = machine.memory.bytes.view(UINT[unit * 8])
        for i, value in enumerate(values):
            at, new = lanes[live] // unit + i, machine.full(value(machine))[live]
            other = machine.full(swap(machine))[live] if swap else None
            old = np.empty_like(new)
            if what != "cas" and len(np.unique(at)) == len(at):
                old = words[at]
                words[at] = combined(old, new)
            else:  # lanes that meet at one address go one after another
                for k, place in enumerate(at):
                    old[k] = words[place]
                    if what == "cas":
                        words[place] = other[k] if old[k] == new[k] else old[k]
                    else:
                        words[place] = combined(old[k : k + 1], new[k : k + 1])[0]
            if returns and outs[min(i, len(outs) - 1)] is not None:
                result = np.zeros(machine.shape, old.dtype)
                result[live] = old
                machine.put(outs[i], result, live)

    return run


def _synchronise(machine: Any, lanes: np.ndarray, live: np.ndarray, order: str) -> None:
    programs = machine.full(machine.programs)[live]
    for program, where in zip(programs, lanes[live], strict=True):
        machine.global_races.synchronise(
            int(program),
            int(where),
            acquire=order in ("acquire", "acq_rel"),
            release=order in ("release", "acq_rel"),
        )


# ---------------------------------------------------------------------------- asynchronous copies


@dataclass
class Copy:
    """Bytes on their way into shared memory. group: the number of its group, in each program."""

    index: np.ndarray
    words: np.ndarray
    program: np.ndarray
    warp: np.ndarray
    cells: np.ndarray | None
    group: np.ndarray


@family(r"cp\.async\.(?:ca|cg)\.shared(?:::cta)?\.global(?:\.L2::(?:64|128|256)B)?")
def _copy(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """It lands at its wait, as late as it may. A last operand says how many of its bytes are not zeros."""
    to, of = (address(kernel, text) for text in one.operands[:2])
    size = int(one.operands[2], 0)
    filled = reader(kernel, one.operands[3]) if len(one.operands) == 4 else None
    if len(one.operands) > 4:
        raise NotExecutable(one.form)
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
                cells, program = _on(
                    reads, machine.global_races.cells(safe, size), machine.full(machine.programs)
                )
                machine.global_races.read(cells, program[..., None], str(machine.now))
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
        machine.copies.append(Copy(index, words[live], program, warp, cells, machine.copy_groups.copy()))

    return run


@family(r"cp\.async\.commit_group")
def _commit(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    def run(machine: Any, on: Any) -> None:
        machine.copy_groups[machine.active(on)] += 1

    return run


@family(r"cp\.async\.wait_(group|all)")
def _wait(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    newest = int(one.operands[0], 0) if found[1] == "group" else -1  # all: also what no commit has followed

    def run(machine: Any, on: Any) -> None:
        over = np.where(machine.active(on), machine.copy_groups - newest, 0)  # groups below it have landed
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


@family(r"fence\.proxy\.async(?:\.(?:global|shared::(?:cta|cluster)))?")
def _proxy(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    def run(machine: Any, on: Any) -> None:
        if machine.races is not None:
            machine.races.fence(machine.active(on))

    return run


@family(
    r"fence\.(?:sc|acq_rel)\.(?:cta|cluster|gpu|sys)|fence\.mbarrier_init\.release\.cluster"
    r"|membar\.(?:cta|gl|sys)|createpolicy\.fractional\.L2::\w+(?:\.L2::\w+)?\.b64|prefetch\.global\.L[12]"
)
def _nothing(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """Order of memory between units, and hints: everything is in order here."""
    return lambda machine, on: None

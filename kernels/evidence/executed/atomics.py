"""Atomics on global memory: atom and red."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernels.evidence.executed import formats
from kernels.evidence.executed.access import synchronise, who
from kernels.evidence.executed.counts import count_global
from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.global_races import DEVICE, SCOPES
from kernels.evidence.executed.operands import address, reader
from kernels.evidence.executed.ptx import WIDTH, Instruction, Kernel, NotExecutable, vector
from kernels.evidence.executed.warp import REDUCE

_WHOLE, _BITS = ("u32", "s32", "u64", "s64"), ("b32", "b64")
_KINDS = {
    "add": ("u32", "s32", "u64", "f32", "f64", "bf16x2", "f16x2"),
    "min": _WHOLE,
    "max": _WHOLE,
    **dict.fromkeys(("and", "or", "xor", "exch", "cas"), _BITS),
}
_ORDER = r"(?:\.(relaxed|acquire|release|acq_rel))?(?:\.(gpu|sys|cta|cluster))?"


@family(
    rf"(atom|red)(?:\.global)?{_ORDER}(?:\.global)?{_ORDER}\.(add|min|max|and|or|xor|exch|cas)"
    r"(?:\.noftz)?(?:\.v([24]))?\.(b32|b64|u32|s32|u64|s64|f32|f64|bf16x2|f16x2)",
    *(2, 3, 4),
)
def _atomic(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    returns, what, kind = found[1] == "atom", found[6], found[8]
    order, strength = found[2] or found[4] or "relaxed", SCOPES[found[3] or found[5] or "gpu"]
    vector_of = {None: (kind,), "2": ("f32", "bf16x2", "f16x2"), "4": ("f32", "bf16x2", "f16x2")}[found[7]]
    if kind not in _KINDS[what] or kind not in vector_of or (not returns and what in ("exch", "cas")):
        raise NotExecutable(one.form)
    operands = one.operands if returns else ("_", *one.operands)
    if len(operands) != 3 + (what == "cas") or len(vector(operands[2])) != int(found[7] or 1):
        raise NotExecutable(f"{one.form} ({', '.join(one.operands)[:80]})")
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
        return formats.bits(REDUCE[what](formats.numbers(old, kind), formats.numbers(new, kind)), kind)

    def run(machine: Any, on: Any) -> None:
        lanes = machine.full(get(machine))
        flat = machine.memory.checked(machine, lanes, unit * len(values), on)
        live = machine.threads(on)
        if machine.counts is not None:
            count_global(machine, "atomic", lanes, unit * len(values), on, order)
            machine.counts.atomics += int(live.sum())
        if machine.global_races is not None:
            where = who(machine, flat, unit * len(values), on)
            machine.global_races.write(*where, str(machine.now), strength=strength)
            if order != "relaxed" and strength == DEVICE:
                synchronise(machine, lanes, live, order)
        words = machine.memory.bytes.view(UINT[unit * 8])
        for i, value in enumerate(values):
            at, new = flat[live] // unit + i, machine.full(value(machine))[live]
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

"""Instructions in which the threads of a warp see each other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernels.evidence.executed import formats
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import reader
from kernels.evidence.executed.ptx import WARP, Instruction, Kernel, NotExecutable

LANES = np.arange(WARP)
REDUCE = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@family(r"shfl\.sync\.(bfly|idx|up|down)\.b32", 5)
def _shuffle(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """The value of another lane, in segments that the clamp's upper bits make (PTX ISA, shfl.sync)."""
    mode, names = found[1], [name.strip() for name in one.operands[0].split("|")]
    outs = [kernel.index.get(name) for name in names]
    get, by, clamp = (reader(kernel, text) for text in one.operands[1:4])

    def run(machine: Any, on: Any) -> None:
        values, shift = (machine.full(x(machine)).reshape(-1, WARP) for x in (get, by))
        shift, bound = shift.astype(np.int64) & 31, int(clamp(machine).flat[0])
        top, segment = bound & 31, bound >> 8 & 31
        low = LANES & segment
        last = low | (top & ~segment & 31)
        source = {
            "bfly": LANES ^ shift,
            "idx": low | (shift & ~segment & 31),
            "down": LANES + shift,
            "up": LANES - shift,
        }[mode]
        inside = source >= last if mode == "up" else source <= last
        values = np.take_along_axis(values, np.where(inside, source, LANES), 1)
        if outs[0] is not None:
            machine.put(outs[0], values.reshape(machine.shape), on)
        if len(outs) > 1:
            machine.put(outs[1], inside.reshape(machine.shape), on)

    return run


@family(r"elect\.sync", 2)
def _elect(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """The lowest active lane of each warp is elected."""
    outs = [kernel.index.get(name.strip()) for name in one.operands[0].split("|")]
    if len(outs) != 2:
        raise NotExecutable(f"{one.form} ({one.operands[0]})")

    def run(machine: Any, on: Any) -> None:
        live = machine.threads(on).reshape(-1, WARP)
        first = live.argmax(1)
        if outs[0] is not None:
            machine.put(outs[0], np.repeat(first, WARP).reshape(machine.shape).astype(np.uint32), on)
        if outs[1] is not None:
            machine.put(outs[1], ((first[:, None] == LANES) & live).reshape(machine.shape), on)

    return run


@family(
    r"redux\.sync\.(?:(add|min|max)\.(u32|s32)|(and|or|xor)\.(b32)|(min|max)(\.NaN)?\.(f32))",
    3,
)
def _reduce(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """One value of all lanes of a warp; on sm_100 of floats too."""
    what, kind = found[1] or found[3] or found[5], found[2] or found[4] or found[7]
    out, get = kernel.index[one.operands[0]], reader(kernel, one.operands[1], kind.replace("f", "b"))
    function = REDUCE[what]
    if kind == "f32" and not found[6]:
        function = {"max": np.fmax, "min": np.fmin}[what]

    def run(machine: Any, on: Any) -> None:
        live = machine.threads(on).reshape(-1, WARP)
        if (live.any(1) != live.all(1)).any():
            raise NotExecutable(f"{machine.now} by a part of a warp: not known here.")
        values = formats.numbers(np.ascontiguousarray(machine.full(get(machine))).reshape(-1, WARP), kind)
        result = formats.bits(function.reduce(values, axis=1), kind)
        machine.put(out, np.repeat(result, WARP).reshape(machine.shape), on)

    return run

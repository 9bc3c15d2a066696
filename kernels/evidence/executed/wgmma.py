"""Hopper's asynchronous matrix product of four warps: wgmma.

The product is there at once; what hardware would still be reading and writing is remembered until the wait,
so that whoever touches it before is found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.evidence.executed.descriptors import fetch
from kernels.evidence.executed.formats import elements, is_multiplied
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.groups import closes
from kernels.evidence.executed.operands import integer, reader
from kernels.evidence.executed.ptx import WARP, Instruction, Kernel, NotExecutable, vector
from kernels.evidence.executed.races import Reading

THREADS = 128  # of a warpgroup


@dataclass
class Product:
    """A product on its way. registers: that it writes, of `programs` (a bool for each of the batch).

    group: the number, in each program, of the group it belongs to; readings: what it reads.
    """

    registers: frozenset[int]
    programs: np.ndarray
    group: np.ndarray
    readings: tuple[Reading, ...] = ()


def touched(machine: Any, one: Instruction, on: Any) -> None:
    """Reports an instruction that names a register which something in flight will write."""
    if one.form.startswith("wgmma"):
        return
    active = machine.active(on)
    if any((p.programs & active).any() and p.registers & one.registers for p in machine.products):
        machine.report("a register is used", f"{one}: a product that was not waited for will write it", 1)


@family(r"wgmma\.fence\.sync\.aligned", 0)
def _fence(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    return lambda machine, on: None


family(r"wgmma\.commit_group\.sync\.aligned", 0)(closes("product_groups"))


@family(r"wgmma\.wait_group\.sync\.aligned", 1)
def _wait(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    newest = integer(one.operands[0])

    def run(machine: Any, on: Any) -> None:
        over = machine.product_groups.over(machine.active(on), newest)
        waits = machine.threads(on).reshape(len(over), -1, WARP).any(2)
        for product in machine.products:
            ended = product.programs & (product.group < over)
            product.programs = product.programs & ~ended
            for reading in product.readings:
                machine.races.read_is_over(reading, waits & ended[:, None], own=True)
        machine.products = [p for p in machine.products if p.programs.any()]
        machine.unready = frozenset().union(*(p.registers for p in machine.products))

    return run


@family(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(16|32)\.f32\.(bf16|f16|e4m3|e5m2)\.(bf16|f16|e4m3|e5m2)",
    *(6, 7, 8),
)
def _multiply(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """d[64, n] = a[64, k] b[k, n] (+ d): d in registers, b in shared memory, a in either."""
    columns, depth, a_kind, b_kind = int(found[1]), int(found[2]), found[3], found[4]
    outs = [kernel.index[name] for name in vector(one.operands[0])]
    in_registers = one.operands[1].startswith("{")
    a = [reader(kernel, n) for n in vector(one.operands[1])] if in_registers else []
    a_at = None if in_registers else reader(kernel, one.operands[1], "b64")
    b_at, keep = reader(kernel, one.operands[2], "b64"), reader(kernel, one.operands[3], "pred")
    flags = [integer(text) for text in one.operands[4:]]  # signs of a and b, then who is transposed
    sign, transposed = flags[0] * flags[1], flags[2:]
    b_transposed = bool(transposed and transposed[-1])
    a_transposed = bool(not in_registers and transposed and transposed[0])
    if not is_multiplied(depth, a_kind, b_kind) or columns % 8 or not 8 <= columns <= 256:
        raise NotExecutable(one.form)
    if len(outs) != columns // 2 or (in_registers and len(a) != 4):
        raise NotExecutable(f"{one.form} of {len(outs)} registers")
    label = f"wgmma m64n{columns}k{depth}.{a_kind}" + (f".{b_kind}" if b_kind != a_kind else "")

    def run(machine: Any, on: Any) -> None:
        groups = machine.shape[1] // THREADS
        live = machine.threads(on).reshape(-1, THREADS)
        if (live.any(1) != live.all(1)).any():
            raise NotExecutable(f"{machine.now} by a part of a warpgroup: not known here.")
        who = np.flatnonzero(live[:, 0])
        programs, first_warp = who // groups, who % groups * 4

        def one_each(values: np.ndarray) -> np.ndarray:
            mine = machine.full(values).reshape(-1, THREADS)[who]
            if (mine != mine[:, :1]).any():
                raise NotExecutable(f"{machine.now}: descriptors differ within a warpgroup.")
            return mine[:, 0]

        def lanes(gets: list) -> np.ndarray:
            """Registers of each lane: [n, 4 warps, 8 g, 4 t, registers]."""
            return np.stack([machine.full(get(machine)).reshape(-1, 4, 8, 4)[who] for get in gets], -1)

        y, places = fetch(
            machine, one_each(b_at(machine)), programs, columns, depth, b_kind, b_transposed, "sm_90"
        )
        if in_registers:
            x = elements(lanes(a)[..., None], a_kind)
            x = x.reshape(len(who), 4, 8, 4, 2, 2, x.shape[-1]).transpose(0, 1, 5, 2, 4, 3, 6)
            x = np.ascontiguousarray(x).reshape(len(who), 64, depth)
        else:
            x, more = fetch(
                machine, one_each(a_at(machine)), programs, 64, depth, a_kind, a_transposed, "sm_90"
            )
            places = [*places, *more]
        d = sign * (x @ y.swapaxes(-1, -2))
        d = d.reshape(len(who), 4, 2, 8, columns // 8, 4, 2)  # [n, warp, half, g, j, t, element]
        d = d.transpose(4, 2, 6, 0, 1, 3, 5).reshape(columns // 2, len(who), THREADS)
        added = machine.full(keep(machine)).reshape(-1, THREADS)[who]
        for out, value in zip(outs, d, strict=True):
            old = machine.full(machine.registers[out]).view(np.float32).reshape(-1, THREADS)[who]
            value = np.ascontiguousarray(value + np.where(added, old, np.float32(0))).view(np.uint32)
            if len(who) < len(live):
                whole = np.zeros(live.shape, np.uint32)
                whole[who] = value
                value = whole
            machine.put(out, value.reshape(machine.shape), on)
        if machine.races is not None:
            readings = tuple(
                machine.races.read_by_tensor_core(at, programs[mine], first_warp[mine], str(machine.now))
                for at, mine in places
            )
            active = machine.active(on)
            machine.products.append(
                Product(frozenset(outs), active, machine.product_groups.current(), readings)
            )
            machine.unready |= frozenset(outs)
        if machine.counts is not None:
            machine.counts.product(machine.now, label, 2 * 64 * columns * depth * len(who))

    return run

"""Blackwell's matrix products and their tensor memory: tcgen05, of one program (cta_group::1).

Tensor memory is 128 lanes by 512 columns of 4 bytes. An address is lane << 16 | column; a warp reaches the 32
lanes of its place in its warpgroup only. One thread of a program starts a product; a commit lets an mbarrier
of shared memory know when all that was started before has ended.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed.barriers import arrive
from kernels.evidence.executed.descriptors import fetch
from kernels.evidence.executed.formats import elements
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import address, integer, reader
from kernels.evidence.executed.ptx import WARP, Instruction, Kernel, NotExecutable, vector
from kernels.evidence.executed.races import Reading

LANES, COLUMNS = 128, 512
SHAPE_BITS = 7 << 7 | 7 << 10 | 3 << 15 | 63 << 17 | 31 << 24  # of an instruction descriptor, and known here
SUMS_IN_FLOAT32 = 1 << 4
KINDS = {
    "f16": {0: "f16", 1: "bf16"},
    "f8f6f4": {0: "e4m3", 1: "e5m2"},
}  # codes of the instruction descriptor


@dataclass
class Load:
    """A load from tensor memory on its way: of these warps (a bool for each program and warp) and columns.

    Its registers need no wait, a card keeps who uses them waiting; what it reads must not be overwritten.
    """

    warps: np.ndarray
    first: int
    end: int


def _written(machine: Any, warps: np.ndarray, first: int, end: int) -> None:
    """These warps' lanes of columns first to end are written: reports loads that may still read them."""
    for load in machine.tensor.loads:
        if load.first < end and first < load.end and (load.warps & warps).any():
            machine.report(
                "tensor memory is written", f"{machine.now}: a load that nobody waited for reads it", 1
            )


class TensorMemory:
    """Of a batch: words [programs, 128, 512], made at the first allocation; free: each program's next column.

    loads: that no wait has followed; reading: what products of a program read that no commit
    has followed yet; committed: of (program, mbarrier), each with the phase that its end ends.
    """

    def __init__(self, programs: int) -> None:
        self.programs = programs
        self.words = np.zeros((0, LANES, COLUMNS), np.uint32)
        self.free = np.zeros(programs, np.int64)
        self.loads: list[Load] = []
        self.reading: dict[int, list[Reading]] = defaultdict(list)
        self.committed: dict[tuple[int, int], list[tuple[int, Reading]]] = defaultdict(list)
        self.barriers: dict[tuple[int, int], Any] = {}


@family(r"tcgen05\.alloc\.cta_group::1\.sync\.aligned\.shared::cta\.b32", 2)
def _allocate(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    get, columns = address(kernel, one.operands[0]), reader(kernel, one.operands[1])

    def run(machine: Any, on: Any) -> None:
        tensor = machine.tensor
        if not len(tensor.words):
            tensor.words = np.full((tensor.programs, LANES, COLUMNS), 0xFFFFFFFF, np.uint32)
        live, where = machine.threads(on), machine.full(get(machine))
        many = int(columns(machine).flat[0])
        for p in np.flatnonzero(live.any(1)):
            if tensor.free[p] + many > COLUMNS:
                raise CardRefuses(f"{machine.now}: {many} columns more than the {COLUMNS} of tensor memory.")
            thread = int(live[p].argmax())
            place = int(where[p, thread] + machine.base[p, 0])
            machine.shared.view(np.uint32)[place // 4] = tensor.free[p]
            if machine.races is not None:
                cells = machine.races.cells(np.array([place]), 4)
                machine.races.write(cells, np.array([[p]]), np.array([[thread // WARP]]), str(machine.now))
            tensor.free[p] += many

    return run


@family(
    r"tcgen05\.(?:dealloc|relinquish_alloc_permit)\.cta_group::1\.sync\.aligned(?:\.b32)?|tcgen05\.fence::\w+",
    *(0, 2),
)
def _nothing(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """Nothing is freed before the program's end: no kernel here allocates again."""
    return lambda machine, on: None


@family(r"tcgen05\.wait::(ld|st)\.sync\.aligned", 0)
def _wait(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    def run(machine: Any, on: Any) -> None:
        if found[1] == "ld":
            waits = machine.threads(on).reshape(len(machine.base), -1, WARP).any(2)
            for load in machine.tensor.loads:
                load.warps &= ~waits
            machine.tensor.loads = [load for load in machine.tensor.loads if load.warps.any()]

    return run


@family(r"tcgen05\.(ld|st)\.sync\.aligned\.(32x32b|16x32bx2)\.x(1|2|4|8|16|32|64|128)\.b32", 2, 3)
def _access(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """Each lane's registers are columns of its row; of 16x32bx2 the upper half warp begins further right."""
    load, halves = found[1] == "ld", found[2] == "16x32bx2"
    data, where, *step = one.operands if load else (one.operands[-1], *one.operands[:-1])
    if len(step) != halves:
        raise NotExecutable(f"{one.form} of {len(one.operands)} operands")
    further = integer(step[0]) if halves else 0
    names = vector(data)
    if len(names) != int(found[3]):
        raise NotExecutable(f"{one.form} of {len(names)} registers")
    outs = [kernel.index[name] for name in names] if load else []
    gets = [] if load else [reader(kernel, name) for name in names]
    get, lane = address(kernel, where), np.arange(WARP)

    def run(machine: Any, on: Any) -> None:
        live = machine.threads(on).reshape(-1, WARP)
        if (live.any(1) != live.all(1)).any():
            raise NotExecutable(f"{machine.now} by a part of a warp: not known here.")
        who = np.flatnonzero(live[:, 0])
        program, warp = who // machine.warps_each, who % machine.warps_each
        start = machine.full(get(machine)).reshape(-1, WARP)[who, 0]
        row = (start >> 16)[:, None] + (lane % 16 if halves else lane)
        column = (start & 0xFFFF)[:, None] + (lane // 16 * further if halves else 0 * lane)
        if (row // WARP != (warp % 4)[:, None]).any():
            raise CardRefuses(f"{machine.now}: a warp may only touch its own {WARP} lanes of tensor memory.")
        words = machine.tensor.words
        _inside(machine, column, len(names))
        for i, out in enumerate(outs):
            value = np.zeros(live.shape, np.uint32)
            value[who] = words[program[:, None], row, column + i]
            machine.put(out, value.reshape(machine.shape), on)
        for i, value in enumerate(gets):
            mine = machine.full(value(machine)).reshape(-1, WARP)[who]
            words[program[:, None], row, column + i] = mine
        if machine.races is not None:
            warps = live[:, 0].reshape(len(machine.base), -1)
            first, end = int(column.min()), int(column.max()) + len(names)
            columns = np.unique(np.array([0, further])) + np.arange(len(names))[:, None]
            cells = machine.races.cells_of_tensor(
                program[:, None], (warp % 4)[:, None], start[:, None] % 65536 + columns.reshape(1, -1)
            )
            touch = machine.races.read if load else machine.races.write
            touch(cells, program[:, None], warp[:, None], str(machine.now))
            if load:
                machine.tensor.loads.append(Load(warps.copy(), first, end))
            else:
                _written(machine, warps, first, end)

    return run


def _inside(machine: Any, first: Any, columns: int) -> None:
    if np.max(first) + columns > COLUMNS:
        raise CardRefuses(f"{machine.now}: outside the {COLUMNS} columns of tensor memory.")


@family(r"tcgen05\.commit\.cta_group::1\.mbarrier::arrive::one(?:\.shared::cluster)?\.b64", 1)
def _commit(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    get = address(kernel, one.operands[0])

    def run(machine: Any, on: Any) -> None:
        where, tensor = machine.full(get(machine)), machine.tensor
        for p, t in zip(*np.nonzero(machine.threads(on)), strict=True):
            place = int(p), int(where[p, t])
            barrier = arrive(machine, *place)
            # of a phase that is over: the product was there at once
            tensor.committed[place] += [(barrier.ended - 1, r) for r in tensor.reading.pop(int(p), [])]

    return run


@family(r"tcgen05\.mma\.cta_group::1\.kind::(f16|f8f6f4)", 5)
def _multiply(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """d[m, n] = a[m, k] b[k, n] (+ d): d in tensor memory, b in shared memory, a in either.

    The 32-bit instruction descriptor: kinds in bits 7-9 and 10-12, transposes in 15 and 16, n / 8 in 17-22,
    m / 16 in 24-28 (PTX ISA, "Instruction descriptor").
    """
    to, of, b_at, shape, keep = one.operands
    d_at, in_tensor_memory = address(kernel, to), of.startswith("[")
    a_at = address(kernel, of) if in_tensor_memory else reader(kernel, of, "b64")
    b_at, shape = reader(kernel, b_at, "b64"), reader(kernel, shape)
    keep = reader(kernel, keep, "pred")
    kinds, depth = KINDS[found[1]], 16 if found[1] == "f16" else 32

    def run(machine: Any, on: Any) -> None:
        live = machine.threads(on)
        if (live.sum(1) > 1).any():
            raise CardRefuses(f"{machine.now}: more than one thread of a program starts it.")
        for p in np.flatnonzero(live.any(1)):
            _product(machine, int(p), int(live[p].argmax()))

    def _product(machine: Any, p: int, t: int) -> None:
        def mine(get: Any) -> int:
            return int(machine.full(get(machine))[p, t])

        words, code, here = machine.tensor.words, mine(shape), np.array([p])
        m, n = (code >> 24 & 31) << 4, (code >> 17 & 63) << 3
        a_kind, b_kind = (kinds.get(code >> low & 7, "") for low in (7, 10))
        if code & ~SHAPE_BITS != SUMS_IN_FLOAT32 or m not in (64, 128) or not (a_kind and b_kind):
            raise NotExecutable(f"{machine.now}: instruction descriptor {code:#010x}: not known here.")
        lanes = np.arange(LANES) if m == LANES else np.arange(64) // 16 * 32 + np.arange(64) % 16
        b = np.array([mine(b_at)])
        y, places = fetch(machine, b, here, n, depth, b_kind, bool(code >> 16 & 1), "sm_100")
        if in_tensor_memory:
            at_a = mine(a_at)
            wide = depth * (1 if a_kind in ("e4m3", "e5m2") else 2) // 4
            _inside(machine, at_a & 0xFFFF, wide)
            x = elements(words[p, (at_a >> 16) + lanes, (at_a & 0xFFFF) : (at_a & 0xFFFF) + wide], a_kind)
        else:
            a = np.array([mine(a_at)])
            x, more = fetch(machine, a, here, m, depth, a_kind, bool(code >> 15 & 1), "sm_100")
            x, places = x[0], [*places, *more]
        at = mine(d_at)
        _inside(machine, at & 0xFFFF, n)
        rows, columns = (at >> 16) + lanes, slice(at & 0xFFFF, (at & 0xFFFF) + n)
        d = x @ y[0].T
        if machine.full(keep(machine))[p, t]:
            d = d + words[p, rows, columns].view(np.float32)
        words[p, rows, columns] = np.ascontiguousarray(d, np.float32).view(np.uint32)
        if machine.races is not None:
            _written(machine, np.arange(len(machine.base))[:, None] == p, columns.start, columns.stop)
            warp, quarters = np.array([t // WARP]), np.unique(rows // WARP)[:, None]
            touched = [
                (columns.start, n, True),
                *([(at_a & 0xFFFF, wide, False)] if in_tensor_memory else []),
            ]
            for first, many, writes in touched:
                cells = machine.races.cells_of_tensor(here[:, None], quarters, first + np.arange(many))
                machine.races.product_touches(cells, here, warp, str(machine.now), writes=writes)
            machine.tensor.reading[p] += [
                machine.races.read_by_tensor_core(one, here, warp, str(machine.now)) for one, _ in places
            ]
        if machine.counts is not None:
            where = " from tensor memory" if in_tensor_memory else ""
            label = f"tcgen05.mma m{m}n{n}k{depth}.{a_kind}{where}"
            machine.counts.product(machine.now, label, 2 * m * n * depth)

    return run

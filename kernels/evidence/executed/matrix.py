"""Matrices in a warp: ldmatrix, stmatrix and the tensor cores' mma.sync.

Lane 4 g + t of a warp holds, of each 8 x 8 matrix, the elements 2 t and 2 t + 1 of row g (PTX ISA, "Matrix
fragments for mma.m16n8k16"). Products are added in float32; a card's tensor cores round otherwise.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed.counts import wavefronts
from kernels.evidence.executed.formats import elements, is_multiplied
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import address, reader
from kernels.evidence.executed.ptx import WARP, Instruction, Kernel, NotExecutable, vector


def _rows(machine: Any, lanes: np.ndarray, count: int, on: Any) -> np.ndarray:
    """Places of the 8 rows of `count` matrices, [warps, count, 8]: lane 8 i + r has row r of matrix i."""
    lanes = machine.full(lanes)
    asked = lanes.reshape(-1, WARP)[:, : count * 8]
    if on is not None:  # a warp that does something else reads a harmless place
        asked = np.where(on.reshape(-1, WARP)[:, : count * 8], asked, 0)
    if (asked & 15).any() or asked.min() < 0 or asked.max() + 16 > machine.size:
        raise CardRefuses(
            f"{machine.now}: a shared address outside a program's memory, or no multiple of 16 bytes."
        )
    base = np.repeat(machine.base[:, 0], machine.warps_each)[:, None]
    return (asked + base).reshape(-1, count, 8)


def _seen(machine: Any, rows: np.ndarray, on: Any, kind: str) -> None:
    """Counts and races of the access to these rows; a matrix is one phase of 8 rows of 16 bytes."""
    live = slice(None) if on is None else on.reshape(-1, WARP).any(1)
    if machine.counts is not None:
        words = rows[live][..., None] // 4 + np.arange(4)
        wavefronts(machine, kind, words.reshape(len(words), -1, WARP))
    if machine.races is not None:
        cells = machine.races.cells(rows, 16)[live]
        warp = np.arange(len(rows))[live][:, None, None, None]
        race = machine.races.read if kind == "ldmatrix" else machine.races.write
        race(cells, warp // machine.warps_each, warp % machine.warps_each, str(machine.now))


@family(r"ldmatrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared(?:::cta)?\.b16", 2)
def _ldmatrix(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    outs, get = [kernel.index[name] for name in vector(one.operands[0])], address(kernel, one.operands[1])
    if len(outs) != int(found[1]):
        raise NotExecutable(f"{one.form} of {len(outs)} registers")

    def run(machine: Any, on: Any) -> None:
        rows = _rows(machine, get(machine), len(outs), on)
        _seen(machine, rows, on, "ldmatrix")
        if found[2]:  # lane 4 g + t gets column g of rows 2 t and 2 t + 1
            halves = machine.shared.view(np.uint16)[rows[..., None] // 2 + np.arange(8)].astype(np.uint32)
            pairs = halves.swapaxes(-1, -2).reshape(*rows.shape, 4, 2)
            words = pairs[..., 0] | pairs[..., 1] << np.uint32(16)
        else:
            words = machine.shared.view(np.uint32)[rows[..., None] // 4 + np.arange(4)]
        words = words.reshape(-1, len(outs), WARP)
        for i, out in enumerate(outs):
            machine.put(out, words[:, i].reshape(machine.shape), on)

    return run


@family(r"stmatrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared(?:::cta)?\.b16", 2)
def _stmatrix(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    get, gets = address(kernel, one.operands[0]), [reader(kernel, n) for n in vector(one.operands[1])]
    if len(gets) != int(found[1]):
        raise NotExecutable(f"{one.form} of {len(gets)} registers")

    def run(machine: Any, on: Any) -> None:
        rows = _rows(machine, get(machine), len(gets), on)
        _seen(machine, rows, on, "stmatrix")
        words = np.stack([machine.full(value(machine)).reshape(-1, WARP) for value in gets], 1)
        words = words.reshape(*rows.shape, 4)
        live = slice(None) if on is None else on.reshape(-1, WARP).any(1)
        if found[2]:
            pairs = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], -1).astype(np.uint16)
            halves = pairs.reshape(*rows.shape, 8).swapaxes(-1, -2)
            machine.shared.view(np.uint16)[(rows[..., None] // 2 + np.arange(8))[live]] = halves[live]
        else:
            machine.shared.view(np.uint32)[(rows[..., None] // 4 + np.arange(4))[live]] = words[live]

    return run


@family(
    r"mma\.sync\.aligned\.m16n8k(16|32)\.row\.col\.f32\.(bf16|f16|e4m3|e5m2)\.(bf16|f16|e4m3|e5m2)\.f32", 4
)
def _mma(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """d[16, 8] = a[16, k] b[k, 8] + c[16, 8], of one warp."""
    depth, a_kind, b_kind = int(found[1]), found[2], found[3]
    outs = [kernel.index[name] for name in vector(one.operands[0])]
    a, b, c = ([reader(kernel, name, "f32" if i == 2 else "b32") for name in vector(text)]
               for i, text in enumerate(one.operands[1:4]))  # fmt: skip
    if not is_multiplied(depth, a_kind, b_kind):
        raise NotExecutable(one.form)
    if (len(outs), len(a), len(b), len(c)) != (4, 4, 2, 4):
        raise NotExecutable(f"{one.form} of {len(a)} and {len(b)} registers")
    label = f"mma.sync m16n8k{depth}.{a_kind}" + (f".{b_kind}" if b_kind != a_kind else "")

    def lanes(machine: Any, gets: list) -> np.ndarray:
        """Registers of each lane: [warps, 8 g, 4 t, registers]."""
        return np.stack([machine.full(get(machine)).reshape(-1, 8, 4) for get in gets], -1)

    def run(machine: Any, on: Any) -> None:
        x = elements(lanes(machine, a)[..., None], a_kind)  # [warps, g, t, register, element]
        count, each = len(x), x.shape[-1]
        # register i is row g + 8 (i % 2), columns of half i // 2
        x = x.reshape(count, 8, 4, 2, 2, each).transpose(0, 4, 1, 3, 2, 5)
        x = np.ascontiguousarray(x).reshape(count, 16, depth)
        y = elements(lanes(machine, b)[..., None], b_kind).transpose(0, 3, 2, 4, 1)
        y = np.ascontiguousarray(y).reshape(count, depth, 8)
        z = lanes(machine, c).view(np.float32).reshape(count, 8, 4, 2, 2)
        z = z.transpose(0, 3, 1, 2, 4).reshape(count, 16, 8)
        d = (z + x @ y).reshape(count, 2, 8, 4, 2).transpose(1, 4, 0, 2, 3)
        d = np.ascontiguousarray(d).view(np.uint32).reshape(4, *machine.shape)
        for out, value in zip(outs, d, strict=True):
            machine.put(out, value, on)
        if machine.counts is not None:
            machine.counts.product(machine.now, label, 2 * 16 * 8 * depth * machine.warps(on))

    return run

"""Moves and conversions between formats: exact forms again."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernels.evidence.executed import formats
from kernels.evidence.executed.floating_point import flushed
from kernels.evidence.executed.formats import FP8, SINT, UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import reader
from kernels.evidence.executed.ptx import WIDTH, Instruction, Kernel, vector

# form -> (result, operand): whole numbers of another width, extended by the operand's sign.
WHOLE = {
    f"cvt.{to}.{of}": (to, of)
    for to in ("s16", "u16", "s32", "u32", "s64", "u64")
    for of in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
    if to != of
}
# Rounded to nearest even, or exact.
FLOATING = {
    "cvt.f32.bf16": ("f32", "bf16"),
    "cvt.f32.f16": ("f32", "f16"),
    "cvt.bf16.f16": ("bf16", "f16"),
    "cvt.rn.bf16.f32": ("bf16", "f32"),
    "cvt.rn.f16.f32": ("f16", "f32"),
    "cvt.rn.f32.s32": ("f32", "s32"),
    "cvt.rn.f32.u32": ("f32", "u32"),
    "cvt.rn.f32.s16": ("f32", "s16"),
    "cvt.rn.f32.s8": ("f32", "s8"),
    "cvt.rn.bf16.s32": ("bf16", "s32"),
    "cvt.rn.bf16.s16": ("bf16", "s16"),
    "cvt.rn.f16.s16": ("f16", "s16"),
}
# To a whole number, which may stay a float: form -> (result, operand, function).
TO_WHOLE = {
    f"cvt.{how}{flush}.{to}.{of}": (to, of, function)
    for how, function in {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}.items()
    for to in ("s32", "u32", "s64", "f32")
    for of, flush in (("f32", ""), ("f32", ".ftz"), ("f16", ""), ("bf16", ""))
    if of == "f32" or (how == "rzi" and to != "f32")
}
# d, high, low -> a pair; or a pair of 8-bit floats -> a pair of halves.
PAIRS = {
    "cvt.rn.bf16x2.f32": "bf16x2",
    "cvt.rn.f16x2.f32": "f16x2",
    "cvt.rn.satfinite.e4m3x2.f32": "e4m3x2",
    "cvt.rn.satfinite.e5m2x2.f32": "e5m2x2",
}
WIDER = {"cvt.rn.f16x2.e4m3x2": "e4m3", "cvt.rn.f16x2.e5m2x2": "e5m2"}


def _family(forms: Any, operands: int) -> Any:
    return family("|".join(map(re.escape, forms)), operands)


def fit(bits: np.ndarray, kind: str, width: int) -> np.ndarray:
    """Bits of `kind` in a register of `width` bits: cut, or extended by the sign where it has one."""
    if bits.dtype.itemsize * 8 == width:
        return bits
    if kind[0] == "s":
        return bits.view(SINT[bits.dtype.itemsize * 8]).astype(SINT[width]).view(UINT[width])
    return bits.astype(UINT[width])


@_family(WHOLE, 2)
def _whole(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    to, of = WHOLE[one.form]
    out, get = kernel.index[one.operands[0]], reader(kernel, one.operands[1], of)
    width = kernel.width[one.operands[0]]

    def run(machine: Any, on: Any) -> None:
        values = formats.numbers(get(machine), of)
        signed = of[0] == "s"
        bits = (values.astype(SINT[WIDTH[to]]) if signed else values).astype(UINT[WIDTH[to]])
        machine.put(out, fit(bits, to, width), on)

    return run


@_family(FLOATING, 2)
def _floating(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    to, of = FLOATING[one.form]
    out, get = kernel.index[one.operands[0]], reader(kernel, one.operands[1], of.replace("f", "b"))

    def run(machine: Any, on: Any) -> None:
        values = formats.numbers(get(machine), of)
        if of[0] == "s" and to in ("bf16", "f16"):
            values = formats.to_odd(values.astype(np.float64))  # or a whole number is rounded twice
        machine.put(out, formats.bits(values, to), on)

    return run


@_family(TO_WHOLE, 2)
def _to_whole(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """What is too large becomes the largest number; NaN is 0, and 2**63 of 64 bits (PTX ISA, "cvt")."""
    to, of, function = TO_WHOLE[one.form]
    out, get = kernel.index[one.operands[0]], reader(kernel, one.operands[1], of.replace("f", "b"))

    def run(machine: Any, on: Any) -> None:
        values = formats.numbers(get(machine), of)
        values = function(flushed(values) if ".ftz" in one.form else values)
        if to != "f32":
            values = _clamped(values.astype(np.float64), to)
        machine.put(out, formats.bits(values, to), on)

    return run


def _clamped(values: np.ndarray, to: str) -> np.ndarray:
    kind = np.dtype(f"{to.replace('s', 'int').replace('u', 'uint')}")
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    inside = (values > low) & (values < high)
    whole = np.where(inside, values, 0).astype(kind)
    whole = np.where(values >= high, kind.type(high), np.where(values <= low, kind.type(low), whole))
    nothing = kind.type(low if WIDTH[to] == 64 else 0)
    return np.where(np.isnan(values), nothing, whole).view(UINT[WIDTH[to]])


@_family(PAIRS, 3)
def _pair(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    kind, out = PAIRS[one.form], kernel.index[one.operands[0]]
    high, low = (reader(kernel, text, "b32") for text in one.operands[1:])

    def run(machine: Any, on: Any) -> None:
        first, second = (formats.numbers(get(machine), "f32") for get in (low, high))
        if kind[:-2] in FP8:
            codes = [formats.fp8(part, kind[:-2]).astype(np.uint16) for part in (first, second)]
            bits = codes[0] | codes[1] << np.uint16(8)
        else:
            bits = formats.packed(first, second, kind)
        machine.put(out, bits, on)

    return run


@_family(WIDER, 2)
def _wider(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    table, out = FP8[WIDER[one.form]], kernel.index[one.operands[0]]
    get = reader(kernel, one.operands[1], "b16")

    def run(machine: Any, on: Any) -> None:
        codes = get(machine).astype(np.uint32)
        low, high = (table[codes >> np.uint32(shift) & np.uint32(255)] for shift in (0, 8))
        machine.put(out, formats.packed(low, high, "f16x2"), on)

    return run


@family(r"mov\.(b16|b32|b64|u16|u32|u64|s32|f32|pred)|cvta\.to\.global\.(u64)|cvta\.global\.(u64)", 2)
def _mov(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    kind = next(filter(None, found.groups())).replace("f", "b")
    target, source = one.operands
    if target.startswith("{"):
        return _unpack(kernel, vector(target), source, kind)
    out = kernel.index[target]
    if source.startswith("{"):
        return _pack(kernel, out, vector(source), kind)
    get = reader(kernel, source, kind)
    if kind == "pred":
        return lambda machine, on: machine.put(out, get(machine), on)
    width = UINT[kernel.width[target]]
    return lambda machine, on: machine.put(out, get(machine).astype(width, copy=False), on)


def _unpack(kernel: Kernel, targets: list[str], source: str, kind: str) -> Run:
    places, get = [kernel.index.get(name) for name in targets], reader(kernel, source, kind)
    width = WIDTH[kind] // len(places)

    def run(machine: Any, on: Any) -> None:
        whole = get(machine)
        for i, place in enumerate(places):
            if place is not None:  # "_": nobody wants it
                machine.put(place, (whole >> whole.dtype.type(i * width)).astype(UINT[width]), on)

    return run


def _pack(kernel: Kernel, out: int, sources: list[str], kind: str) -> Run:
    width, whole = WIDTH[kind] // len(sources), UINT[WIDTH[kind]]
    gets = [reader(kernel, text, f"b{width}") for text in sources]

    def run(machine: Any, on: Any) -> None:
        parts = [get(machine).astype(whole) << whole(i * width) for i, get in enumerate(gets)]
        machine.put(out, np.bitwise_or.reduce(np.broadcast_arrays(*parts)), on)

    return run

"""Arithmetic, comparison and selection: a table of exact opcode forms.

Floating point is IEEE arithmetic, `fma` rounded once. Approximate functions (ex2, rsqrt, div.full) are
NumPy's: the last bit is not a card's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernels.evidence.executed import formats
from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import reader
from kernels.evidence.executed.ptx import WIDTH, Instruction, Kernel

SMALLEST_NORMAL = np.float32(2.0**-126)
MANTISSA_BEYOND_SINGLE = (1 << 29) - 1  # bits of a double that a single has not
HALF_A_STEP = 1 << 28  # such bits of what lies in the middle between two singles


@dataclass(frozen=True)
class Operation:
    """result and operands: PTX types; function: of numbers of those types, to such a number.

    special: counted as a result of the special-function unit (MUFU), one for each thread.
    """

    result: str
    operands: tuple[str, ...]
    function: Callable[..., np.ndarray]
    special: bool = False


# ---------------------------------------------------------------------------------- the functions


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of float32, rounded once. The product is exact in double precision, the sum may not be."""
    product = a.astype(np.float64) * b
    total = product + c
    middle = total.view(np.int64) & MANTISSA_BEYOND_SINGLE == HALF_A_STEP  # where a second rounding errs
    if (middle | (np.abs(total) < SMALLEST_NORMAL)).any():
        total = _sum_to_odd(product, c, total)
    return total.astype(np.float32)


def fma_of_halves(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of numbers of 16 bits, to odd in float32: it is still to be rounded."""
    product = a.astype(np.float64) * b
    return formats.to_odd(_sum_to_odd(product, c, product + c))


def _sum_to_odd(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    """total = a + b, made odd in its last bit where it is not exact: no later rounding sees a false middle.

    The error of the sum is Knuth's; rounding to odd is of Boldo and Melquiond, "Emulation of FMA" (2008).
    """
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    return np.where(inexact, bits + away, bits).view(np.float64)


def flushed(x: np.ndarray) -> np.ndarray:
    """Subnormal numbers as zeros of their sign (.ftz)."""
    return np.where(np.abs(x) < SMALLEST_NORMAL, np.copysign(np.float32(0), x), x)


def _ftz(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *x: flushed(function(*map(flushed, x)))


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return np.float32(1) / np.sqrt(x)


def _extreme(function: Callable, zeros: Callable) -> Callable[..., np.ndarray]:
    """max or min of two or three operands (sm_100); NumPy would take a third for the place of the result.

    +0 is above -0, which NumPy leaves open; zeros: of the bits of two equal numbers.
    """

    def of(a: np.ndarray, b: np.ndarray, *more: np.ndarray) -> np.ndarray:
        found = function(a, b)
        if (found == 0).any():
            equal = zeros(a.view(np.uint32), b.view(np.uint32)).view(np.float32)
            found = np.where(a == b, equal, found)
        return of(found, *more) if more else found

    return of


def divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whole division towards zero; by zero gives all ones, as NVIDIA's hardware does."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    quotient = np.floor_divide(a, safe)
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * safe != a))
    return np.where(zero, np.array(-1).astype(a.dtype), quotient).astype(a.dtype)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """With the sign of `a`; by zero gives `a`."""
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a product of 32-bit numbers."""
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    return (a.astype(wide) * b.astype(wide) >> wide(32)).astype(a.dtype)


def high64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a product of unsigned 64-bit numbers, from four 32-bit products."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    return a1 * b1 + (middle >> half) + (a0 * b1 + (middle & low) >> half)


def _wide(a: np.ndarray, b: np.ndarray, *plus: np.ndarray) -> np.ndarray:
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    product = a.astype(wide) * b.astype(wide)
    return product + plus[0] if plus else product


def shifted(x: np.ndarray, by: np.ndarray, *, left: bool) -> np.ndarray:
    """Amounts past the width count as the width, which NumPy and C leave undefined."""
    width = x.dtype.itemsize * 8
    inside = np.minimum(by, np.uint32(width - 1)).astype(x.dtype)
    moved = x << inside if left else x >> inside
    if left or x.dtype.kind != "i":
        moved = np.where(by >= width, x.dtype.type(0), moved)
    return moved


def extracted(x: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """bfe: `length` bits from `position` on, extended by their sign where `x` is signed (PTX ISA, bfe)."""
    width, signed = np.uint64(x.dtype.itemsize * 8), x.dtype.kind == "i"
    whole = x.view(UINT[int(width)]).astype(np.uint64)
    position, length = (v.astype(np.uint64) & np.uint64(255) for v in (position, length))
    mask = (np.uint64(1) << np.minimum(length, width)) - np.uint64(1)
    field = (
        np.where(position < width, whole >> np.minimum(position, width - np.uint64(1)), np.uint64(0)) & mask
    )
    if signed:
        top = np.minimum(position + length - np.uint64(1), width - np.uint64(1))
        negative = (whole >> top & np.uint64(1)).astype(bool) & (length > 0)
        seen = (np.uint64(1) << np.minimum(length, width - np.minimum(position, width))) - np.uint64(1)
        field = np.where(negative, field | ~seen, field)
    return field.astype(UINT[int(width)]).view(x.dtype)


# -------------------------------------------------------------------------------------- the table

TABLE: dict[str, Operation] = {}


def _add(forms: str, kinds: str, function: Callable[..., np.ndarray], count: int = 2, **more: Any) -> None:
    """forms: of one shape, "add.{}"; kinds: what stands in its place, which all operands have."""
    for kind in kinds.split():
        TABLE[forms.format(kind)] = Operation(kind, (kind,) * count, function, **more)


_add("add.{}", "f32 f32x2 s32 s64", np.add)
_add("sub.{}", "f32 f32x2 s32 s64", np.subtract)
_add("mul.{}", "f32 f32x2", np.multiply)
_add("add.rn.{}", "bf16x2 f16x2", np.add)
_add("sub.rn.{}", "bf16x2 f16x2", np.subtract)
_add("mul.rn.{}", "bf16x2 f16x2", np.multiply)
_add("fma.rn.{}", "f32 f32x2", fma, 3)
_add("fma.rn.{}", "bf16x2 f16x2", fma_of_halves, 3)
_add("fma.rn.ftz.{}", "f32", _ftz(fma), 3)
_add("div.full.{}", "f32", np.divide)
_add("neg.{}", "f32 s32", np.negative, 1)
_add("abs.{}", "f32", np.abs, 1)
EXTREMES = {f"{of}{nan}.f32" for of in ("max", "min") for nan in ("", ".NaN")}  # of two or three
_add("max.{}", "f32", _extreme(np.fmax, np.bitwise_and))
_add("min.{}", "f32", _extreme(np.fmin, np.bitwise_or))
_add("max.NaN.{}", "f32", _extreme(np.maximum, np.bitwise_and))
_add("min.NaN.{}", "f32", _extreme(np.minimum, np.bitwise_or))
_add("ex2.approx.{}", "f32", np.exp2, 1, special=True)
_add("ex2.approx.ftz.{}", "f32", _ftz(np.exp2), 1, special=True)
_add("rsqrt.approx.{}", "f32", _rsqrt, 1, special=True)
_add("rsqrt.approx.ftz.{}", "f32", _ftz(_rsqrt), 1, special=True)
_add("lg2.approx.{}", "f32", np.log2, 1, special=True)
_add("lg2.approx.ftz.{}", "f32", _ftz(np.log2), 1, special=True)
_add("max.{}", "s32 u32 s64 u64", np.maximum)
_add("min.{}", "s32 u32 s64 u64", np.minimum)
_add("div.{}", "s32 u32 s64 u64", divided)
_add("rem.{}", "s32 u32 s64 u64", remainder)
_add("mul.lo.{}", "s32 s64 u32 u64", np.multiply)
_add("mul.hi.{}", "s32 u32", high)
_add("mul.hi.{}", "u64", high64)
_add("mad.lo.{}", "s32 s64 u32 u64", lambda a, b, c: a * b + c, 3)
_add("and.{}", "b16 b32 b64 pred", np.bitwise_and)
_add("or.{}", "b16 b32 b64 pred", np.bitwise_or)
_add("xor.{}", "b16 b32 b64 pred", np.bitwise_xor)
_add("not.{}", "b16 b32 b64 pred", np.invert, 1)

for _narrow, _big in (("s32", "s64"), ("u32", "u64")):
    TABLE[f"mul.wide.{_narrow}"] = Operation(_big, (_narrow, _narrow), _wide)
    TABLE[f"mad.wide.{_narrow}"] = Operation(_big, (_narrow, _narrow, _big), _wide)
for _kind in ("b16", "b32", "b64"):
    TABLE[f"shl.{_kind}"] = Operation(_kind, (_kind, "b32"), partial(shifted, left=True))
for _kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
    TABLE[f"shr.{_kind}"] = Operation(_kind, (_kind, "b32"), partial(shifted, left=False))
for _kind in ("s32", "u32"):
    TABLE[f"bfe.{_kind}"] = Operation(_kind, (_kind, "b32", "b32"), extracted)
# Narrow operands, a wide last one and a wide result: the last suffix is the narrow type.
for _kind in ("bf16", "f16"):
    TABLE[f"add.rn.f32.{_kind}"] = Operation("f32", (_kind, "f32"), np.add)
    TABLE[f"sub.rn.f32.{_kind}"] = Operation("f32", (_kind, "f32"), np.subtract)
    TABLE[f"fma.rn.f32.{_kind}"] = Operation("f32", (_kind, _kind, "f32"), fma)


# ------------------------------------------------------------------------------------- comparisons

_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _ordered(compare: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """False with a NaN: also `ne`, which NumPy's != is not."""
    return lambda a, b: compare(a, b) & ~(np.isnan(a) | np.isnan(b))


def _unordered(compare: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda a, b: compare(a, b) | np.isnan(a) | np.isnan(b)


for _name, _compare in _COMPARE.items():
    for _kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
        TABLE[f"setp.{_name}.{_kind}"] = Operation("pred", (_kind, _kind), _compare)
    for _kind in ("b16", "b32", "b64") if _name in ("eq", "ne") else ():
        TABLE[f"setp.{_name}.{_kind}"] = Operation("pred", (_kind, _kind), _compare)
    TABLE[f"setp.{_name}.f32"] = Operation("pred", ("f32", "f32"), _ordered(_compare))
    TABLE[f"setp.{_name}u.f32"] = Operation("pred", ("f32", "f32"), _unordered(_compare))
for _kind in ("b16", "b32", "b64", "f32"):
    TABLE[f"selp.{_kind}"] = Operation(_kind, (_kind, _kind, "pred"), lambda a, b, p: np.where(p, a, b))


# ------------------------------------------------------------------------------------- the decoder


def as_numbers(bits: np.ndarray, kind: str) -> Any:
    """Register bits as what a function of the table takes; of packed types both numbers, on a last axis."""
    if kind == "pred":
        return bits
    if kind == "f32x2":  # a view of its own: on a broadcast array it would double the last axis
        return np.ascontiguousarray(bits)[..., None].view(np.float32)
    if kind in ("bf16x2", "f16x2"):
        return np.stack(formats.halves(bits, kind), -1)
    return formats.numbers(bits, kind)


def as_bits(values: np.ndarray, kind: str) -> np.ndarray:
    """What a function of the table gave, as register bits."""
    if kind == "pred":
        return values
    if kind == "f32x2":
        return np.ascontiguousarray(values, np.float32).view(np.uint64)[..., 0]
    if kind in ("bf16x2", "f16x2"):
        return formats.packed(values[..., 0], values[..., 1], kind)
    if values.dtype.kind == "i" and values.dtype.itemsize * 8 == WIDTH[kind]:
        return values.view(UINT[WIDTH[kind]])
    return formats.bits(values, kind)


def _decoded(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    operation = TABLE[one.form]
    kinds = operation.operands
    if len(one.operands) == 4 and one.form in EXTREMES:
        kinds = (*kinds, kinds[-1])
    out, result, function = kernel.index[one.operands[0]], operation.result, operation.function
    gets = [reader(kernel, text, kind) for text, kind in zip(one.operands[1:], kinds, strict=True)]
    pairs = list(zip(gets, kinds, strict=True))
    special = one.form.split(".")[0] if operation.special else ""

    def run(machine: Any, on: Any) -> None:
        values = function(*(as_numbers(get(machine), kind) for get, kind in pairs))
        machine.put(out, as_bits(values, result), on)
        if special and machine.counts is not None:
            machine.counts.special[special] += machine.live_threads(on)

    return run


family("|".join(map(re.escape, TABLE)))(_decoded)

"""Arithmetic, comparison and selection: a table of exact opcode forms.

Floating point is IEEE arithmetic, `fma` rounded once. Approximate functions (ex2, rsqrt, div.full) are
NumPy's: the last bit is not a card's. Each of them is one MUFU of the machine code for each thread, but
that a division by a number of the text has none. Whole numbers are divided by way of a reciprocal as well;
of that ptxas may keep parts from one division to the next, so it is not counted as special. Nor are the
exact div.rn and sqrt.rn, which are sequences of instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernels.evidence.executed import formats
from kernels.evidence.executed.floating_point import (
    extreme,
    fma,
    fma_of_halves,
    ftz,
    product_of_halves,
    reciprocal,
    reciprocal_root,
)
from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.integers import (
    divided,
    extracted,
    high,
    high64,
    permuted,
    remainder,
    shifted,
    wide,
)
from kernels.evidence.executed.operands import reader
from kernels.evidence.executed.ptx import WIDTH, Instruction, Kernel, NotExecutable


@dataclass(frozen=True)
class Operation:
    """result and operands: PTX types; function: of numbers of those types, to such a number.

    special: counted as a result of the special-function unit (MUFU), one for each thread. divides: only if
    the divisor's reciprocal is not there yet, which the unit gives and ptxas keeps.
    """

    result: str
    operands: tuple[str, ...]
    function: Callable[..., np.ndarray]
    special: bool = False
    divides: bool = False


# -------------------------------------------------------------------------------------- the table

TABLE: dict[str, Operation] = {}


def _add(forms: str, kinds: str, function: Callable[..., np.ndarray], count: int = 2, **more: Any) -> None:
    """forms: of one shape, "add.{}"; kinds: what stands in its place, which all operands have."""
    for kind in kinds.split():
        TABLE[forms.format(kind)] = Operation(kind, (kind,) * count, function, **more)


_add("add.{}", "f32 f32x2 s32 s64", np.add)
_add("sub.{}", "f32 f32x2 s32 s64", np.subtract)
_add("mul.{}", "f32 f32x2", np.multiply)
_add("add.rn.{}", "f32 f32x2 bf16x2 f16x2", np.add)
_add("sub.rn.{}", "f32 f32x2 bf16x2 f16x2", np.subtract)
_add("mul.rn.{}", "f32 f32x2", np.multiply)
_add("mul.rn.{}", "bf16x2 f16x2", product_of_halves)
_add("add.{}", "bf16 f16 bf16x2 f16x2", np.add)
_add("sub.{}", "bf16 f16 bf16x2 f16x2", np.subtract)
_add("mul.{}", "bf16 f16 bf16x2 f16x2", product_of_halves)
_add("fma.rn.{}", "f32 f32x2", fma, 3)
_add("fma.rn.{}", "bf16 f16 bf16x2 f16x2", fma_of_halves, 3)
_add("fma.rn.ftz.{}", "f32", ftz(fma), 3)
_add("neg.{}", "f32 s32", np.negative, 1)
_add("abs.{}", "f32", np.abs, 1)
_add("abs.ftz.{}", "f32", ftz(np.abs), 1)
_add("div.rn.{}", "f32", np.divide)
_add("sqrt.rn.{}", "f32", np.sqrt, 1)
EXTREMES = {f"{of}{nan}.f32" for of in ("max", "min") for nan in ("", ".NaN")}  # of two or three
_add("max.{}", "f32 bf16 f16 bf16x2 f16x2", extreme(np.fmax, np.bitwise_and))
_add("min.{}", "f32 bf16 f16 bf16x2 f16x2", extreme(np.fmin, np.bitwise_or))
_add("max.NaN.{}", "f32 bf16 f16 bf16x2 f16x2", extreme(np.maximum, np.bitwise_and))
_add("min.NaN.{}", "f32 bf16 f16 bf16x2 f16x2", extreme(np.minimum, np.bitwise_or))
_add("div.full.{}", "f32", np.divide, special=True, divides=True)
_add("div.full.ftz.{}", "f32", ftz(np.divide), special=True, divides=True)
_add("tanh.approx.{}", "f32", np.tanh, 1, special=True)
for _name, _function in {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": reciprocal,
    "rsqrt": reciprocal_root,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
}.items():
    _add(f"{_name}.approx.{{}}", "f32", _function, 1, special=True)
    _add(f"{_name}.approx.ftz.{{}}", "f32", ftz(_function), 1, special=True)
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
    TABLE[f"mul.wide.{_narrow}"] = Operation(_big, (_narrow, _narrow), wide)
    TABLE[f"mad.wide.{_narrow}"] = Operation(_big, (_narrow, _narrow, _big), wide)
for _kind in ("b16", "b32", "b64"):
    TABLE[f"shl.{_kind}"] = Operation(_kind, (_kind, "b32"), partial(shifted, left=True))
for _kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
    TABLE[f"shr.{_kind}"] = Operation(_kind, (_kind, "b32"), partial(shifted, left=False))
TABLE["prmt.b32"] = Operation("b32", ("b32",) * 3, permuted)
for _kind in ("s32", "u32", "s64", "u64"):
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


def _inverts(machine: Any, divisor: int) -> bool:
    """Whether the reciprocal of this register has to be made: not of a number of the text (-1), nor again.

    A register is replaced when it is written, so the same array is the same value.
    """
    if divisor < 0 or machine.inverted.get(divisor) is machine.registers[divisor]:
        return False
    machine.inverted[divisor] = machine.registers[divisor]
    return True


def _decoded(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    operation = TABLE[one.form]
    kinds = operation.operands
    if len(one.operands) == 4 and one.form in EXTREMES:
        kinds = (*kinds, kinds[-1])
    if len(one.operands) != 1 + len(kinds):
        raise NotExecutable(f"{one.form} of {len(one.operands)} operands")
    out, result, function = kernel.index[one.operands[0]], operation.result, operation.function
    gets = [reader(kernel, text, kind) for text, kind in zip(one.operands[1:], kinds, strict=True)]
    pairs = list(zip(gets, kinds, strict=True))
    special = one.form.split(".")[0] if operation.special else ""
    divisor = kernel.index.get(one.operands[2], -1) if operation.divides else None

    def run(machine: Any, on: Any) -> None:
        values = function(*(as_numbers(get(machine), kind) for get, kind in pairs))
        machine.put(out, as_bits(values, result), on)
        if special and machine.counts is not None and (divisor is None or _inverts(machine, divisor)):
            machine.counts.special[special] += machine.live_threads(on)

    return run


family("|".join(map(re.escape, TABLE)), 2, 3, 4)(_decoded)

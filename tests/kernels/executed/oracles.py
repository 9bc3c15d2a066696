"""What each arithmetic form has to give, in Python's own whole numbers: form -> Oracle.

Bits go in and come out as integers. Written from "Parallel Thread Execution ISA" (NVIDIA), form by form; a
form that is not here has no test, and test_forms.py says so.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tests.kernels.executed.floats import FORMATS, NAN, rounded

WIDTH = {f"{letter}{bits}": bits for letter in "bsu" for bits in (8, 16, 32, 64)}
WIDTH |= {kind: one.bits for kind, one in FORMATS.items()}
WIDTH |= {"f32x2": 64, "bf16x2": 32, "f16x2": 32, "pred": 1}
NORMAL = 2.0**-126
SPARE = -1  # any result will do: PTX leaves it open


@dataclass(frozen=True)
class Oracle:
    """result, operands: PTX types; of: bits -> bits, NAN or SPARE. near: how far off (relative) is right."""

    result: str
    operands: tuple[str, ...]
    of: Callable[..., int | str]
    near: float = 0.0


def number(code: int, kind: str) -> int | float | bool:
    """Bits as the number that they are."""
    if kind in FORMATS:
        return FORMATS[kind].number(code)
    if kind == "pred":
        return bool(code)
    return code - (1 << WIDTH[kind]) if kind[0] == "s" and code >> WIDTH[kind] - 1 else code


def code(value: int | float, kind: str) -> int | str:
    """A number as bits: whole numbers wrap, floats round."""
    return FORMATS[kind].code(value) if kind in FORMATS else int(value) & (1 << WIDTH[kind]) - 1


def _of_numbers(function: Callable[..., int | float], result: str, *operands: str, **more: float) -> Oracle:
    def of(*bits: int) -> int | str:
        values = (number(*each) for each in zip(bits, operands, strict=True))
        return code(function(*values), result)

    return Oracle(result, operands, of, **more)


def _fused(result: str, *operands: str, flush: bool = False, negate: bool = False) -> Oracle:
    """A product of the first operands plus the last one, rounded once. Two operands: their sum."""

    def of(*bits: int) -> int | str:
        *terms, plus = (number(*each) for each in zip(bits, operands, strict=True))
        if flush:
            terms, plus = [_flushed(term) for term in terms], _flushed(plus)
        found = rounded(result, tuple(terms), -plus if negate else plus)
        if flush and found != NAN:
            found = code(_flushed(number(found, result)), result)
        return found

    return Oracle(result, operands, of)


def _product(kind: str) -> Oracle:
    return Oracle(kind, (kind, kind), lambda a, b: rounded(kind, (number(a, kind), number(b, kind))))


def _each_half(one: Oracle, kind: str) -> Oracle:
    """`one` of the low and of the high number of packed pairs."""
    width = WIDTH[one.result]
    low = (1 << width) - 1

    def of(*bits: int) -> tuple[int | str, int | str]:
        return one.of(*(b & low for b in bits)), one.of(*(b >> width for b in bits))

    return Oracle(kind, (kind,) * len(one.operands), of)


def _flushed(value: float) -> float:
    return math.copysign(0.0, value) if abs(value) < NORMAL else value


def _approximate(function: Callable[[float], float], *, flush: bool, near: float) -> Oracle:
    def of(bits: int) -> int | str:
        value = number(bits, "f32")
        if flush:
            value = _flushed(value)
        found = code(function(value), "f32")
        return code(_flushed(number(found, "f32")), "f32") if flush and found != NAN else found

    return Oracle("f32", ("f32",), of, near)


def _power(x: float) -> float:
    return math.nan if math.isnan(x) else math.inf if x > 1000 else 2.0**x


def _logarithm(x: float) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    return -math.inf if x == 0 else math.inf if math.isinf(x) else math.log2(x)


def _one_over_root(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.nan if math.isnan(x) or x < 0 else 1 / math.sqrt(x)


def _divided(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(1, a) * math.copysign(math.inf, b)
    return a / b


def _exactly_divided(a: float, b: float) -> float | Fraction:
    ordinary = math.isfinite(a) and math.isfinite(b) and a != 0 != b
    return Fraction(a) / Fraction(b) if ordinary else _divided(a, b)


def _extreme(largest: bool, nan_wins: bool) -> Callable[..., float]:
    """max or min of two or three: +0 is above -0; a NaN is passed over, or wins."""

    def of(*values: float) -> float:
        numbers = [value for value in values if not math.isnan(value)]
        if not numbers or (nan_wins and len(numbers) < len(values)):
            return math.nan
        return (max if largest else min)(numbers, key=lambda value: (value, math.copysign(1, value)))

    return of


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _whole(kind: str, function: Callable[[int, int], int]) -> Oracle:
    def of(a: int, b: int) -> int:
        return code(function(number(a, kind), number(b, kind)), kind) if b else SPARE

    return Oracle(kind, (kind, kind), of)


def _shift(kind: str, *, left: bool) -> Oracle:
    """Past the width as far as the width, and no further."""

    def of(a: int, by: int) -> int:
        by = min(by, WIDTH[kind])
        return code(number(a, kind) << by if left else number(a, kind) >> by, kind)

    return Oracle(kind, (kind, "b32"), of)


def _field(kind: str) -> Oracle:
    """bfe, bit by bit as the PTX ISA's pseudo-code has it."""

    def of(a: int, position: int, length: int) -> int:
        position, length, top = position & 255, length & 255, WIDTH[kind] - 1
        signed = kind[0] == "s" and length > 0
        sign = a >> min(position + length - 1, top) & 1 if signed else 0
        inside = [i < length and position + i <= top for i in range(top + 1)]
        return sum((a >> position + i & 1 if ok else sign) << i for i, ok in enumerate(inside))

    return Oracle(kind, (kind, "b32", "b32"), of)


def _permutation(low: int, high: int, selector: int) -> int:
    """prmt in its default mode, with lists of bytes."""
    eight = [*low.to_bytes(4, "little"), *high.to_bytes(4, "little")]
    chosen = []
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = eight[nibble & 7]
        chosen.append((255 if byte & 128 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(chosen), "little")


def _comparison(compare: Callable[..., bool], kind: str, with_nan: bool = False) -> Oracle:
    def of(a: int, b: int) -> int:
        a, b = number(a, kind), number(b, kind)
        return int(with_nan if a != a or b != b else compare(a, b))

    return Oracle("pred", (kind, kind), of)


ORACLES: dict[str, Oracle] = {}

for _kind in ("s32", "s64"):
    ORACLES[f"add.{_kind}"] = _of_numbers(operator.add, _kind, _kind, _kind)
    ORACLES[f"sub.{_kind}"] = _of_numbers(operator.sub, _kind, _kind, _kind)
for _kind in ("s32", "u32", "s64", "u64"):
    ORACLES[f"max.{_kind}"] = _of_numbers(max, _kind, _kind, _kind)
    ORACLES[f"min.{_kind}"] = _of_numbers(min, _kind, _kind, _kind)
    ORACLES[f"div.{_kind}"] = _whole(_kind, _quotient)
    ORACLES[f"rem.{_kind}"] = _whole(_kind, lambda a, b: a - _quotient(a, b) * b)
    ORACLES[f"mul.lo.{_kind}"] = _of_numbers(operator.mul, _kind, _kind, _kind)
    ORACLES[f"mad.lo.{_kind}"] = _of_numbers(lambda a, b, c: a * b + c, _kind, _kind, _kind, _kind)
for _kind in ("s32", "u32", "u64"):
    ORACLES[f"mul.hi.{_kind}"] = _of_numbers(lambda a, b, w=WIDTH[_kind]: a * b >> w, _kind, _kind, _kind)
for _narrow, _wide in (("s32", "s64"), ("u32", "u64")):
    ORACLES[f"mul.wide.{_narrow}"] = _of_numbers(operator.mul, _wide, _narrow, _narrow)
    ORACLES[f"mad.wide.{_narrow}"] = _of_numbers(lambda a, b, c: a * b + c, _wide, _narrow, _narrow, _wide)
ORACLES["neg.s32"] = _of_numbers(operator.neg, "s32", "s32")
for _kind in ("b16", "b32", "b64", "pred"):
    ORACLES[f"and.{_kind}"] = _of_numbers(operator.and_, _kind, _kind, _kind)
    ORACLES[f"or.{_kind}"] = _of_numbers(operator.or_, _kind, _kind, _kind)
    ORACLES[f"xor.{_kind}"] = _of_numbers(operator.xor, _kind, _kind, _kind)
    ORACLES[f"not.{_kind}"] = Oracle(_kind, (_kind,), lambda a, w=WIDTH[_kind]: a ^ (1 << w) - 1)
for _kind in ("b16", "b32", "b64"):
    ORACLES[f"shl.{_kind}"] = _shift(_kind, left=True)
for _kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
    ORACLES[f"shr.{_kind}"] = _shift(_kind, left=False)
ORACLES["prmt.b32"] = Oracle("b32", ("b32",) * 3, _permutation)
for _kind in ("s32", "u32", "s64", "u64"):
    ORACLES[f"bfe.{_kind}"] = _field(_kind)
for _kind in ("b16", "b32", "b64", "f32"):
    ORACLES[f"selp.{_kind}"] = Oracle(_kind, (_kind, _kind, "pred"), lambda a, b, p: a if p else b)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _compare = getattr(operator, _name)
    for _kind in ("s16", "u16", "s32", "u32", "s64", "u64", "f32"):
        ORACLES[f"setp.{_name}.{_kind}"] = _comparison(_compare, _kind)
    ORACLES[f"setp.{_name}u.f32"] = _comparison(_compare, "f32", with_nan=True)
for _kind in ("b16", "b32", "b64"):
    ORACLES[f"setp.eq.{_kind}"] = _comparison(operator.eq, _kind)
    ORACLES[f"setp.ne.{_kind}"] = _comparison(operator.ne, _kind)

ORACLES["add.f32"] = _fused("f32", "f32", "f32")
ORACLES["sub.f32"] = _fused("f32", "f32", "f32", negate=True)
ORACLES["mul.f32"] = _product("f32")
ORACLES["fma.rn.f32"] = _fused("f32", "f32", "f32", "f32")
ORACLES["fma.rn.ftz.f32"] = _fused("f32", "f32", "f32", "f32", flush=True)
for _form in ("add", "sub", "mul"):
    ORACLES[f"{_form}.rn.f32"] = ORACLES[f"{_form}.f32"]  # not to be fused, and the same numbers
for _form in ("add", "sub", "mul", "add.rn", "sub.rn", "mul.rn", "fma.rn"):
    ORACLES[f"{_form}.f32x2"] = _each_half(ORACLES[f"{_form}.f32"], "f32x2")
for _kind in ("bf16", "f16"):
    _pair = f"{_kind}x2"
    ORACLES[f"add.rn.{_pair}"] = _each_half(_fused(_kind, _kind, _kind), _pair)
    ORACLES[f"sub.rn.{_pair}"] = _each_half(_fused(_kind, _kind, _kind, negate=True), _pair)
    ORACLES[f"mul.rn.{_pair}"] = _each_half(_product(_kind), _pair)
    ORACLES[f"fma.rn.{_pair}"] = _each_half(_fused(_kind, _kind, _kind, _kind), _pair)
    ORACLES[f"add.{_kind}"] = _fused(_kind, _kind, _kind)
    ORACLES[f"sub.{_kind}"] = _fused(_kind, _kind, _kind, negate=True)
    ORACLES[f"mul.{_kind}"] = _product(_kind)
    ORACLES[f"fma.rn.{_kind}"] = _fused(_kind, _kind, _kind, _kind)
    for _form in ("add", "sub", "mul"):
        ORACLES[f"{_form}.{_pair}"] = _each_half(ORACLES[f"{_form}.{_kind}"], _pair)
    ORACLES[f"add.rn.f32.{_kind}"] = _fused("f32", _kind, "f32")
    ORACLES[f"sub.rn.f32.{_kind}"] = _fused("f32", _kind, "f32", negate=True)
    ORACLES[f"fma.rn.f32.{_kind}"] = _fused("f32", _kind, _kind, "f32")
ORACLES["neg.f32"] = Oracle("f32", ("f32",), lambda a: a ^ 1 << 31)
ORACLES["abs.f32"] = Oracle("f32", ("f32",), lambda a: a & ~(1 << 31))
ORACLES["abs.ftz.f32"] = Oracle("f32", ("f32",), lambda a: code(abs(_flushed(number(a, "f32"))), "f32"))
for _largest, _name in ((True, "max"), (False, "min")):
    for _kind in ("f32", "bf16", "f16"):
        for _nan in ("", ".NaN"):
            _one = _of_numbers(_extreme(_largest, nan_wins=bool(_nan)), _kind, _kind, _kind)
            ORACLES[f"{_name}{_nan}.{_kind}"] = _one
            if _kind != "f32":
                ORACLES[f"{_name}{_nan}.{_kind}x2"] = _each_half(_one, f"{_kind}x2")
ORACLES["div.rn.f32"] = _of_numbers(_exactly_divided, "f32", "f32", "f32")
ORACLES["sqrt.rn.f32"] = _of_numbers(lambda x: math.nan if x < 0 else math.sqrt(x), "f32", "f32")
# As far from the true value as the PTX ISA lets hardware be.
ORACLES["div.full.f32"] = _of_numbers(_divided, "f32", "f32", "f32", near=2.0**-22)
ORACLES["div.full.ftz.f32"] = _of_numbers(
    lambda a, b: _flushed(float(_divided(_flushed(a), _flushed(b)))), "f32", "f32", "f32", near=2.0**-22
)
ORACLES["tanh.approx.f32"] = _approximate(math.tanh, flush=False, near=2.0**-11)
for _flush, _suffix in ((False, ""), (True, ".ftz")):
    for _name, _function in {
        "ex2": _power,
        "lg2": _logarithm,
        "rcp": lambda x: _divided(1.0, x),
        "rsqrt": _one_over_root,
        "sqrt": lambda x: math.nan if x < 0 else math.sqrt(x),
        "sin": lambda x: math.nan if math.isinf(x) else math.sin(x),
        "cos": lambda x: math.nan if math.isinf(x) else math.cos(x),
    }.items():
        ORACLES[f"{_name}.approx{_suffix}.f32"] = _approximate(_function, flush=_flush, near=2.0**-22)

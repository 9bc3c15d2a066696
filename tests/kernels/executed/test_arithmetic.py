"""Every arithmetic form on edges and random bits, against whole numbers and fractions."""

from __future__ import annotations

import itertools
import math
import zlib
from fractions import Fraction

import numpy as np
import pytest

from kernels.evidence.executed import arithmetic
from tests.kernels.executed import snippets
from tests.kernels.executed.floats import FORMATS, NAN
from tests.kernels.executed.oracles import ORACLES, SPARE, WIDTH, Oracle, number

HALF = {"f32x2": "f32", "bf16x2": "bf16", "f16x2": "f16"}
RANDOM = 200
A_NAN = 0x7FC00000


def edges(kind: str) -> list[int]:
    """Bits at which arithmetic goes wrong: zeros, infinities, NaN, subnormals, the ends of whole numbers."""
    if kind == "pred":
        return [0, 1]
    if kind in HALF:
        low, width = edges(HALF[kind]), WIDTH[HALF[kind]]
        return [a | b << width for a, b in zip(low, [*low[1:], low[0]], strict=True)]
    width = WIDTH[kind]
    if kind in FORMATS:
        one = FORMATS[kind]
        positive = [
            0,
            1,
            (1 << one.mantissa) - 1,  # the largest subnormal
            1 << one.mantissa,
            int(one.code(1.0)),
            int(one.code(1.0)) + 1,
            int(one.code(3.0)),
            one.largest,
            one.largest + 1,  # infinity
            one.largest + 2,  # NaN
            (1 << width - 1) - 1,
        ]
        return positive + [code | 1 << width - 1 for code in positive]
    return [0, 1, 2, 7, 15, 16, 31, 32, 33, 63, 64, 200, 255, 256, (1 << width - 1) - 1, 1 << width - 1,
            (1 << width - 1) + 1, (1 << width) - 2, (1 << width) - 1]  # fmt: skip


def anything(draw: np.random.Generator, kind: str) -> int:
    """Random bits."""
    return int.from_bytes(draw.bytes(8), "little") & (1 << WIDTH[kind]) - 1


def ordinary(draw: np.random.Generator, kind: str) -> int:
    """A float near 1, so that sums cancel and products round; any whole number."""
    if kind in HALF:
        return ordinary(draw, HALF[kind]) | ordinary(draw, HALF[kind]) << WIDTH[HALF[kind]]
    return int(FORMATS[kind].code(float(draw.normal()))) if kind in FORMATS else anything(draw, kind)


def samples(form: str, operands: tuple[str, ...]) -> list[list[int]]:
    """For each lane its operands' bits: edges with edges, random bits, ordinary numbers."""
    draw = np.random.default_rng(zlib.crc32(form.encode()))
    rows = list(itertools.product(*({code & (1 << WIDTH[k]) - 1 for code in edges(k)} for k in operands)))
    if len(rows) > 500:
        rows = [rows[i] for i in draw.integers(len(rows), size=500)]
    for of in (anything, ordinary):
        rows += [[of(draw, kind) for kind in operands] for _ in range(RANDOM)]
    return [list(row) for row in rows]


def bits(rows: list[list[int]], kinds: tuple[str, ...]) -> list[np.ndarray]:
    """Columns as registers have them."""
    return [
        np.array(column, bool if kind == "pred" else snippets.UINT[WIDTH[kind]])
        for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]


def right(found: int, wanted: int | str, kind: str, near: float) -> bool:
    if wanted == SPARE:
        return True
    if wanted == NAN:
        return math.isnan(number(found, kind))
    if near and found != wanted:
        got, value = number(found, kind), number(wanted, kind)
        return math.isfinite(value) and abs(Fraction(got) - Fraction(value)) <= near * max(
            abs(value), 2.0**-126
        )
    return found == wanted


def check(form: str, one: Oracle, operands: list[np.ndarray], found: np.ndarray) -> None:
    kind = HALF.get(one.result, one.result)
    for lane, result in enumerate(found):
        given, result = [int(values[lane]) for values in operands], int(result)
        wanted = one.of(*given)
        width = WIDTH[kind]
        parts = (
            [(result & (1 << width) - 1, wanted[0]), (result >> width, wanted[1])]
            if one.result in HALF
            else [(result, wanted)]
        )
        for got, want in parts:
            assert right(got, want, kind, one.near), (
                f"{form} of {[hex(b) for b in given]}: {got:#x}, not {want}"
            )


@pytest.mark.parametrize("form", ORACLES)
def test_a_form_gives_what_the_ptx_manual_says(form):
    one = ORACLES[form]
    operands = bits(samples(form, one.operands), one.operands)
    check(form, one, operands, snippets.results(form, WIDTH[one.result], operands))


def test_every_form_of_the_table_has_an_oracle():
    assert set(ORACLES) == set(arithmetic.TABLE)


EXTREMES = [form for form in ORACLES if form.startswith(("max", "min")) and form.endswith(".f32")]


@pytest.mark.parametrize("form", EXTREMES)
def test_three_operands_are_three_operands(form):
    """Pitfall: NumPy takes the third operand of sm_100's max and min for the place of its result."""
    operands = bits(samples(form, ("f32",) * 3), ("f32",) * 3)
    before, two = operands[2].copy(), ORACLES[form].of

    def three(a: int, b: int, c: int) -> int | str:
        first = two(a, b)
        return two(A_NAN if first == NAN else first, c)

    check(form, Oracle("f32", ("f32",) * 3, three), operands, snippets.results(form, 32, operands))
    np.testing.assert_array_equal(operands[2], before)


@pytest.mark.parametrize("form", ["sub.rn.f32.bf16", "add.rn.f32.f16"])
def test_the_last_suffix_of_a_mixed_form_is_its_narrow_operand(form):
    """Pitfall: the result has 32 bits, and so has the second operand."""
    narrow = FORMATS[form.split(".")[-1]].code(1.0)
    found = snippets.results(form, 32, [np.uint16([narrow]), np.float32([2.0**-20]).view(np.uint32)])
    assert found.view(np.float32) == (1 - 2.0**-20 if form.startswith("sub") else 1 + 2.0**-20)


@pytest.mark.parametrize("form", ["add.f32x2", "sub.f32x2", "mul.f32x2", "fma.rn.f32x2"])
def test_packed_numbers_may_be_the_same_for_all_threads_or_all_programs(form):
    """Pitfall: a view of a register that broadcasts doubles its last axis instead of adding one."""
    count = len(ORACLES[form].operands)
    names = [f"%rd{i}" for i in range(count)]
    state = snippets.here(body=f"{form} %rd9, {', '.join(names)};", programs=3)
    whole = np.random.default_rng(1).integers(1 << 63, size=(count, 3, 32)).astype(np.uint64)
    own = [whole[0, :, :1], whole[1, :1], whole[-1]][:count]  # of a program, of a thread, of each
    snippets.put(state, dict(zip(names, own, strict=True)))
    snippets.step(state)
    operands = [np.broadcast_to(one, (3, 32)).reshape(-1) for one in own]
    check(form, ORACLES[form], operands, snippets.get(state, "%rd9").reshape(-1))


def test_the_high_half_of_a_64_bit_product_needs_128_bits():
    """Pitfall: mul.hi.u64 by a shift of a 64-bit product is a no-op or anything."""
    a, b = 0xFFFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0001
    found = snippets.results("mul.hi.u64", 64, [np.array([a], np.uint64), np.array([b], np.uint64)])
    assert int(found[0]) == a * b >> 64


@pytest.mark.parametrize(("form", "wanted"), [("shl.b32", 0), ("shr.u32", 0), ("shr.s32", 0xFFFFFFFF)])
@pytest.mark.parametrize("by", [32, 33, 63, 64, 255, 2**31, 2**32 - 1])
def test_shifts_past_the_width_leave_zeros_or_signs(form, wanted, by):
    """Pitfall: NumPy and C leave them open; PTX does not."""
    assert snippets.results(form, 32, [np.uint32([0x80000001]), np.array([by], np.uint32)])[0] == wanted


def test_a_nan_is_neither_equal_nor_unequal():
    """Pitfall: PTX's ne is false with a NaN, NumPy's is true; neu is the unordered one."""
    a, b = np.uint32([A_NAN, 0]), np.uint32([0, A_NAN])
    assert not snippets.results("setp.ne.f32", 1, [a, b]).any()
    assert snippets.results("setp.neu.f32", 1, [a, b]).all()


SPECIAL = [form for form in ORACLES if ".approx" in form]


@pytest.mark.parametrize("form", SPECIAL)
def test_the_special_function_unit_is_counted_by_the_thread(form):
    state = snippets.here(body=f"{form} %r1, %r0;")
    snippets.step(state, np.arange(32)[None] < 5)
    assert state.counts.special == {form.split(".")[0]: 5}


@pytest.mark.parametrize(
    ("lines", "reciprocals"),
    [
        ("div.full.f32 %r1, %r2, %r3;", 1),
        ("div.full.f32 %r1, %r2, %r3; div.full.f32 %r4, %r5, %r3;", 1),  # kept
        ("div.full.f32 %r1, %r2, %r3; div.full.f32 %r4, %r2, %r5;", 2),
        ("div.full.f32 %r1, %r2, %r3; add.f32 %r3, %r3, %r3; div.full.f32 %r1, %r2, %r3;", 2),
        ("div.full.f32 %r1, %r2, 0f40400000;", 0),  # three: ptxas has its reciprocal
        ("div.full.ftz.f32 %r1, 0f3F800000, %r3;", 1),
    ],
)
def test_a_division_is_the_reciprocal_of_each_new_divisor(lines, reciprocals):
    state = snippets.here(body=lines)
    snippets.step(state)
    assert state.counts.special.total() == 32 * reciprocals

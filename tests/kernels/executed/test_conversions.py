"""Moves and conversions: every exact form on edges and random bits, or on every code there is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from kernels.evidence.executed import conversions
from tests.kernels.executed import snippets
from tests.kernels.executed.floats import FORMATS, NAN
from tests.kernels.executed.oracles import WIDTH, code, number
from tests.kernels.executed.snippets import UINT
from tests.kernels.executed.test_arithmetic import bits, edges, right, samples

WHOLE = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
# Of whole numbers every pair but a kind with itself, and none to 8 bits: those are moved as 16.
WHOLE_FORMS = {f"cvt.{to}.{of}": (to, of) for of in WHOLE for to in WHOLE[2:] if to != of}
ROUNDING_FORMS = {
    f"cvt.{how}{to}.{of}": (to, of)
    for how, to, of in [
        ("", "f32", "bf16"),
        ("", "f32", "f16"),
        ("", "bf16", "f16"),
        ("rn.", "bf16", "f32"),
        ("rn.", "f16", "f32"),
        ("rn.", "f32", "s32"),
        ("rn.", "f32", "u32"),
        ("rn.", "f32", "s16"),
        ("rn.", "f32", "s8"),
        ("rn.", "bf16", "s32"),
        ("rn.", "bf16", "s16"),
        ("rn.", "f16", "s16"),
    ]
}
TO_WHOLE_FORMS = {
    f"cvt.{how}{flush}.{to}.f32": ("f32", to, how)
    for how in ("rzi", "rni", "rmi", "rpi")
    for to in ("s32", "u32", "s64", "f32")
    for flush in ("", ".ftz")
} | {f"cvt.rzi.{to}.{of}": (of, to, "rzi") for of in ("f16", "bf16") for to in ("s32", "u32", "s64")}
PAIRED_FORMS = {
    "cvt.rn.bf16x2.f32": "bf16",
    "cvt.rn.f16x2.f32": "f16",
    "cvt.rn.satfinite.e4m3x2.f32": "e4m3",
    "cvt.rn.satfinite.e5m2x2.f32": "e5m2",
}
WIDENING_FORMS = {"cvt.rn.f16x2.e4m3x2": torch.float8_e4m3fn, "cvt.rn.f16x2.e5m2x2": torch.float8_e5m2}


def operands(form: str, kind: str) -> np.ndarray:
    if WIDTH[kind] == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    return bits(samples(form, (kind,)), (kind,))[0]


@pytest.mark.parametrize("form", [*WHOLE_FORMS, *ROUNDING_FORMS])
def test_a_conversion_keeps_the_number_or_rounds_it_once(form):
    to, of = (WHOLE_FORMS | ROUNDING_FORMS)[form]
    given = operands(form, of)[:: 1 if WIDTH[of] > 16 else 7]
    for bits_in, found in zip(given, snippets.results(form, WIDTH[to], [given]), strict=True):
        value = number(int(bits_in), of)
        value = float(value) if to in FORMATS else value  # these whole numbers have 32 bits at most
        assert right(int(found), code(value, to), to, 0.0), f"{form} of {bits_in:#x}: {found:#x}"


TOWARDS = {"rzi": int, "rni": round, "rmi": math.floor, "rpi": math.ceil}


def whole(value: float, how: str, to: str) -> int | float:
    """As "cvt" of the PTX ISA has it: clamped, NaN 0 or, of 64 bits, 2**63; a float keeps its sign."""
    if to == "f32":
        if not math.isfinite(value):
            return value
        return math.copysign(TOWARDS[how](value), value)
    width = WIDTH[to]
    if math.isnan(value):
        return 1 << 63 if width == 64 else 0
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if to[0] == "s" else (0, (1 << width) - 1)
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, TOWARDS[how](value)))


@pytest.mark.parametrize("form", TO_WHOLE_FORMS)
def test_a_float_becomes_a_whole_number_which_is_clamped(form):
    of, to, how = TO_WHOLE_FORMS[form]
    borders = [b for v in (0.5, 1.5, 2.5, 2.0**31, 2.0**32, 2.0**63, 2.0**31 - 128, 2.0**63 * 2, 123456.75)
               for b in (FORMATS[of].code(v), FORMATS[of].code(-v))]  # fmt: skip
    given = np.concatenate([operands(form, of), np.array(borders, UINT[WIDTH[of]])])
    for bits_in, found in zip(given, snippets.results(form, WIDTH[to], [given]), strict=True):
        value = number(int(bits_in), of)
        if ".ftz" in form and abs(value) < 2.0**-126:
            value = math.copysign(0.0, value)
        wanted = code(whole(value, how, to), to)
        assert right(int(found), wanted, to, 0.0), f"{form} of {bits_in:#x}: {found:#x}, not {wanted}"


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_every_half_is_widened_as_torch_does(kind):
    every = np.arange(1 << 16, dtype=np.uint16)
    wanted = torch.from_numpy(every).view({"bf16": torch.bfloat16, "f16": torch.float16}[kind]).float()
    found = snippets.results(f"cvt.f32.{kind}", 32, [every]).view(np.float32)
    np.testing.assert_array_equal(found, wanted.numpy())


@pytest.mark.parametrize("form", PAIRED_FORMS)
def test_two_numbers_become_a_pair_the_first_operand_on_top(form):
    """Pitfall: "cvt.rn.bf16x2.f32 d, high, low"."""
    kind, eight = PAIRED_FORMS[form], "satfinite" in form
    random = np.random.default_rng(2)
    middle = np.float32(random.normal(size=400) * 2.0 ** random.integers(-12, 12, 400)).view(np.uint32)
    given = np.concatenate([operands(form, "f32"), middle])
    high, low = given, np.roll(given, 1)
    width = FORMATS[kind].bits
    found = snippets.results(form, 2 * width, [high, low])
    for lane, both in enumerate(found):
        for name, part, of in (("high", int(both) >> width, high), ("low", int(both) % (1 << width), low)):
            wanted = FORMATS[kind].code(number(int(of[lane]), "f32"), saturate=eight)
            assert right(part, wanted, kind, 0.0), f"{form}, {name} of {of[lane]:#x}: {part:#x}"


@pytest.mark.parametrize("form", WIDENING_FORMS)
def test_every_pair_of_eight_bit_floats_becomes_a_pair_of_halves(form):
    low, high = (part.reshape(-1).astype(np.uint16) for part in np.meshgrid(*[np.arange(256)] * 2))
    found = snippets.results(form, 32, [low | high << 8])
    for got, given in ((found & 0xFFFF, low), (found >> 16, high)):
        wanted = torch.from_numpy(given.astype(np.uint8)).view(WIDENING_FORMS[form]).half().numpy()
        np.testing.assert_array_equal(got.astype(np.uint16).view(np.float16), wanted)


def test_a_whole_number_is_rounded_to_bf16_once():
    """2**30 + 2**22 + 1 lies above the middle of two bf16 numbers, and float32 has it in the middle."""
    found = snippets.results("cvt.rn.bf16.s32", 16, [np.uint32([2**30 + 2**22 + 1])])
    assert FORMATS["bf16"].number(int(found[0])) == 2**30 + 2**23


def test_every_form_of_the_tables_is_tested():
    tables = [getattr(conversions, name) for name in ("WHOLE", "FLOATING", "TO_WHOLE", "PAIRS", "WIDER")]
    tested = (WHOLE_FORMS, ROUNDING_FORMS, TO_WHOLE_FORMS, PAIRED_FORMS, WIDENING_FORMS)
    for table, mine in zip(tables, tested, strict=True):
        assert set(table) == set(mine)


# ------------------------------------------------------------------------------------------- mov

MOVES = {"b16": "%rh", "u16": "%rh", "b32": "%r", "u32": "%r", "s32": "%r", "f32": "%r", "b64": "%rd",
         "u64": "%rd"}  # fmt: skip


@pytest.mark.parametrize("kind", MOVES)
def test_a_move_keeps_all_bits(kind):
    given = np.array(edges(kind), UINT[WIDTH[kind]])
    np.testing.assert_array_equal(snippets.results(f"mov.{kind}", WIDTH[kind], [given]), given)


@pytest.mark.parametrize("form", ["cvta.to.global.u64", "cvta.global.u64"])
def test_an_address_is_the_same_in_global_and_in_generic_space(form):
    given = np.array(edges("u64"), np.uint64)
    np.testing.assert_array_equal(snippets.results(form, 64, [given]), given)


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("b32", "-1", 0xFFFFFFFF),
        ("b32", "0x80000000", 0x80000000),
        ("u32", "7U", 7),
        ("b32", "0f3F800000", 0x3F800000),
        ("f32", "0fFF800000", 0xFF800000),
        ("b64", "0d3FF0000000000000", 0x3FF0000000000000),
        ("b64", "-2", 2**64 - 2),
        ("b16", "-1", 0xFFFF),
        ("b16", "0x7FFF", 0x7FFF),
    ],
)
def test_an_immediate_is_read_by_its_type(kind, text, wanted):
    out = f"{MOVES[kind]}9"
    state = snippets.here(body=f"mov.{kind} {out}, {text};")
    snippets.step(state)
    assert (snippets.get(state, out) == wanted).all()
    assert snippets.get(state, out).dtype == UINT[WIDTH[kind]]


@pytest.mark.parametrize(("text", "holds"), [("-1", True), ("0", False), ("1", True)])
def test_a_predicate_may_be_moved_from_minus_one(text, holds):
    """Pitfall: `mov.pred %p, -1` is true."""
    state = snippets.here(body=f"mov.pred %p3, {text};")
    snippets.step(state)
    assert (snippets.get(state, "%p3") == holds).all()


@pytest.mark.parametrize(
    ("kind", "parts", "width"),
    [
        ("b32", "%rh{}", 16),
        ("b64", "%r{}", 32),
        ("b64", "%rh{}", 16),
        ("b16", "%rb{}", 8),
        ("b32", "%rb{}", 8),
    ],
)
def test_parts_are_packed_and_unpacked_lowest_first(kind, parts, width):
    whole, count = f"{MOVES[kind]}50", WIDTH[kind] // width
    listed = ", ".join(parts.format(i) for i in range(count))
    again = ", ".join(parts.format(i + 20) for i in range(count))
    state = snippets.here(body=f"mov.{kind} {whole}, {{{listed}}}; mov.{kind} {{{again}}}, {whole};")
    given = np.random.default_rng(3).integers(1 << width, size=(count, 32)).astype(UINT[width])
    snippets.put(state, {parts.format(i): given[i] for i in range(count)})
    snippets.step(state)
    wanted = [sum(int(given[i, lane]) << i * width for i in range(count)) for lane in range(32)]
    assert snippets.get(state, whole)[0].tolist() == wanted
    for i in range(count):
        np.testing.assert_array_equal(snippets.get(state, parts.format(i + 20))[0], given[i])


def test_a_part_that_nobody_wants_is_an_underscore():
    state = snippets.here(body="mov.b64 %rd1, 0x100000002; mov.b64 {_, %r1}, %rd1;")
    snippets.step(state)
    assert (snippets.get(state, "%r1") == 1).all()


def test_nan_is_a_nan_in_every_format():
    nan = np.uint32([0x7FFFFFFF, 0xFFC00000])
    for form, kind in ROUNDING_FORMS.items():
        if kind[1] == "f32":
            found = snippets.results(form, WIDTH[kind[0]], [nan])
            assert all(code(number(int(one), kind[0]), kind[0]) == NAN for one in found)


REFUSED = [
    f"{form} %r1, %r2"
    for form in ("cvt.rz.f32.s32", "cvt.rn.f64.s32", "cvt.f32.bf16x2", "mov.b128", "mov.v2.b32")
]
FORMS = [
    *WHOLE_FORMS,
    *ROUNDING_FORMS,
    *TO_WHOLE_FORMS,
    *PAIRED_FORMS,
    *WIDENING_FORMS,
    *(f"mov.{kind}" for kind in [*MOVES, "pred"]),
    "cvta.to.global.u64",
    "cvta.global.u64",
]

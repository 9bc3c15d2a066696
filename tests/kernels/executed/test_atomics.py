"""Atomics on global memory, form by form."""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np
import pytest

from tests.kernels.executed import snippets
from tests.kernels.executed.floats import FORMATS
from tests.kernels.executed.oracles import WIDTH, code, number
from tests.kernels.executed.test_access import REGISTER, START, at

ATOMIC_KINDS = {
    "add": ["u32", "s32", "u64", "f32", "f64", "bf16x2", "f16x2"],
    "min": ["u32", "s32", "u64", "s64"],
    "max": ["u32", "s32", "u64", "s64"],
    "and": ["b32", "b64"],
    "or": ["b32", "b64"],
    "xor": ["b32", "b64"],
    "exch": ["b32", "b64"],
}
FUNCTION = {"add": operator.add, "min": min, "max": max, "and": operator.and_, "or": operator.or_,
            "xor": operator.xor, "exch": lambda old, new: new}  # fmt: skip
ATOMIC_FORMS = [(what, kind) for what, kinds in ATOMIC_KINDS.items() for kind in kinds]


def combined(what: str, kind: str, old: int, new: int) -> int:
    """One atomic in whole numbers and exact sums (all values here are small)."""
    if "x2" in kind:
        parts = [combined(what, kind[:-2], old >> s & 0xFFFF, new >> s & 0xFFFF) for s in (0, 16)]
        return parts[0] | parts[1] << 16
    return int(code(FUNCTION[what](number(old, kind), number(new, kind)), kind))


def atomic_operands(kind: str, seed: int = 4) -> np.ndarray:
    """One value for each of 32 lanes; sums of floats are exact in any order."""
    draw = np.random.default_rng(seed)
    width = snippets.UINT[WIDTH[kind]]
    if kind in FORMATS or "x2" in kind:
        one = FORMATS[kind.removesuffix("x2")]
        codes = [int(one.code(float(v))) for v in draw.integers(-8, 8, 64)]
        pairs = zip(codes[::2], codes[1::2], strict=True)
        return np.array([a | b << 16 if "x2" in kind else a for a, b in pairs], width)
    return draw.integers(0, 1 << WIDTH[kind] - 1, 32, np.uint64, endpoint=True).astype(width) * width(2)


def run_atomic(
    form: str, kind: str, values: np.ndarray, start: np.ndarray, stride: int, swap: str = ""
) -> tuple:
    register, unit = REGISTER[WIDTH[kind]], WIDTH[kind] // 8
    move = f"b{WIDTH[kind]}"
    body = f"""{START} {at("%rd91", unit)} mov.b64 %rd85, %rd80; ld.global.{move} {register}10, [%rd85];
{at("%rd90", stride)} """
    returns = f"{register}20, " if form.startswith("atom") else ""
    body += f"{form} {returns}[%rd80], {swap}{register}10;"
    body += (f"st.global.{move} [%rd85], {register}20;" if returns else "") + "ret;"
    memory, result = start.copy(), values.copy()
    outcome = snippets.run(body, memory, result)
    return memory, result, outcome


@pytest.mark.parametrize(("what", "kind"), ATOMIC_FORMS)
def test_lanes_that_meet_at_one_address_go_one_after_another(what, kind):
    values = atomic_operands(kind)
    start = values[:1].copy()
    memory, old, outcome = run_atomic(f"atom.global.gpu.acq_rel.{what}.{kind}", kind, values, start, 0)
    steps = list(
        itertools.accumulate(values.tolist(), functools.partial(combined, what, kind), initial=int(start[0]))
    )
    assert old.tolist() == steps[:-1]
    assert memory[0] == steps[-1]
    assert outcome.counts.atomics == 32


@pytest.mark.parametrize(("what", "kind"), ATOMIC_FORMS)
def test_lanes_at_their_own_addresses_each_combine_with_what_is_there(what, kind):
    values, start = atomic_operands(kind), atomic_operands(kind, 5)
    form = f"atom.global.{what}{'.noftz' if 'x2' in kind else ''}.{kind}"
    memory, old, _ = run_atomic(form, kind, values, start, WIDTH[kind] // 8)
    wanted = [combined(what, kind, int(a), int(b)) for a, b in zip(start, values, strict=True)]
    assert old.tolist() == start.tolist()
    assert memory.tolist() == wanted


@pytest.mark.parametrize(("what", "kind"), [one for one in ATOMIC_FORMS if one[0] != "exch"])
def test_red_does_the_same_and_gives_nothing_back(what, kind):
    values, start = atomic_operands(kind), atomic_operands(kind, 5)
    memory, _, _ = run_atomic(f"red.global.gpu.relaxed.{what}.{kind}", kind, values, start, WIDTH[kind] // 8)
    assert memory.tolist() == [
        combined(what, kind, int(a), int(b)) for a, b in zip(start, values, strict=True)
    ]


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_compare_and_swap_lets_one_of_the_lanes_win(kind):
    values = np.arange(1, 33).astype(snippets.UINT[WIDTH[kind]])
    memory, old, _ = run_atomic(f"atom.global.acq_rel.gpu.cas.{kind}", kind, values, values[:1] * 0, 0, "0, ")
    assert memory[0] == 1
    assert old.tolist() == [0] + [1] * 31


SCOPES = ["", ".gpu", ".sys", ".cta", ".cluster"]
ORDERS = ["", ".relaxed", ".acquire", ".release", ".acq_rel"]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("order", ORDERS)
def test_order_and_scope_stand_before_or_behind_the_space(order, scope):
    values = np.ones(32, np.uint32)
    for form in (
        f"atom{order}{scope}.global.add.u32",
        f"atom.global{order}{scope}.add.u32",
        f"atom.global{scope}{order}.add.u32",
    ):
        assert run_atomic(form, "u32", values, np.zeros(1, np.uint32), 0)[0][0] == 32


@pytest.mark.parametrize("vector", [2, 4])
@pytest.mark.parametrize("verb", ["atom", "red"])
def test_a_vector_atomic_adds_to_each_of_its_numbers(verb, vector):
    """sm_90 packs fp32 atomics as .v4.f32."""
    values = [f"%r{10 + i}" for i in range(vector)]
    olds = [f"%r{20 + i}" for i in range(vector)]
    state = snippets.here(
        body=f"{verb}.global.gpu.acq_rel.add.v{vector}.f32 "
        + (f"{{{', '.join(olds)}}}, " if verb == "atom" else "")
        + f"[%rd1], {{{', '.join(values)}}};"
    )
    start = np.arange(32 * vector, dtype=np.float32)
    where = state.memory.put("y", start.view(np.uint8))
    added = np.random.default_rng(5).integers(-9, 9, (vector, 32)).astype(np.float32)
    snippets.put(state, {name: added[i].view(np.uint32) for i, name in enumerate(values)})
    snippets.put(state, {"%rd1": (where + 4 * vector * np.arange(32)).astype(np.uint64)})
    snippets.step(state)
    found = state.memory.get(where, start.nbytes).view(np.float32)
    np.testing.assert_array_equal(found, start + added.T.reshape(-1))
    for i, name in enumerate(olds if verb == "atom" else []):
        np.testing.assert_array_equal(snippets.get(state, name)[0].view(np.float32), start[i::vector])


REFUSED = """
atom.global.gpu.relaxed.min.f32 %r1, [%rd1], %r2
atom.global.and.f32 %r1, [%rd1], %r2
atom.global.add.b32 %r1, [%rd1], %r2
atom.global.cas.f32 %r1, [%rd1], %r2, %r3
atom.shared.add.u32 %r1, [%rd1], %r2
atom.global.max.bf16x2 %r1, [%rd1], %r2
atom.global.add.v2.u32 {%r1, %r2}, [%rd1], {%r3, %r4}
atom.global.v2.f32.add {%r1, %r2}, [%rd1], {%r3, %r4}
red.global.cas.b32 [%rd1], %r2, %r3
red.global.exch.b32 [%rd1], %r2
""".strip().splitlines()


FORMS = [
    *(f"atom.global.gpu.acq_rel.{what}.{kind}" for what, kind in ATOMIC_FORMS),
    *(f"red.global.gpu.relaxed.{what}.{kind}" for what, kind in ATOMIC_FORMS if what != "exch"),
    *(f"atom.global.acq_rel.gpu.cas.{kind}" for kind in ("b32", "b64")),
    *(f"atom{order}{scope}.global.add.u32" for order in ORDERS for scope in SCOPES),
    *(f"atom.global{order}{scope}.add.u32" for order in ORDERS for scope in SCOPES),
    *(f"atom.global{scope}{order}.add.u32" for order in ORDERS for scope in SCOPES),
    *(f"{verb}.global.gpu.acq_rel.add.v{vector}.f32" for verb in ("atom", "red") for vector in (2, 4)),
    *(f"atom.global.add.noftz.{kind}" for kind in ("bf16x2", "f16x2")),
    "atom.global.add.u32",
]

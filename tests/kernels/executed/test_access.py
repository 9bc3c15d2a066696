"""Loads, stores, atomics and asynchronous copies, form by form."""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np
import pytest

from kernels.evidence.executed.ptx import NotExecutable
from tests.kernels.executed import snippets
from tests.kernels.executed.floats import FORMATS
from tests.kernels.executed.oracles import WIDTH, code, number

KINDS = ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
REGISTER = {8: "%rh", 16: "%rh", 32: "%r", 64: "%rd"}  # PTX has no registers of 8 bits to compute in
START = "mov.u32 %r90, %tid.x; ld.param.b64 %rd90, [snippet_param_0]; ld.param.b64 %rd91, [snippet_param_1];"


def at(base: str, stride: int) -> str:
    """Lines that leave a thread's own address in %rd80."""
    return f"mul.wide.u32 %rd81, %r90, {stride}; add.s64 %rd80, {base}, %rd81;"


def listed(kind: str, vector: int) -> tuple[str, list[str]]:
    """The registers of an access and how it writes them."""
    names = [f"{REGISTER[WIDTH[kind]]}{i + 10}" for i in range(vector)]
    return (names[0] if vector == 1 else "{" + ", ".join(names) + "}"), names


def random_bytes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


ACCESSES = [
    (space, vector, kind)
    for space in ("global", "shared", "shared::cta")
    for vector in (1, 2, 4)
    for kind in KINDS
    if WIDTH[kind] * vector <= (256 if space == "global" else 128)  # bits; 256 on Blackwell
]


@pytest.mark.parametrize(("space", "vector", "kind"), ACCESSES)
def test_what_is_stored_is_loaded_again(space, vector, kind):
    """Elements of tensor0 go, one access a thread, into tensor1, by way of shared memory if that is asked."""
    size, (data, names) = WIDTH[kind] // 8 * vector, listed(kind, vector)
    form = (f".v{vector}" if vector > 1 else "") + f".{kind}"
    given, out = random_bytes(32 * size), np.zeros(32 * size, np.uint8)
    body = f"{START} {at('%rd90', size)} ld.global{form} {data}, [%rd80];"
    if space != "global":
        bits = max(16, WIDTH[kind])
        body += f"mul.lo.s32 %r91, %r90, {size}; st.{space}{form} [%r91], {data};"
        body += "".join(f"mov.b{bits} {name}, 0;" for name in names) + f"ld.{space}{form} {data}, [%r91];"
    body += f"{at('%rd91', size)} st.global{form} [%rd80], {data}; ret;"
    outcome = snippets.run(body, given, out, shared=1024)
    np.testing.assert_array_equal(out, given)
    for direction in ("load", "store"):
        assert outcome.counts.total("bytes", direction) == 32 * size


EXTENDED = [
    ("s8", 16),
    ("u8", 16),
    ("b8", 16),
    ("s8", 32),
    ("u8", 32),
    ("s16", 32),
    ("u16", 32),
    ("s32", 64),
    ("u32", 64),
]


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("kind", "register"), EXTENDED)
def test_a_narrow_load_is_extended_by_its_sign_or_by_zeros(kind, register, space):
    out = f"{REGISTER[register]}10"
    state = snippets.here(body=f"ld.{space}.{kind} {out}, [%rd80];", shared=1024)
    given = random_bytes(WIDTH[kind] // 8 * 32)
    start = state.memory.put("x", given) if space == "global" else 0
    state.shared[: given.size] = given
    snippets.put(state, {"%rd80": np.uint64(start) + np.arange(32, dtype=np.uint64) * (WIDTH[kind] // 8)})
    snippets.step(state)
    raw = given.view(snippets.UINT[WIDTH[kind]])
    wanted = [code(number(int(one), kind), f"u{register}") for one in raw]
    assert snippets.get(state, out)[0].tolist() == wanted


def test_a_store_writes_the_low_bits_of_a_wider_register():
    out = np.zeros(32, np.uint8)
    body = f"{START} mov.u32 %r1, 0x12345; {at('%rd90', 1)} st.global.b8 [%rd80], %r1; ret;"
    snippets.run(body, out, out.copy())
    assert set(out) == {0x45}


@pytest.mark.parametrize("sign", ["+", "+-"])
def test_an_address_has_an_offset_of_either_sign(sign):
    given = np.arange(64, dtype=np.uint32)
    state = snippets.here(body=f"ld.global.b32 %r1, [%rd1{sign}8];")
    snippets.put(state, {"%rd1": np.uint64([state.memory.put("x", given.view(np.uint8)) + 64])})
    snippets.step(state)
    assert (snippets.get(state, "%r1") == (14 if "-" in sign else 18)).all()


def test_a_part_of_a_vector_that_nobody_wants_is_an_underscore():
    state = snippets.here(body="ld.global.v2.b32 {_, %r1}, [%rd1];")
    snippets.put(state, {"%rd1": np.uint64([state.memory.put("x", np.uint32([1, 2]).view(np.uint8))])})
    snippets.step(state)
    assert (snippets.get(state, "%r1") == 2).all()


POLICIES = ".L1::no_allocate .L2::256B .L1::evict_last.L2::128B .nc .ca .cg .cs .lu .cv"
STORE_POLICIES = ".wb .wt .cg .cs .L1::evict_first"
COPY_POLICIES = ("", ".L2::64B", ".L2::128B", ".L2::256B")


@pytest.mark.parametrize("policy", POLICIES.split())
def test_a_cache_policy_changes_no_value_and_is_kept_in_the_counts(policy):
    state = snippets.here(body=f"ld.global{policy}.b32 %r1, [%rd1];")
    snippets.put(state, {"%rd1": np.uint64([state.memory.put("x", np.uint32([77]).view(np.uint8))])})
    snippets.step(state)
    assert (snippets.get(state, "%r1") == 77).all()
    assert state.counts.traffic["bytes", "load", "x", policy.strip(".")] == 128


@pytest.mark.parametrize("policy", STORE_POLICIES.split())
def test_a_store_has_a_cache_policy_too(policy):
    out = np.zeros(32, np.uint32)
    body = f"{START} {at('%rd90', 4)} st.global{policy}.b32 [%rd80], %r90; ret;"
    counts = snippets.run(body, out, out.copy()).counts
    assert out.tolist() == list(range(32))
    assert counts.traffic["bytes", "store", "tensor0", policy.strip(".")] == 128


STRONG = ["volatile", *(f"relaxed.{scope}" for scope in ("cta", "cluster", "gpu", "sys"))]


@pytest.mark.parametrize("how", STRONG)
def test_a_strong_access_moves_what_a_plain_one_moves(how):
    given, out = random_bytes(512), np.zeros(512, np.uint8)
    body = f"{START} {at('%rd90', 16)} ld.{how}.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd80];"
    body += f"{at('%rd91', 16)} st.{how}.global.v4.b32 [%rd80], {{%r1, %r2, %r3, %r4}}; ret;"
    counts = snippets.run(body, given, out).counts
    np.testing.assert_array_equal(out, given)
    assert counts.traffic["bytes", "load", "tensor0", how] == 512
    assert counts.traffic["bytes", "store", "tensor1", how] == 512
    assert counts.atomics == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_is_cut_or_extended_to_its_register(kind):
    register = {8: "%rh", 16: "%r", 32: "%rd", 64: "%rd"}[WIDTH[kind]]
    state = snippets.here(body=f"ld.param.{kind} {register}1, [snippet_param_0];", parameters=[kind])
    bits = (1 << WIDTH[kind]) - 3
    state.arguments["snippet_param_0"] = np.full((1, 1), bits, snippets.UINT[WIDTH[kind]])
    snippets.step(state)
    found = snippets.get(state, f"{register}1")
    assert (found == (code(-3, f"u{found.dtype.itemsize * 8}") if kind[0] == "s" else bits)).all()


def test_threads_whose_predicate_is_false_touch_nothing():
    """Their addresses may be anything."""
    state = snippets.here(body="mov.u32 %r1, 5; @%p1 ld.global.b32 %r1, [%rd1]; @!%p1 mov.u32 %r2, 6;")
    where = state.memory.put("x", np.uint32([9]).view(np.uint8))
    lane = np.arange(32)
    snippets.put(state, {"%rd1": np.where(lane < 3, where, 2**63 + 1).astype(np.uint64), "%p1": lane < 3})
    snippets.step(state)
    assert snippets.get(state, "%r1")[0].tolist() == [9] * 3 + [5] * 29
    assert snippets.get(state, "%r2")[0].tolist() == [0] * 3 + [6] * 29
    assert state.counts.total("bytes") == 12


IDLE = [
    ("st.shared.b32 [%r1], %r4;", 1),
    ("ld.shared.b32 %r2, [%r1];", 0),
    ("cp.async.ca.shared.global [%r1], [%rd1], 4;", 0),
    ("st.global.b32 [%rd2], %r2;", 1),
    ("ld.global.b32 %r2, [%rd2];", 0),
]


@pytest.mark.parametrize(("line", "writes"), IDLE)
@pytest.mark.parametrize("everybody", [False, True])
def test_idle_threads_race_with_nobody(line, writes, everybody):
    """Pitfall: a check that forgets the mask gives false alarms when programs of a batch diverge.

    Warp 0 of program 0, or every warp of both programs, is at the same place of its memory.
    """
    body = f"""{START} mov.u32 %r1, 0; mov.b64 %rd1, %rd90; mov.b64 %rd2, %rd91; mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %warpid; or.b32 %r4, %r4, %r3; setp.ne.u32 %p1, %r4, 0;
{"" if everybody else "@%p1 bra over;"} {line} over: ret;"""
    tensors = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    outcome = snippets.run(body, *tensors, threads=64, shared=64, grid=(2, 1, 1))
    assert bool(outcome.races) == (everybody and bool(writes))


@pytest.mark.parametrize("line", ["st.shared.b32 [%r1], {};", "st.global.b32 [%rd91], {};"])
@pytest.mark.parametrize(("value", "differ"), [("5", False), ("%r1", False), ("%r90", True)])
def test_threads_that_write_one_place_at_once_must_agree(line, value, differ):
    """Triton lets all warps that hold the same numbers store them; numbers that differ are a race."""
    body = f"{START} mov.u32 %r1, 16; {line.replace('{}', value)} ret;"
    races = snippets.run(body, np.zeros(1), np.zeros(1), threads=64, shared=64).races
    assert any("one place is written by snippet.py:7: st." in one for one in races) == differ


# -------------------------------------------------------------------------------------- atomics

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
ld.volatile.shared.b32 %r1, [%r1]
ld.relaxed.global.b32 %r1, [%rd1]
st.release.gpu.global.b32 [%rd1], %r1
ld.acquire.gpu.global.b32 %r1, [%rd1]
ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1]
ld.local.b32 %r1, [%rd1]
ld.global.b128 %rd2, [%rd1]
ld.shared.v4.b64 {%rd2, %rd3, %rd4, %rd5}, [%r1]
st.global.L3::no.b32 [%rd1], %r1
fence.foo.gpu
membar.world
cp.async.cg.shared.global.L3::9 [%r1], [%rd1], 16
cp.async.cg.shared.global [%r1], [%rd1], 16, %r2, %rd2
cp.async.bulk.commit_group
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_what_no_card_has_or_nobody_tried_is_refused_while_decoding(line):
    with pytest.raises(NotExecutable, match=f"not known here: {line.split()[0]}"):
        snippets.kernel(f"{line};")


# ---------------------------------------------------------------------------- asynchronous copies


@pytest.mark.parametrize(("level", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
@pytest.mark.parametrize("space", ["shared", "shared::cta"])
@pytest.mark.parametrize("policy", COPY_POLICIES)
def test_an_asynchronous_copy_lands_at_its_wait_and_not_before(level, size, space, policy):
    form = f"cp.async.{level}.{space}.global{policy}"
    body = f"{form} [%r1], [%rd1], {size}; cp.async.commit_group; ld.shared.b32 %r2, [%r1]; "
    state = snippets.here(body=body + "cp.async.wait_group 0; ld.shared.b32 %r3, [%r1];", shared=1024)
    given, lane = random_bytes(32 * size), np.arange(32)
    where = state.memory.put("x", given)
    snippets.put(
        state, {"%r1": (size * lane).astype(np.uint32), "%rd1": (where + size * lane).astype(np.uint64)}
    )
    snippets.step(state)
    assert (snippets.get(state, "%r2") == 0xFFFFFFFF).all(), "it is on its way"
    np.testing.assert_array_equal(state.shared[: 32 * size], given)
    np.testing.assert_array_equal(snippets.get(state, "%r3")[0], given.view(np.uint32)[:: size // 4])


WAITS = {"wait_group 2": 1, "wait_group 1": 2, "wait_group 0": 3, "wait_all": 4}


@pytest.mark.parametrize(("wait", "landed"), WAITS.items())
def test_a_wait_leaves_the_newest_groups_on_their_way(wait, landed):
    """Three groups and one copy that no commit has followed, which wait_all takes along."""
    copies = "".join(
        f"cp.async.ca.shared.global [%r1+{512 * i}], [%rd1], 4;" + ("cp.async.commit_group;" if i < 3 else "")
        for i in range(4)
    )
    state = snippets.here(body=f"{copies} cp.async.{wait};", shared=4096)
    where = state.memory.put("x", np.zeros(128, np.uint8))
    lane = np.arange(32)
    snippets.put(state, {"%r1": (4 * lane).astype(np.uint32), "%rd1": (where + 4 * lane).astype(np.uint64)})
    snippets.step(state)
    assert [int((state.shared[512 * i : 512 * i + 128] == 0).all()) for i in range(4)] == [1] * landed + [
        0
    ] * (4 - landed)


def test_a_copy_of_no_bytes_fills_with_zeros_and_reads_nothing():
    state = snippets.here(body="cp.async.cg.shared.global [%r1], [%rd1], 16, %r2; cp.async.commit_group; "
                          "cp.async.wait_group 0;", shared=1024)  # fmt: skip
    given, lane = random_bytes(64), np.arange(32)
    where = state.memory.put("x", given)
    snippets.put(
        state,
        {
            "%r1": (16 * lane).astype(np.uint32),
            "%rd1": (where + 16 * lane).astype(np.uint64),  # past the end from lane 4 on
            "%r2": np.where(lane < 4, 16, 0).astype(np.uint32),
        },
    )
    snippets.step(state)
    np.testing.assert_array_equal(state.shared[:512], np.concatenate([given, np.zeros(448, np.uint8)]))
    assert state.counts.total("bytes", "load", "x") == 64


def test_copies_of_a_program_that_has_waited_land_while_another_ones_do_not():
    body = "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.commit_group; @%p1 cp.async.wait_group 0;"
    state = snippets.here(body=body, shared=1024, programs=2)
    where = state.memory.put("x", np.zeros(128, np.uint8))
    lane = np.arange(32)
    snippets.put(state, {"%r1": (4 * lane).astype(np.uint32), "%rd1": (where + 4 * lane).astype(np.uint64)})
    snippets.put(state, {"%p1": np.array([[False], [True]])})
    snippets.step(state)
    assert (state.shared[:128] == 255).all()
    assert (state.shared[state.size : state.size + 128] == 0).all()


FENCES = """
fence.proxy.async fence.proxy.async.global fence.proxy.async.shared::cta fence.proxy.async.shared::cluster
fence.acq_rel.gpu fence.acq_rel.sys fence.acq_rel.cluster fence.sc.cta fence.mbarrier_init.release.cluster
membar.gl membar.cta membar.sys
"""


@pytest.mark.parametrize("form", FENCES.split())
def test_fences_are_known_and_change_nothing(form):
    state = snippets.here(body=f"{form};")
    before = list(state.registers)
    snippets.step(state)
    assert all(a is b for a, b in zip(before, state.registers, strict=True))


HINTS = {
    "createpolicy.fractional.L2::evict_first.b64": "%rd2, 1.0",
    "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64": "%rd2, 0.5",
    "prefetch.global.L1": "[%rd1]",
    "prefetch.global.L2": "[%rd1]",
}


@pytest.mark.parametrize("hint", HINTS)
def test_a_cache_hint_is_known_and_changes_nothing(hint):
    body = f"{hint} {HINTS[hint]};"
    body += "ld.global.L1::evict_first.L2::cache_hint.b32 %r1, [%rd1], %rd2;"
    state = snippets.here(body=body)
    snippets.put(state, {"%rd1": np.uint64([state.memory.put("x", np.uint32([77]).view(np.uint8))])})
    snippets.step(state)
    assert (snippets.get(state, "%r1") == 77).all()


FORMS = [
    *(f"ld.param.{kind}" for kind in KINDS),
    *(
        f"{verb}.{space}{f'.v{vector}' if vector > 1 else ''}.{kind}"
        for verb in ("ld", "st")
        for space, vector, kind in ACCESSES
    ),
    *(f"ld.global{policy}.b32" for policy in POLICIES.split()),
    *(f"st.global{policy}.b32" for policy in STORE_POLICIES.split()),
    *(f"{verb}.{how}.global.v4.b32" for verb in ("ld", "st") for how in STRONG),
    *(f"atom.global.gpu.acq_rel.{what}.{kind}" for what, kind in ATOMIC_FORMS),
    *(f"red.global.gpu.relaxed.{what}.{kind}" for what, kind in ATOMIC_FORMS if what != "exch"),
    *(f"atom.global.acq_rel.gpu.cas.{kind}" for kind in ("b32", "b64")),
    *(f"atom{order}{scope}.global.add.u32" for order in ORDERS for scope in SCOPES),
    *(f"atom.global{order}{scope}.add.u32" for order in ORDERS for scope in SCOPES),
    *(f"atom.global{scope}{order}.add.u32" for order in ORDERS for scope in SCOPES),
    *(f"{verb}.global.gpu.acq_rel.add.v{vector}.f32" for verb in ("atom", "red") for vector in (2, 4)),
    *(f"atom.global.add.noftz.{kind}" for kind in ("bf16x2", "f16x2")),
    "atom.global.add.u32",
    *(f"cp.async.{level}.{space}.global" for level in ("ca", "cg") for space in ("shared", "shared::cta")),
    *(f"cp.async.{level}.shared.global{policy}" for level in ("ca", "cg") for policy in COPY_POLICIES),
    "cp.async.commit_group",
    *(f"cp.async.{wait.split()[0]}" for wait in WAITS),
    *FENCES.split(),
    *HINTS,
]

"""Loads and stores, and the fences between them, form by form."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.executed import snippets
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


ORDERED = [
    *(f"global.{s}.{o}" for s in ("cta", "cluster", "gpu", "sys") for o in ("acquire", "relaxed")),
    *(f"acquire.{s}.global" for s in ("cta", "cluster", "gpu", "sys")),
]


@pytest.mark.parametrize("kind", ["b32", "b64"])
@pytest.mark.parametrize("how", ORDERED)
def test_a_load_that_acquires_or_is_relaxed_moves_what_a_plain_one_moves(how, kind):
    """Triton writes an atomic that changes nothing as ld.global.gpu.acquire.b32."""
    size, register = WIDTH[kind] // 8, f"{REGISTER[WIDTH[kind]]}1"
    given, out = random_bytes(32 * size), np.zeros(32 * size, np.uint8)
    body = f"{START} {at('%rd90', size)} ld.{how}.{kind} {register}, [%rd80];"
    body += f"{at('%rd91', size)} st.global.{kind} [%rd80], {register}; ret;"
    outcome = snippets.run(body, given, out)
    np.testing.assert_array_equal(out, given)
    order = "acquire" if "acquire" in how else "relaxed"
    scope = next(word for word in how.split(".") if word in ("cta", "cluster", "gpu", "sys"))
    assert outcome.counts.traffic["bytes", "load", "tensor0", f"{order}.{scope}"] == 32 * size
    assert not outcome.races


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


REFUSED = """
ld.volatile.shared.b32 %r1, [%r1]
ld.relaxed.global.b32 %r1, [%rd1]
st.release.gpu.global.b32 [%rd1], %r1
ld.acquire.global.b32 %r1, [%rd1]
ld.global.acquire.b32 %r1, [%rd1]
ld.global.gpu.release.b32 %r1, [%rd1]
st.global.gpu.release.b32 [%rd1], %r1
ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1]
ld.local.b32 %r1, [%rd1]
ld.global.b128 %rd2, [%rd1]
ld.shared.v4.b64 {%rd2, %rd3, %rd4, %rd5}, [%r1]
st.global.L3::no.b32 [%rd1], %r1
fence.foo.gpu
membar.world
""".strip().splitlines()


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
    *(f"ld.{how}.{kind}" for how in ORDERED for kind in ("b32", "b64")),
    *FENCES.split(),
    *HINTS,
]

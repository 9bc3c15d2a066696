"""tcgen05: tensor memory, and products of every swizzle, orientation and source of operands."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.evidence.executed.ptx import NotExecutable
from tests.kernels.executed import snippets
from tests.kernels.executed.test_matrix import SHAPES, as_bytes, representable
from tests.kernels.executed.test_ptx import ONE_EACH
from tests.kernels.executed.test_wgmma import deep, listed, whole_numbers
from tests.kernels.executed.tiles import WIDTHS, Tile

LANES, COLUMNS = 128, 512
CODE = {"f16": 0, "bf16": 1, "e4m3": 0, "e5m2": 1}  # of kinds in an instruction descriptor
FIRST = np.arange(128)[None] == 0  # one thread of a program
ALLOCATE = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 512;"


def shape(m: int, n: int, a: str, b: str, *, transposed: tuple[bool, bool] = (False, False)) -> int:
    """The instruction descriptor of a product with float32 sums (PTX ISA, "Instruction descriptor")."""
    a_way, b_way = transposed
    kinds = CODE[a] << 7 | CODE[b] << 10 | a_way << 15 | b_way << 16
    return 1 << 4 | kinds | n >> 3 << 17 | m >> 4 << 24


def lanes(m: int) -> np.ndarray:
    """The lane of tensor memory of each row: of 64 rows, 16 of every 32 lanes."""
    return np.arange(m) if m == LANES else np.arange(64) % 16 + np.arange(64) // 16 * 32


def started(body: str, memory: np.ndarray | None = None, *, programs: int = 1):
    """A machine of 128 threads with its tensor memory allocated; the memory behind the first kilobyte."""
    memory = np.zeros(0, np.uint8) if memory is None else memory
    state = snippets.here(128, body=ALLOCATE, shared=1024 + memory.size, programs=programs)
    snippets.step(state, np.broadcast_to(np.arange(128)[None] < 32, state.shape))
    for program in range(programs):
        start = program * state.size + 1024
        state.shared[start : start + memory.size] = memory
    state.kernel = snippets.kernel(body, threads=128)
    return state


def multiplied(
    a: Tile | np.ndarray, b: Tile, depth: int, a_kind: str, *, keep: bool = False, old: float = 0.0
) -> np.ndarray:
    """a [m, k] b [n, k] transposed; a in tensor memory, from column 300 on, if it is no Tile."""
    values = a.values if isinstance(a, Tile) else a
    (m, k), n = values.shape, b.values.shape[0]
    memory, of = b.memory(), "%rd1"
    start = 1024 + memory.size
    if isinstance(a, Tile):
        memory = np.concatenate([memory, a.memory()])
    else:
        of = "[%r7]"
    kind = "f16" if depth == 16 else "f8f6f4"
    line = f"tcgen05.mma.cta_group::1.kind::{kind} [%r6], {of}, %rd2, %r8, %p1;"
    state = started(line, memory)
    words = state.tensor.words
    words[0, :, 40 : 40 + n] = np.float32(old).view(np.uint32)
    if not isinstance(a, Tile):
        raw = as_bytes(a, a_kind)
        words[0, lanes(m), 300 : 300 + raw.shape[1] // 4] = raw.view(np.uint32)
    way = (isinstance(a, Tile) and a.transposed, b.transposed)
    snippets.put(
        state, {"%r6": np.uint32([40]), "%r8": np.uint32([shape(m, n, a_kind, b.kind, transposed=way)])}
    )
    for step in range(k // depth):
        snippets.put(state, {"%rd2": np.array([b.descriptor(1024, step, depth, "sm_100")], np.uint64)})
        snippets.put(state, {"%p1": np.array([keep or step > 0])})
        if isinstance(a, Tile):
            snippets.put(state, {"%rd1": np.array([a.descriptor(start, step, depth, "sm_100")], np.uint64)})
        else:
            snippets.put(state, {"%r7": np.uint32([300 + step * 8])})  # 32 bytes along K, either way
        snippets.step(state, FIRST)
    assert state.counts.tensor_flops.total() == 2 * m * n * k
    outside = np.delete(words[0].copy(), np.s_[40 : 40 + n], axis=1)
    if isinstance(a, Tile):
        assert (outside == 0xFFFFFFFF).all(), "nothing else is written"
    return words[0, lanes(m), 40 : 40 + n].view(np.float32).astype(float)


ORIENTED = [(width, way) for width in WIDTHS for way in (False, True)]


@pytest.mark.parametrize(("width", "transposed"), ORIENTED)
@pytest.mark.parametrize("n", [8, 64, 128])
def test_every_element_of_b_is_found(width, transposed, n):
    k = deep(width, 2)
    b, unit = whole_numbers(n, k), np.eye(128, k)
    found = multiplied(unit, Tile(b, "bf16", width, transposed), 16, "bf16")
    np.testing.assert_array_equal(found, unit @ b.T)


@pytest.mark.parametrize(("width", "transposed"), ORIENTED)
@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("m", [64, 128])
def test_every_element_of_a_in_shared_memory_is_found(m, width, transposed, kind):
    k = deep(width, 2)
    a, unit = whole_numbers(m, k), np.eye(64, k)
    found = multiplied(Tile(a, kind, width, transposed), Tile(unit, kind, width, False), 16, kind)
    np.testing.assert_array_equal(found, a @ unit.T)


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize(("depth", "a_kind", "b_kind"), SHAPES)
def test_every_element_of_a_in_tensor_memory_is_found(m, depth, a_kind, b_kind):
    a, unit = whole_numbers(m, 2 * depth), np.eye(64, 2 * depth)
    found = multiplied(a, Tile(unit, b_kind, 64, False), depth, a_kind)
    np.testing.assert_array_equal(found, a @ unit.T)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("a_kind", "b_kind"), [(a, b) for depth, a, b in SHAPES if depth == 32])
def test_eight_bit_operands_lie_along_k(width, a_kind, b_kind):
    k = deep(width, 1)
    a, b = whole_numbers(128, k), whole_numbers(32, k)
    found = multiplied(Tile(a, a_kind, width, False), Tile(b, b_kind, width, False), 32, a_kind)
    np.testing.assert_array_equal(found, a @ b.T)


@pytest.mark.parametrize("keep", [False, True])
def test_random_numbers_give_the_product_in_double_precision(keep):
    draw = np.random.default_rng(11)
    a, b = representable(draw, (128, 64), "bf16"), representable(draw, (256, 64), "bf16")
    found = multiplied(
        Tile(a, "bf16", 128, False), Tile(b, "bf16", 128, False), 16, "bf16", keep=keep, old=2.5
    )
    np.testing.assert_allclose(found, a @ b.T + (2.5 if keep else 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "code",
    [
        shape(128, 64, "bf16", "bf16") & ~(3 << 4),  # sums in f16
        shape(128, 64, "bf16", "bf16") | 1 << 2,  # sparse
        shape(128, 64, "bf16", "bf16") | 1 << 13,  # minus a
        shape(128, 64, "bf16", "bf16") | 1 << 14,  # minus b
        shape(128, 64, "bf16", "bf16") | 2 << 7,  # a of no known kind
        shape(256, 64, "bf16", "bf16"),
        shape(32, 64, "bf16", "bf16"),
    ],
)
def test_an_instruction_descriptor_that_nobody_tried_is_refused(code):
    state = started("tcgen05.mma.cta_group::1.kind::f16 [%r6], [%r7], %rd2, %r8, %p1;")
    snippets.put(state, {"%r8": np.array([code], np.uint32)})
    with pytest.raises(
        NotExecutable, match=rf"tcgen05.mma.*: instruction descriptor {code:#010x}: not known here"
    ):
        snippets.step(state, FIRST)


def test_a_product_that_two_threads_start_is_an_error():
    state = started("tcgen05.mma.cta_group::1.kind::f16 [%r6], [%r7], %rd2, %r8, %p1;")
    with pytest.raises(NotExecutable, match="more than one thread of a program starts it"):
        snippets.step(state, np.arange(128)[None] < 2)


# ---------------------------------------------------------------------------------- tensor memory


def place(lane: int, column: int, half: int = 0) -> tuple[int, int]:
    """16x32bx2: the lower half warp's rows once more, further right."""
    return (lane % 16, column + (half if lane >= 16 else 0)) if half else (lane, column)


COUNTS = [1, 2, 4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize("half", [0, 64])
@pytest.mark.parametrize("count", COUNTS)
def test_each_warp_loads_and_stores_its_own_32_lanes(count, half):
    """What lies in tensor memory is all different; it is loaded, and stored 128 columns further right."""
    data, name, step = listed(10, count), "16x32bx2" if half else "32x32b", f", {half}" if half else ""
    load = f"tcgen05.ld.sync.aligned.{name}.x{count}.b32 {data}, [%r0]{step};"
    store = f"tcgen05.st.sync.aligned.{name}.x{count}.b32 [%r0+192]{step}, {data};"
    state = started(load + "tcgen05.wait::ld.sync.aligned;" + store + "tcgen05.wait::st.sync.aligned;")
    words = state.tensor.words
    words[0] = np.arange(LANES * COLUMNS, dtype=np.uint32).reshape(LANES, COLUMNS)
    before, wanted = words[0].copy(), words[0].copy()
    warp = np.arange(128) // 32
    snippets.put(state, {"%r0": (warp * 32 << 16 | 3).astype(np.uint32)})
    snippets.step(state)
    for i in range(count):
        found = snippets.get(state, f"%r{10 + i}")[0]
        for thread in range(128):
            row, column = place(thread % 32, 3 + i, half)
            assert found[thread] == before[warp[thread] * 32 + row, column]
            wanted[warp[thread] * 32 + row, column + 192] = found[thread]
    np.testing.assert_array_equal(words[0], wanted)


def test_warps_that_are_not_there_may_have_any_address():
    """Pitfall: tcgen05.ld and .st of inactive warps have garbage addresses."""
    state = started("@%p1 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r0]; "
                    "@%p1 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r0+1], {%r1};")  # fmt: skip
    state.tensor.words[0, :32, 0] = np.arange(32)
    live = np.arange(128) < 32
    snippets.put(
        state, {"%p1": live, "%r0": np.where(live, 0, 0xFFFF1234).astype(np.uint32), "%r1": np.uint32([7])}
    )
    snippets.step(state)
    assert snippets.get(state, "%r1")[0].tolist() == [*range(32), *[7] * 96]
    assert state.tensor.words[0, :32, 1].tolist() == list(range(32))
    assert (state.tensor.words[0, 32:] == 0xFFFFFFFF).all()


def test_a_warp_that_reaches_for_another_ones_lanes_is_an_error():
    state = started("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r0];")
    with pytest.raises(NotExecutable, match="a warp may only touch its own 32 lanes"):
        snippets.step(state)


def test_columns_beyond_the_last_are_an_error():
    state = started("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r1, %r2, %r3, %r4}, [%r0];")
    snippets.put(state, {"%r0": (np.arange(128) // 32 * 32 << 16 | 510).astype(np.uint32)})
    with pytest.raises(NotExecutable, match=r"tcgen05.ld.*: outside the 512 columns of tensor memory"):
        snippets.step(state)


def test_tensor_memory_that_nobody_wrote_is_nan():
    state = started("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r0];")
    snippets.put(state, {"%r0": (np.arange(128) // 32 * 32 << 16).astype(np.uint32)})
    snippets.step(state)
    assert np.isnan(snippets.get(state, "%r1").view(np.float32)).all()


def test_columns_are_given_out_one_after_another_and_no_more_than_there_are():
    body = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], {};"
    state = snippets.here(
        32, body="".join(body.replace("{}", str(n)) for n in (128, 256)), shared=64, programs=2
    )
    seen = []
    for one in state.kernel.code[:2]:
        state.now = one
        one.run(state, None)
        seen.append([int(state.shared.view(np.uint32)[p * state.size // 4]) for p in range(2)])
    assert seen == [[0, 0], [128, 128]]
    with pytest.raises(NotExecutable, match="256 columns more than the 512"):
        state.kernel.code[1].run(state, None)


ENDS = """
tcgen05.fence::before_thread_sync; tcgen05.fence::after_thread_sync;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512;
"""


def test_fences_and_the_end_of_tensor_memory_change_nothing():
    state = started(ENDS)
    before, words = list(state.registers), state.tensor.words.copy()
    snippets.step(state)
    assert all(a is b for a, b in zip(before, state.registers, strict=True))
    np.testing.assert_array_equal(state.tensor.words, words)


def test_a_commit_arrives_at_an_mbarrier():
    body = "mbarrier.init.shared.b64 [%r9], 1; {} mbarrier.try_wait.parity.shared.b64 %p1, [%r9], 0;"
    commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one{}.b64 [%r9];"
    one, other = (commit.replace("{}", space) for space in ("", ".shared::cluster"))
    for line, over in ((one, True), (other, True), ("", False)):
        state = started(body.replace("{}", line))
        snippets.step(state, FIRST)
        assert bool(snippets.get(state, "%p1")[0, 0]) == over


@pytest.mark.parametrize(("column", "overlap"), [(0, True), (1, True), (2, False)])
def test_what_a_load_reads_is_not_overwritten_before_its_wait(column, overlap):
    start = f"{ONE_EACH} mov.u32 %r9, 0; {ALLOCATE} and.b32 %r2, %r0, 96; shl.b32 %r2, %r2, 16;"
    load = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r3, %r4}, [%r2];"
    store = f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2+{column}], {{%r0}};"
    wait = "tcgen05.wait::ld.sync.aligned;"
    for body, races in ((load + store + wait, overlap), (load + wait + store, False)):
        found = snippets.run(f"{start} {body} ret;", np.zeros(1), threads=128, shared=64).races
        assert any("a load that nobody waited for reads it" in one for one in found) == races


REFUSED = [
    *(
        f"tcgen05.mma.{form} [%r6], %rd1, %rd2, %r8, %p1"
        for form in ("cta_group::2.kind::f16", "cta_group::1.kind::tf32", "ws.cta_group::1.kind::f16")
    ),
    "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r1}, [%r0]",
    "tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r1, %r2, %r3}, [%r0]",
    "tcgen05.cp.cta_group::1.128x256b [%r0], %rd1",
]
FORMS = [
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32",
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned",
    *(f"tcgen05.fence::{way}_thread_sync" for way in ("before", "after")),
    *(
        f"tcgen05.{verb}.sync.aligned.{name}.x{count}.b32"
        for verb in ("ld", "st")
        for name in ("32x32b", "16x32bx2")
        for count in COUNTS
    ),
    *(f"tcgen05.wait::{verb}.sync.aligned" for verb in ("ld", "st")),
    *(f"tcgen05.commit.cta_group::1.mbarrier::arrive::one{space}.b64" for space in ("", ".shared::cluster")),
    *(f"tcgen05.mma.cta_group::1.kind::{kind}" for kind in ("f16", "f8f6f4")),
]

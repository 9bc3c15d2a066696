"""wgmma: every swizzle, orientation and source of its operands, so that a wrong address shows."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.evidence.executed.ptx import NotExecutable
from tests.kernels.executed import snippets
from tests.kernels.executed.test_matrix import SHAPES, as_bytes, representable
from tests.kernels.executed.tiles import NONE, WIDTHS, Tile

ROWS = 64
A, B = "%rd1", "%rd2"
END = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


def listed(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def instruction(columns: int, depth: int, a: str, b: str, *, flags: str, of: str = A) -> str:
    form = f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{a}.{b}"
    return f"{form} {listed(0, columns // 2)}, {of}, {B}, %p1, {flags};"


def fragments(values: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """A [64, depth] in registers %r200 to %r203, as the manual's figure of matrix A has them."""
    raw, depth = as_bytes(values, kind), values.shape[1]
    each = raw.shape[1] // depth
    registers = np.zeros((4, 128), np.uint32)
    for thread in range(128):
        row, t = thread // 32 * 16 + thread % 32 // 4, thread % 4
        for i in range(4):
            start = 4 * t + depth // 2 * each * (i // 2)
            registers[i, thread] = raw[row + 8 * (i % 2), start : start + 4].copy().view(np.uint32)[0]
    return {f"%r{200 + i}": registers[i] for i in range(4)}


def result(state, columns: int, program: int = 0) -> np.ndarray:
    """D [64, n] out of the registers of a program's warpgroup."""
    d = np.zeros((ROWS, columns))
    thread = np.arange(128)
    for i in range(columns // 2):
        row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
        d[row, i // 4 * 8 + thread % 4 * 2 + i % 2] = snippets.get(state, f"%r{i}")[program].view(np.float32)
    return d


def multiplied(
    a: Tile | np.ndarray,
    b: Tile,
    depth: int,
    a_kind: str,
    *,
    keep: bool = False,
    old: float = 0.0,
    signs: str = "1, 1",
) -> np.ndarray:
    """a [64, k] b [n, k] transposed, in as many steps as the depth of b needs; a in registers if no Tile."""
    columns, deep = b.values.shape
    memory, flags = b.memory(), signs
    start = 0
    if isinstance(a, Tile):
        start = memory.size
        memory = np.concatenate([memory, a.memory()])
    if depth == 16:
        flags += f", {int(a.transposed)}" if isinstance(a, Tile) else ""
        flags += f", {int(b.transposed)}"
    of = A if isinstance(a, Tile) else listed(200, 4)
    line = instruction(columns, depth, a_kind, b.kind, flags=flags, of=of)
    state = snippets.here(128, body=line, shared=memory.size)
    state.shared[: memory.size] = memory
    snippets.put(state, {f"%r{i}": np.float32([old]).view(np.uint32) for i in range(columns // 2)})
    for step in range(deep // depth):
        snippets.put(state, {B: np.uint64([b.descriptor(0, step, depth, "sm_90")])})
        snippets.put(state, {"%p1": np.array([keep or step > 0])})
        if isinstance(a, Tile):
            snippets.put(state, {A: np.array([a.descriptor(start, step, depth, "sm_90")], np.uint64)})
        else:
            snippets.put(state, fragments(a[:, step * depth : (step + 1) * depth], a_kind))
        snippets.step(state)
    assert state.counts.tensor_flops.total() == 2 * ROWS * columns * deep
    return result(state, columns)


def whole_numbers(rows: int, columns: int) -> np.ndarray:
    """Small and different enough; every format has them exactly."""
    return np.random.default_rng(rows + columns).integers(-8, 9, (rows, columns)).astype(float)


def deep(width: int, item: int) -> int:
    """Elements along K: an atom's row, or two instructions."""
    return width // item if width > NONE else 64 // item


ORIENTED = [(width, way) for width in WIDTHS for way in (False, True)]


@pytest.mark.parametrize(("width", "transposed"), ORIENTED)
@pytest.mark.parametrize("columns", [8, 64, 128])
def test_every_element_of_b_is_found(width, transposed, columns):
    """A is a unit matrix: D's rows are B's.

    Pitfall: the leading and the stride offset change their parts between the orientations.
    """
    k = deep(width, 2)
    b = whole_numbers(columns, k)
    unit = np.eye(ROWS, k)
    found = multiplied(unit, Tile(b, "bf16", width, transposed), 16, "bf16")
    np.testing.assert_array_equal(found, unit @ b.T)


@pytest.mark.parametrize(("width", "transposed"), ORIENTED)
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_every_element_of_a_in_shared_memory_is_found(width, transposed, kind):
    """B is a unit matrix: D's columns are A's.

    Pitfall: steps along K start in the middle of an atom, so it is the final address that is swizzled.
    """
    k = deep(width, 2)
    a, unit = whole_numbers(ROWS, k), np.eye(64, k)
    found = multiplied(
        Tile(a, kind, width, transposed), Tile(unit, kind, 128 if k > 32 else width, False), 16, kind
    )
    np.testing.assert_array_equal(found, a @ unit.T)


@pytest.mark.parametrize(("depth", "a_kind", "b_kind"), SHAPES)
def test_every_element_of_a_in_registers_is_found(depth, a_kind, b_kind):
    a, unit = whole_numbers(ROWS, depth), np.eye(32, depth)
    found = multiplied(a, Tile(unit, b_kind, 32, False), depth, a_kind)
    np.testing.assert_array_equal(found, a @ unit.T)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("a_kind", "b_kind"), [(a, b) for depth, a, b in SHAPES if depth == 32])
def test_eight_bit_operands_lie_along_k(width, a_kind, b_kind):
    k = deep(width, 1)
    a, b = whole_numbers(ROWS, k), whole_numbers(32, k)
    found = multiplied(Tile(a, a_kind, width, False), Tile(b, b_kind, width, False), 32, a_kind)
    np.testing.assert_array_equal(found, a @ b.T)


@pytest.mark.parametrize("columns", range(8, 257, 8))
def test_every_width_of_a_product(columns):
    draw = np.random.default_rng(columns)
    a, b = representable(draw, (ROWS, 16), "bf16"), representable(draw, (columns, 16), "bf16")
    found = multiplied(a, Tile(b, "bf16", 32, False), 16, "bf16")
    np.testing.assert_allclose(found, a @ b.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("keep", "signs"), [(True, "1, 1"), (False, "-1, 1"), (True, "1, -1"), (True, "-1, -1")]
)
def test_the_old_sum_is_kept_or_not_and_signs_are_changed(keep, signs):
    a, b = whole_numbers(ROWS, 16), whole_numbers(8, 16)
    found = multiplied(a, Tile(b, "bf16", 32, False), 16, "bf16", keep=keep, old=100.0, signs=signs)
    sign = -1 if signs.count("-") == 1 else 1
    np.testing.assert_array_equal(found, sign * (a @ b.T) + (100 if keep else 0))


def test_each_program_and_each_warpgroup_has_its_own_operands():
    """Two programs of two warpgroups; the second warpgroup of the first one does something else."""
    line = instruction(8, 16, "bf16", "bf16", flags="1, 1, 0", of=listed(200, 4))
    tiles = [Tile(whole_numbers(8, 16) + i, "bf16", 32, False) for i in range(2)]
    size = tiles[0].memory().size
    state = snippets.here(256, body=line, shared=2 * size, programs=2)
    a = whole_numbers(ROWS, 16)
    snippets.put(state, {name: np.tile(values, 2) for name, values in fragments(a, "bf16").items()})
    for program in range(2):
        for i in range(2):
            at = program * state.size + i * size
            state.shared[at : at + size] = tiles[i ^ program].memory()
    starts = [tiles[0].descriptor(i * size, 0, 16, "sm_90") for i in range(2)]
    snippets.put(state, {B: np.repeat(np.array(starts, np.uint64), 128), "%r0": np.uint32([7])})
    on = np.ones((2, 256), bool)
    on[0, 128:] = False
    snippets.step(state, on)
    for program, group in ((0, 0), (1, 0), (1, 1)):
        mine = np.array(
            [snippets.get(state, f"%r{i}")[program, 128 * group : 128 * group + 128] for i in range(4)]
        )
        thread = np.arange(128)
        d = np.zeros((ROWS, 8))
        for i in range(4):
            d[thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2), thread % 4 * 2 + i % 2] = mine[i].view(
                np.float32
            )
        np.testing.assert_array_equal(d, a @ tiles[group ^ program].values.T)
    assert set(snippets.get(state, "%r0")[0, 128:]) == {7}, "who does something else keeps its registers"


@pytest.mark.parametrize(
    ("descriptor", "why"),
    [
        (1 << 49, "base offset or swizzle is not known"),
        (0x3FFF | 1 << 62, "outside the shared memory"),
    ],
)
def test_a_descriptor_that_points_nowhere_is_an_error(descriptor, why):
    state = snippets.here(
        128, body=instruction(8, 16, "bf16", "bf16", flags="1, 1, 0", of=listed(200, 4)), shared=1024
    )
    snippets.put(state, {B: np.array([descriptor], np.uint64)})
    with pytest.raises(NotExecutable, match=why):
        snippets.step(state)


def test_a_product_that_was_not_waited_for_leaves_no_register_to_touch():
    line = (
        instruction(8, 16, "bf16", "bf16", flags="1, 1, 0", of=listed(200, 4))
        + "wgmma.commit_group.sync.aligned;"
    )
    line = "wgmma.fence.sync.aligned;" + line
    use, wait = "add.s32 %r5, %r3, 1;", "wgmma.wait_group.sync.aligned 0;"
    for body, races in ((line + use + wait, 1), (line + wait + use, 0)):
        descriptor = Tile(np.eye(8, 16), "bf16", 32, False).descriptor(0, 0, 16, "sm_90")
        outcome = snippets.run(
            f"mov.b64 {B}, {descriptor:#x}; {body} ret;", np.zeros(1), threads=128, shared=1024
        )
        assert len([one for one in outcome.races if "a product that was not waited for" in one]) == races


SHAPES_REFUSED = """
m64n12k16.f32.bf16.bf16 m64n264k16.f32.bf16.bf16 m64n8k8.f32.tf32.tf32 m64n8k16.f16.f16.f16
m64n8k32.s32.s8.s8 m64n8k32.f32.bf16.bf16 m64n8k16.f32.bf16.f16
"""
REFUSED = [
    f"wgmma.mma_async.sync.aligned.{shape} {listed(0, int(shape[4:].split('k')[0]) // 2)}, {A}, {B}, "
    "%p1, 1, 1, 0, 0"
    for shape in SHAPES_REFUSED.split()
]


def test_a_product_of_a_part_of_a_warpgroup_is_refused():
    state = snippets.here(
        128, body=instruction(8, 16, "bf16", "bf16", flags="1, 1, 0", of=listed(200, 4)), shared=1024
    )
    with pytest.raises(NotExecutable, match="by a part of a warpgroup"):
        snippets.step(state, np.arange(128)[None] < 64)


FORMS = [
    *(f"wgmma.mma_async.sync.aligned.m64n32k{depth}.f32.{a}.{b}" for depth, a, b in SHAPES),
    "wgmma.fence.sync.aligned",
    "wgmma.commit_group.sync.aligned",
    "wgmma.wait_group.sync.aligned",
]

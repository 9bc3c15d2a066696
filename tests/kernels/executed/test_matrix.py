"""ldmatrix, stmatrix and mma.sync, element by element as the PTX manual draws their fragments."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.kernels.executed import snippets

TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
BYTES = {"bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1}


def as_bytes(values: np.ndarray, kind: str) -> np.ndarray:
    """Numbers [..., n] in a format, as bytes [..., n * size]."""
    encoded = torch.from_numpy(np.ascontiguousarray(values, np.float32)).to(TORCH[kind])
    return encoded.view(torch.uint8).numpy().reshape(*values.shape[:-1], -1)


def representable(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Random numbers that the format holds exactly, as float64."""
    return torch.from_numpy(rng.normal(size=shape)).to(TORCH[kind]).double().numpy()


# ------------------------------------------------------------------------------ ldmatrix, stmatrix


def matrices(count: int, *, padding: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """8 x 8 matrices of different numbers, shared memory that holds them, and each lane's address."""
    values = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    starts = (np.arange(count * 8) * (16 + padding)).reshape(count, 8)[:, ::-1]  # rows in any order
    memory = np.zeros(count * 8 * (16 + padding), np.uint8)
    for i in range(count):
        for row in range(8):
            memory[starts[i, row] : starts[i, row] + 16] = values[i, row].view(np.uint8)
    return values, memory, np.resize(starts.reshape(-1), 32).astype(np.uint32)


def fragment(matrix: np.ndarray, lane: int) -> int:
    """A lane's register: elements 2 t and 2 t + 1 of row g, where lane = 4 g + t."""
    row, column = lane // 4, lane % 4 * 2
    return int(matrix[row, column]) | int(matrix[row, column + 1]) << 16


@pytest.mark.parametrize("space", ["shared", "shared::cta"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_its_elements(count, transposed, space):
    values, memory, rows = matrices(count, padding=16)
    names = ", ".join(f"%r{i + 1}" for i in range(count))
    form = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.{space}.b16"
    state = snippets.here(64, body=f"{form} {{{names}}}, [%r0];", shared=memory.size)
    state.shared[: memory.size] = memory
    snippets.put(state, {"%r0": np.tile(rows, 2)})
    snippets.step(state)
    for i in range(count):
        whole = values[i].T if transposed else values[i]
        wanted = [fragment(whole, lane % 32) for lane in range(64)]
        assert snippets.get(state, f"%r{i + 1}")[0].tolist() == wanted


@pytest.mark.parametrize("space", ["shared", "shared::cta"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_puts_each_element_into_its_row(count, transposed, space):
    values, memory, rows = matrices(count, padding=0)
    names = ", ".join(f"%r{i + 1}" for i in range(count))
    form = f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.{space}.b16"
    state = snippets.here(body=f"{form} [%r0], {{{names}}};", shared=memory.size)
    snippets.put(state, {"%r0": rows})
    for i in range(count):
        whole = values[i].T if transposed else values[i]
        registers = np.array([fragment(whole, lane) for lane in range(32)], np.uint32)
        snippets.put(state, {f"%r{i + 1}": registers})
    snippets.step(state)
    np.testing.assert_array_equal(state.shared[: memory.size], memory)
    assert (state.shared[memory.size :] == 0xFF).all()


@pytest.mark.parametrize("form", ["ldmatrix", "stmatrix"])
def test_a_warp_that_does_something_else_neither_reads_nor_writes(form):
    """Its addresses may be anything, as those of any idle lane."""
    operands = "{%r1}, [%r0]" if form == "ldmatrix" else "[%r0], {%r1}"
    state = snippets.here(64, body=f"{form}.sync.aligned.m8n8.x1.shared.b16 {operands};", shared=1024)
    on = np.arange(64)[None] < 32
    addresses = np.where(on, np.arange(64) * 16, 2**31 + 5).astype(np.uint32)
    snippets.put(state, {"%r0": addresses, "%r1": np.full(64, 7, np.uint32)})
    snippets.step(state, on)
    expected = 0xFFFFFFFF if form == "ldmatrix" else 7
    assert set(snippets.get(state, "%r1")[0, :32]) == {expected}
    assert set(snippets.get(state, "%r1")[0, 32:]) == {7}
    assert (state.shared[128:] == 0xFF).all()


# ------------------------------------------------------------------------------------------- mma

# (k, kind of a, kind of b): 16 elements of 16 bits, or 32 of 8.
SHAPES = [(16, kind, kind) for kind in ("bf16", "f16")]
SHAPES += [(32, a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]


def mma_form(depth: int, a: str, b: str) -> str:
    return f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{a}.{b}.f32"


def multiplied(
    depth: int, a_kind: str, b_kind: str, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """a [16, k] b [k, 8] + c [16, 8] by one mma.sync; fragments as in the manual's figures."""
    form = mma_form(depth, a_kind, b_kind)
    state = snippets.here(
        body=f"{form} {{%r20,%r21,%r22,%r23}}, {{%r0,%r1,%r2,%r3}}, {{%r4,%r5}}, {{%r10,%r11,%r12,%r13}};"
    )
    each = 4 // BYTES[a_kind]  # elements of a register
    rows, columns = as_bytes(a, a_kind), as_bytes(b.T, b_kind)
    registers: dict[str, list] = {f"%r{i}": [] for i in (0, 1, 2, 3, 4, 5, 10, 11, 12, 13)}
    for lane in range(32):
        g, t = lane // 4, lane % 4
        for i in range(4):
            row, column = g + 8 * (i % 2), (t * each + depth // 2 * (i // 2)) * BYTES[a_kind]
            registers[f"%r{i}"].append(rows[row, column : column + 4].copy().view(np.uint32)[0])
            registers[f"%r{10 + i}"].append(np.float32(c[g + 8 * (i // 2), 2 * t + i % 2]).view(np.uint32))
        for i in range(2):
            column = (t * each + depth // 2 * i) * BYTES[b_kind]
            registers[f"%r{4 + i}"].append(columns[g, column : column + 4].copy().view(np.uint32)[0])
    snippets.put(state, {name: np.array(values, np.uint32) for name, values in registers.items()})
    snippets.step(state)
    d = np.zeros((16, 8))
    for i in range(4):
        found = snippets.get(state, f"%r{20 + i}")[0].view(np.float32)
        for lane in range(32):
            d[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] = found[lane]
    assert state.counts.tensor_flops.total() == 2 * 16 * 8 * depth
    return d


@pytest.mark.parametrize(("depth", "a_kind", "b_kind"), SHAPES)
def test_mma_finds_every_element_of_a_and_of_b(depth, a_kind, b_kind):
    """b picks eight columns of a, or a eight rows of b, out of all different small whole numbers."""
    half = np.arange(16 * depth).reshape(16, depth) % 13 - 6.0
    for k in range(0, depth, 8):
        unit = np.zeros((depth, 8))
        unit[k : k + 8] = np.eye(8)
        found = multiplied(depth, a_kind, b_kind, half, unit, np.zeros((16, 8)))
        np.testing.assert_array_equal(found, half[:, k : k + 8])
        rows = np.zeros((16, depth))
        rows[:8, k : k + 8] = np.eye(8)
        wanted = np.zeros((16, 8))
        wanted[:8] = half.T[k : k + 8, :8]
        found = multiplied(depth, a_kind, b_kind, rows, half.T[:, :8], np.zeros((16, 8)))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("depth", "a_kind", "b_kind"), SHAPES)
def test_mma_of_random_numbers_is_the_product_in_double_precision(depth, a_kind, b_kind):
    draw = np.random.default_rng(9)
    a, b = representable(draw, (16, depth), a_kind), representable(draw, (depth, 8), b_kind)
    c = np.float32(draw.normal(size=(16, 8))).astype(float)
    np.testing.assert_allclose(multiplied(depth, a_kind, b_kind, a, b, c), a @ b + c, rtol=1e-5, atol=1e-5)


REFUSED = [
    *(
        f"mma.sync.aligned.{shape} {{%r0,%r1,%r2,%r3}}, {{%r0,%r1,%r2,%r3}}, {{%r4,%r5}}, {{%r0,%r1,%r2,%r3}}"
        for shape in (
            "m16n8k8.row.col.f32.bf16.bf16.f32",
            "m16n8k8.row.col.f32.tf32.tf32.f32",
            "m16n8k16.row.row.f32.bf16.bf16.f32",
            "m16n8k16.row.col.f16.f16.f16.f16",
            "m16n8k32.row.col.s32.s8.s8.s32",
            "m16n8k16.row.col.f32.bf16.f16.f32",
            "m16n8k32.row.col.f32.bf16.bf16.f32",
            "m16n8k16.row.col.f32.e4m3.e4m3.f32",
        )
    ),
    "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r0,%r1,%r2}, [%r4]",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1,%r2}, [%r4]",
]
FORMS = [
    *(mma_form(*shape) for shape in SHAPES),
    *(
        f"{verb}.sync.aligned.m8n8.x{count}{way}.{space}.b16"
        for verb in ("ldmatrix", "stmatrix")
        for count in (1, 2, 4)
        for way in ("", ".trans")
        for space in ("shared", "shared::cta")
    ),
]

"""Number formats: the oracle against struct and torch, then the executed rung's against both."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import torch

from kernels.evidence.executed import formats
from tests.kernels.executed.floats import FORMATS, NAN

TORCH = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
}


def every_code(kind: str) -> np.ndarray:
    bits = FORMATS[kind].bits
    return np.arange(1 << bits, dtype=np.uint16 if bits == 16 else np.uint8)


def as_torch_has_them(kind: str) -> np.ndarray:
    return torch.from_numpy(every_code(kind).copy()).view(TORCH[kind]).float().numpy()


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal bits, but for which NaN it is."""
    both = np.isnan(found) & np.isnan(wanted)
    np.testing.assert_array_equal(found.view(np.uint32)[~both], wanted.view(np.uint32)[~both])


@pytest.fixture(scope="module")
def floats() -> np.ndarray:
    """float32 of all kinds: random bits, and what lies on and beside the midpoints of narrow formats."""
    random = np.random.default_rng(0)
    near = [as_torch_has_them(kind) for kind in TORCH]
    with np.errstate(invalid="ignore"):  # NaN, and infinities of both signs
        middles = [np.float32((a[:-1].astype(np.float64) + a[1:]) / 2) for a in near]
    chosen = np.concatenate([*near, *middles])
    bits = chosen.view(np.uint32)
    return np.concatenate([bits, bits + 1, bits - 1, random.integers(0, 1 << 32, 4000, np.uint32)]).view(
        np.float32
    )


@pytest.mark.parametrize("kind", TORCH)
def test_the_oracle_reads_every_code_as_torch_does(kind):
    same(np.float32([FORMATS[kind].number(int(code)) for code in every_code(kind)]), as_torch_has_them(kind))


@pytest.mark.parametrize(
    ("kind", "letter", "word"), [("f16", "e", "H"), ("f32", "f", "I"), ("f64", "d", "Q")]
)
def test_the_oracle_rounds_as_struct_does(kind, letter, word, floats):
    for value in map(float, floats[::40]):
        try:
            wanted = struct.unpack(word, struct.pack(letter, value))[0]
        except OverflowError:
            wanted = FORMATS[kind].code(math.copysign(math.inf, value))
        assert FORMATS[kind].code(float(value)) == (NAN if math.isnan(value) else wanted)


@pytest.mark.parametrize("kind", TORCH)
def test_every_code_is_read_exactly(kind):
    if kind in formats.FP8:
        found = formats.FP8[kind][every_code(kind)]
    else:
        found = formats.numbers(every_code(kind), kind).astype(np.float32)
    same(found, as_torch_has_them(kind))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_rounding_to_sixteen_bits_is_torchs(kind, floats):
    wanted = torch.from_numpy(floats).to(TORCH[kind]).float().numpy()
    with np.errstate(over="ignore"):
        found = formats.bits(floats, kind)
    same(formats.numbers(found, kind).astype(np.float32), wanted)


@pytest.mark.parametrize("kind", formats.FP8)
def test_rounding_to_eight_bits_is_torchs_and_what_is_too_large_saturates(kind, floats):
    largest = FORMATS[kind].number(FORMATS[kind].largest)
    inside = np.abs(floats) <= largest
    wanted = torch.from_numpy(floats[inside]).to(TORCH[kind]).view(torch.uint8).numpy()
    np.testing.assert_array_equal(formats.fp8(floats[inside], kind), wanted)
    above = formats.FP8[kind][formats.fp8(floats[~inside & ~np.isnan(floats)], kind)]
    assert len(above)
    assert set(np.abs(above)) == {largest}
    assert np.isnan(formats.FP8[kind][formats.fp8(np.float32([np.nan]), kind)]).all()


def test_rounding_a_nan_to_bf16_keeps_it_a_nan():
    """Pitfall: adding the rounding bias to 0x7fffffff carries into the sign, and a NaN is -0."""
    every_nan = np.uint32([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC00000, 0xFFFF8000]).view(np.float32)
    assert np.isnan(formats.numbers(formats.bf16(every_nan), "bf16")).all()

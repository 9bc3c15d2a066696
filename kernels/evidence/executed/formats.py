"""Bits as numbers and back: the number formats of PTX.

A register holds unsigned bits. bf16 is computed in float32, which holds it exactly.
"""

from __future__ import annotations

import numpy as np

from kernels.evidence.executed.ptx import WIDTH

UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SINT = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
FLOAT = {16: np.float16, 32: np.float32, 64: np.float64}


def numbers(bits: np.ndarray, kind: str) -> np.ndarray:
    """Register bits as numbers of the PTX type `kind`; bf16 as the float32 that equals it."""
    width = WIDTH[kind]
    if bits.dtype.itemsize * 8 != width:
        bits = bits.astype(UINT[width])
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if kind[0] == "s":
        return bits.view(SINT[width])
    return bits.view(FLOAT[width]) if kind[0] == "f" else bits


def bits(values: np.ndarray, kind: str) -> np.ndarray:
    """Numbers as register bits of the PTX type `kind`, rounded to nearest even."""
    if kind == "bf16":
        return bf16(values)
    width = WIDTH[kind]
    if kind[0] == "f":
        values = np.asarray(values, FLOAT[width])
        return values.view(UINT[width])
    return values if values.dtype == UINT[width] else values.astype(UINT[width])


def bf16(values: np.ndarray) -> np.ndarray:
    """float32 as bf16 bits, to nearest even. A NaN stays one: adding the rounding bias could make it -0."""
    values = np.ascontiguousarray(values, np.float32)
    whole = values.view(np.uint32)
    rounded = (whole + np.uint32(0x7FFF) + ((whole >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FFF), rounded).astype(np.uint16)


def to_odd(values: np.ndarray) -> np.ndarray:
    """float64 as float32 whose last bit is 1 where that is not exact: rounded again, it is rounded once."""
    near = values.astype(np.float32)
    off = near != values
    if not off.any():
        return near
    whole = near.view(np.uint32)
    cut = whole - (np.abs(near) > np.abs(values))
    return np.where(off & ~np.isnan(values), cut | np.uint32(1), whole).astype(np.uint32).view(np.float32)


def halves(words: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high number of packed pairs, "bf16x2" or "f16x2", as float32."""
    low, high = words & np.uint32(0xFFFF), words >> np.uint32(16)
    return tuple(numbers(part, kind[:-2]).astype(np.float32) for part in (low, high))


def packed(low: np.ndarray, high: np.ndarray, kind: str) -> np.ndarray:
    """Two numbers as the packed pair "bf16x2" or "f16x2"."""
    first, second = (bits(part, kind[:-2]).astype(np.uint32) for part in (low, high))
    return first | second << np.uint32(16)


def _codes(exponent_bits: int, mantissa_bits: int, bias: int, *, infinities: bool) -> np.ndarray:
    """The number of each of the 256 codes of an 8-bit float (OCP 8-bit floating point specification)."""
    code = np.arange(256)
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    small = mantissa * 2.0 ** (1 - bias - mantissa_bits)
    value = np.where(exponent == 0, small, (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias))
    if infinities:
        top = exponent == (1 << exponent_bits) - 1
        value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
    else:
        value = np.where((code & 127) == 127, np.nan, value)
    return np.where(code & 128, -value, value).astype(np.float32)


FP8 = {"e4m3": _codes(4, 3, 7, infinities=False), "e5m2": _codes(5, 2, 15, infinities=True)}
FINITE = {"e4m3": 127, "e5m2": 124}  # codes of numbers, from 0 up


def fp8(values: np.ndarray, kind: str) -> np.ndarray:
    """float32 as 8-bit codes, to nearest even; what is too large saturates (.satfinite), NaN is 0x7f."""
    grid = FP8[kind][: FINITE[kind]].astype(np.float64)
    size = np.abs(values.astype(np.float64))
    above = np.clip(np.searchsorted(grid, size), 1, len(grid) - 1)
    down, up = size - grid[above - 1], grid[above] - size
    code = np.where((down > up) | ((down == up) & (above % 2 == 0)), above, above - 1)
    code = np.where(np.isnan(values), 127, code) | np.where(np.signbit(values), 128, 0)
    return code.astype(np.uint8)


def elements(words: np.ndarray, kind: str) -> np.ndarray:
    """32-bit words [..., n] as float32 [..., n * elements of a word], lowest bits first."""
    words = np.ascontiguousarray(words)
    if kind in FP8:
        return FP8[kind][words.view(np.uint8)]
    return numbers(words.view(np.uint16), kind).astype(np.float32)


def is_multiplied(depth: int, a: str, b: str) -> bool:
    """Whether tensor cores multiply these: 16 deep two of one kind of 16 bits, 32 deep any two of 8 bits."""
    return depth == 32 if {a, b} <= set(FP8) else a == b and depth == 16

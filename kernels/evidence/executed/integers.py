"""Whole numbers as a card computes them: what NumPy and C leave open, PTX says."""

from __future__ import annotations

import numpy as np

from kernels.evidence.executed.formats import UINT


def divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whole division towards zero; by zero gives all ones, as NVIDIA's hardware does."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    quotient = np.floor_divide(a, safe)
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * safe != a))
    return np.where(zero, np.array(-1).astype(a.dtype), quotient).astype(a.dtype)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """With the sign of `a`; by zero gives `a`."""
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a product of 32-bit numbers."""
    kind = np.int64 if a.dtype.kind == "i" else np.uint64
    return (a.astype(kind) * b.astype(kind) >> kind(32)).astype(a.dtype)


def high64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a product of unsigned 64-bit numbers, from four 32-bit products."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    return a1 * b1 + (middle >> half) + (a0 * b1 + (middle & low) >> half)


def wide(a: np.ndarray, b: np.ndarray, *plus: np.ndarray) -> np.ndarray:
    """A product of 32-bit numbers in 64 bits, plus such a number."""
    kind = np.int64 if a.dtype.kind == "i" else np.uint64
    product = a.astype(kind) * b.astype(kind)
    return product + plus[0] if plus else product


def shifted(x: np.ndarray, by: np.ndarray, *, left: bool) -> np.ndarray:
    """Amounts past the width count as the width, which NumPy and C leave undefined."""
    width = x.dtype.itemsize * 8
    inside = np.minimum(by, np.uint32(width - 1)).astype(x.dtype)
    moved = x << inside if left else x >> inside
    if left or x.dtype.kind != "i":
        moved = np.where(by >= width, x.dtype.type(0), moved)
    return moved


def extracted(x: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """bfe: `length` bits from `position` on, extended by their sign where `x` is signed (PTX ISA, bfe)."""
    width, signed = np.uint64(x.dtype.itemsize * 8), x.dtype.kind == "i"
    whole = x.view(UINT[int(width)]).astype(np.uint64)
    position, length = (v.astype(np.uint64) & np.uint64(255) for v in (position, length))
    mask = _ones(np.minimum(length, width))
    field = (
        np.where(position < width, whole >> np.minimum(position, width - np.uint64(1)), np.uint64(0)) & mask
    )
    if signed:
        top = np.minimum(position + length - np.uint64(1), width - np.uint64(1))
        negative = (whole >> top & np.uint64(1)).astype(bool) & (length > 0)
        seen = _ones(np.minimum(length, width - np.minimum(position, width)))
        field = np.where(negative, field | ~seen, field)
    return field.astype(UINT[int(width)]).view(x.dtype)


def _ones(count: np.ndarray) -> np.ndarray:
    """So many low bits, up to 64 of them."""
    some = (np.uint64(1) << np.minimum(count, np.uint64(63))) - np.uint64(1)
    return np.where(count > np.uint64(63), ~np.uint64(0), some)


def permuted(low: np.ndarray, high: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """prmt: byte i of the result is the one of the eight bytes of both that the selector's nibble i names.

    With the nibble's top bit it is that byte's sign, eight times (PTX ISA, prmt, default mode).
    """
    eight = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    result = np.zeros(np.broadcast_shapes(low.shape, high.shape, selector.shape), np.uint32)
    for i in range(4):
        nibble = selector >> np.uint32(4 * i) & np.uint32(15)
        byte = eight >> (nibble & np.uint32(7)).astype(np.uint64) * np.uint64(8) & np.uint64(255)
        sign = np.where(byte > 127, np.uint64(255), np.uint64(0))
        result |= np.where(nibble > 7, sign, byte).astype(np.uint32) << np.uint32(8 * i)
    return result

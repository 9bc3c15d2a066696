"""Floating point as a card computes it: rounded once, subnormal numbers kept or flushed, zeros with signs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.evidence.executed import formats

SMALLEST_NORMAL = np.float32(2.0**-126)
MANTISSA_BEYOND_SINGLE = (1 << 29) - 1  # bits of a double that a single has not
HALF_A_STEP = 1 << 28  # such bits of what lies in the middle between two singles


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of float32, rounded once. The product is exact in double precision, the sum may not be."""
    product = a.astype(np.float64) * b
    total = product + c
    middle = total.view(np.int64) & MANTISSA_BEYOND_SINGLE == HALF_A_STEP  # where a second rounding errs
    if (middle | (np.abs(total) < SMALLEST_NORMAL)).any():
        total = _sum_to_odd(product, c, total)
    return total.astype(np.float32)


def product_of_halves(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a * b of numbers of 16 bits, to odd in float32: a small one of bf16 would be rounded twice."""
    return formats.to_odd(a.astype(np.float64) * b)


def fma_of_halves(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of numbers of 16 bits, to odd in float32: it is still to be rounded."""
    product = a.astype(np.float64) * b
    return formats.to_odd(_sum_to_odd(product, c, product + c))


def _sum_to_odd(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    """total = a + b, made odd in its last bit where it is not exact: no later rounding sees a false middle.

    The error of the sum is Knuth's; rounding to odd is of Boldo and Melquiond, "Emulation of FMA" (2008).
    """
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    return np.where(inexact, bits + away, bits).view(np.float64)


def flushed(x: np.ndarray) -> np.ndarray:
    """Subnormal numbers as zeros of their sign (.ftz)."""
    return np.where(np.abs(x) < SMALLEST_NORMAL, np.copysign(np.float32(0), x), x)


def ftz(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The same function, whose subnormal operands and results are zeros."""
    return lambda *x: flushed(function(*map(flushed, x)))


def reciprocal(x: np.ndarray) -> np.ndarray:
    return np.float32(1) / x


def reciprocal_root(x: np.ndarray) -> np.ndarray:
    return np.float32(1) / np.sqrt(x)


def extreme(function: Callable, zeros: Callable) -> Callable[..., np.ndarray]:
    """max or min of two or three operands (sm_100); NumPy would take a third for the place of the result.

    +0 is above -0, which NumPy leaves open; zeros: of the bits of two equal numbers.
    """

    def of(a: np.ndarray, b: np.ndarray, *more: np.ndarray) -> np.ndarray:
        found = function(a, b)
        if (found == 0).any():
            a, b = np.broadcast_arrays(a, b)
            word = formats.UINT[a.dtype.itemsize * 8]
            equal = zeros(a.view(word), b.view(word)).view(a.dtype)
            found = np.where(a == b, equal, found)
        return of(found, *more) if more else found

    return of

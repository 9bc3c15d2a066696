"""Streams: operations that touch every element once (chapter 01)."""

from __future__ import annotations

from book.cost.base import Cost, Number, positive


def copy(n: Number, itemsize: Number = 4) -> Cost:
    """y[n] = x[n]: no arithmetic, one read and one write of n elements of `itemsize` bytes."""
    positive(n=n, itemsize=itemsize)
    return Cost(0, {"x": n * itemsize}, {"y": n * itemsize})


def triad(n: Number, itemsize: Number = 4) -> Cost:
    """y[n] = a[n] + scale * b[n]: two FLOPs for three elements (McCalpin's STREAM triad)."""
    positive(n=n, itemsize=itemsize)
    return Cost(2 * n, {"a": n * itemsize, "b": n * itemsize}, {"y": n * itemsize})


def fma_chain(n: Number, k: Number, itemsize: Number = 4) -> Cost:
    """x -> x * a + c, k times in registers: 2k FLOPs an element, one read and one write.

    Intensity k / itemsize: a dial for the whole roof.
    """
    positive(n=n, k=k, itemsize=itemsize)
    return Cost(2 * k * n, {"x": n * itemsize}, {"y": n * itemsize})

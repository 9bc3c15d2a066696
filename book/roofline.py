"""What a machine makes of a cost: the roofline model in four lines of arithmetic.

Williams, Waterman and Patterson, "Roofline" (CACM 2009). `peak` is F in FLOP/s, dense;
`bandwidth` is beta in bytes/s. As in `book.cost`, numbers, arrays and SymPy symbols all work.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from book.cost import Cost, Number


def _symbols(*values: Number) -> Any:
    """SymPy if one of the values is a symbol, else None. It takes a second to import, so it isn't here."""
    sympy = sys.modules.get("sympy")
    return sympy if sympy and any(isinstance(v, sympy.Basic) for v in values) else None


def least(a: Number, b: Number) -> Number:
    """The smaller of two numbers, arrays (element by element) or symbols."""
    if sympy := _symbols(a, b):
        return sympy.Min(a, b)
    return np.minimum(a, b) if np.ndim(a) or np.ndim(b) else min(a, b)


def most(a: Number, b: Number) -> Number:
    """The larger of two numbers, arrays (element by element) or symbols."""
    if sympy := _symbols(a, b):
        return sympy.Max(a, b)
    return np.maximum(a, b) if np.ndim(a) or np.ndim(b) else max(a, b)


def ridge(peak: Number, bandwidth: Number) -> Number:
    """I* = F / beta, FLOP/byte: below it a machine waits for memory, above it it computes."""
    return peak / bandwidth


def attainable(intensity: Number, peak: Number, bandwidth: Number) -> Number:
    """min(F, I * beta), FLOP/s: the most that code of this intensity can get."""
    return least(peak, intensity * bandwidth)


def time(flops: Number, bytes: Number, peak: Number, bandwidth: Number) -> Number:
    """max(flops / F, bytes / beta), seconds: the floor, if arithmetic and traffic overlap fully."""
    return most(flops / peak, bytes / bandwidth)


def time_serial(flops: Number, bytes: Number, peak: Number, bandwidth: Number) -> Number:
    """flops / F + bytes / beta, seconds: the same work with no overlap, at most twice the floor."""
    return flops / peak + bytes / bandwidth


@dataclass(frozen=True)
class Roof:
    """One machine at one precision: peak (FLOP/s, dense), bandwidth (bytes/s), and a name.

    Roofs are plural: one for each arithmetic unit and precision of a card.
    """

    name: str
    peak: float
    bandwidth: float

    def __post_init__(self) -> None:
        for label in ("peak", "bandwidth"):
            if not getattr(self, label) > 0:
                raise ValueError(
                    f"{self.name}: {label} = {getattr(self, label)}: must be positive, in SI base units."
                )

    @property
    def ridge(self) -> float:
        """FLOP/byte at the corner."""
        return ridge(self.peak, self.bandwidth)

    def attainable(self, intensity: Number) -> Number:
        """FLOP/s at this intensity (FLOP/byte)."""
        return attainable(intensity, self.peak, self.bandwidth)

    def time(self, cost: Cost) -> Number:
        """Seconds: the floor for this cost."""
        return time(cost.flops, cost.bytes, self.peak, self.bandwidth)

    def bound(self, cost: Cost) -> str:
        """'memory' or 'compute': which of the two times is the larger."""
        return "memory" if cost.intensity < self.ridge else "compute"

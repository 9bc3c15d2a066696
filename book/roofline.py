"""What a machine makes of a cost: the roofline model in a few lines of arithmetic.

Three roofs: arithmetic, memory and, for one rank of several, the link to the others. `peak` is F in
FLOP/s, dense; `bandwidth` is beta in bytes/s; `link` is what a rank can send, in bytes/s, one way.
As in `book.cost`, numbers, arrays and SymPy symbols all work.

Sources: Williams, Waterman and Patterson, "Roofline" (CACM 2009) for the first two. The third is the
same statement about a third resource, as in Cardwell and Song, "An Extended Roofline Model with
Communication-Awareness for Distributed-Memory HPC Systems" (HPC Asia 2019).
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


PLAIN = {int, float}  # types of numbers that need no array's and no symbol's ways: quick, and common


def least(a: Number, b: Number) -> Number:
    """The smaller of two numbers, arrays (element by element) or symbols."""
    if type(a) in PLAIN and type(b) in PLAIN:
        return min(a, b)
    if sympy := _symbols(a, b):
        return sympy.Min(a, b)
    return np.minimum(a, b) if np.ndim(a) or np.ndim(b) else min(a, b)


def most(a: Number, b: Number) -> Number:
    """The larger of two numbers, arrays (element by element) or symbols."""
    if type(a) in PLAIN and type(b) in PLAIN:
        return max(a, b)
    if sympy := _symbols(a, b):
        return sympy.Max(a, b)
    return np.maximum(a, b) if np.ndim(a) or np.ndim(b) else max(a, b)


def ridge(peak: Number, bandwidth: Number) -> Number:
    """I* = F / beta, FLOP/byte: below it a machine waits for memory, above it it computes."""
    return peak / bandwidth


def attainable(intensity: Number, peak: Number, bandwidth: Number) -> Number:
    """min(F, I * beta), FLOP/s: the most that code of this intensity can get."""
    return least(peak, intensity * bandwidth)


def time(
    flops: Number,
    bytes: Number,
    peak: Number,
    bandwidth: Number,
    sent: Number = 0,
    link: Number | None = None,
) -> Number:
    """max(flops / F, bytes / beta, sent / link), seconds: the floor, if all three overlap fully.

    sent: bytes that a rank sends; link: bytes/s that it can send. Raises ValueError for bytes to
    send and no link to send them over.
    """
    floor = most(flops / peak, bytes / bandwidth)
    on_link = _link_time(sent, link)
    return floor if on_link is None else most(floor, on_link)


def time_serial(
    flops: Number,
    bytes: Number,
    peak: Number,
    bandwidth: Number,
    sent: Number = 0,
    link: Number | None = None,
) -> Number:
    """flops / F + bytes / beta + sent / link, seconds: the same work with no overlap.

    At most twice the floor of one card that works alone, and three times that of a rank. Raises
    ValueError as `time` does.
    """
    serial = flops / peak + bytes / bandwidth
    on_link = _link_time(sent, link)
    return serial if on_link is None else serial + on_link


def _link_time(sent: Number, link: Number | None) -> Number | None:
    """Seconds on the link, or None where there is none and nothing to send."""
    if link is not None:
        return sent / link
    if type(sent) in PLAIN and not sent:
        return None
    if _symbols(sent) or np.any(sent):
        raise ValueError(
            f"sent = {sent}, link = None: bytes that are sent need a link; give link, in bytes/s one way "
            "(a card's own is book.catalog.accelerator(...).link())."
        )
    return None


@dataclass(frozen=True)
class Roof:
    """One machine at one precision: peak (FLOP/s, dense), bandwidth (bytes/s), and a name.

    link: bytes/s that it can send to other cards, one way; None if it works alone.
    Roofs are plural: one for each arithmetic unit and precision of a card.
    """

    name: str
    peak: float
    bandwidth: float
    link: float | None = None

    def __post_init__(self) -> None:
        for label in ("peak", "bandwidth", *(["link"] if self.link is not None else [])):
            if not getattr(self, label) > 0:
                raise ValueError(
                    f"{self.name}: {label} = {getattr(self, label)}: must be positive, in SI base units."
                )

    @property
    def ridge(self) -> Number:
        """FLOP/byte at the corner."""
        return ridge(self.peak, self.bandwidth)

    def attainable(self, intensity: Number) -> Number:
        """FLOP/s at this intensity (FLOP/byte)."""
        return attainable(intensity, self.peak, self.bandwidth)

    def time(self, cost: Cost) -> Number:
        """Seconds: the floor for this cost. Raises ValueError if it sends bytes and there is no link."""
        return time(cost.flops, cost.bytes, self.peak, self.bandwidth, cost.sent_bytes, self.link)

    def bound(self, cost: Cost) -> str:
        """'memory', 'compute' or 'link': which of the three times is the longest.

        Of equal ones it is compute, then memory: what meets the corner of two roofs waits for neither.
        """
        times = {"compute": cost.flops / self.peak, "memory": cost.bytes / self.bandwidth}
        times["link"] = _link_time(cost.sent_bytes, self.link) or 0
        return max(times, key=times.__getitem__)

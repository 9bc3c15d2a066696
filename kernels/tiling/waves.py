"""Into how many parts to cut the work of a tile, so that the card is full to the end.

As many programs as a card holds at once are a wave: `slots` of them. What is left over after whole
waves runs alone, with the rest of the card idle: 1.08 waves take the time of two. A tile is a chain
of equal pieces (of K, of a context), so parts of it can run side by side: more and shorter programs,
whose last wave may be fuller, for the traffic of their partial results.
"""

from __future__ import annotations

from kernels.tiling.integers import ceil_div

START = 2  # pieces whose time a program takes for its first loads and its last sums
NEAR = 0.05  # more parts must gain more than this: adding them up takes a launch of its own


def fill(tiles: int, pieces: int, slots: int, parts: int = 1) -> float:
    """Share of a card's time in which it works, if `tiles` of `pieces` each are cut into `parts`.

    A wave takes as long as its longest program: 1.0 for whole waves, 0.54 for 1.08 of them.
    """
    waves, longest = ceil_div(tiles * parts, slots), ceil_div(pieces, parts)
    return tiles * pieces / (slots * waves * longest)


def parts(tiles: int, pieces: int, slots: int, most: int, extra: float = 0.0) -> int:
    """The fewest parts, `most` at the utmost, that take hardly longer than the best number of them.

    extra: what the partial results of one part a tile add, over the time that all tiles take on a
    full card. No part is without a piece.
    """
    each = [ceil_div(pieces, wanted) for wanted in range(1, max(1, min(most, pieces)) + 1)]
    times = {}
    for longest in dict.fromkeys(each):
        n = ceil_div(pieces, longest)
        waves = ceil_div(tiles * n, slots) * (longest + START)
        times[n] = waves * slots / (tiles * pieces) + (extra * n if n > 1 else 0.0)
    return next(n for n in sorted(times) if times[n] <= (1 + NEAR) * min(times.values()))

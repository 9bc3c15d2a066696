"""Into how many parts to cut the work of a tile, so that the card is full to the end.

As many programs as a card holds at once are a wave. What is left over after whole waves runs alone,
with the rest of the card idle: 1.08 waves take the time of two. A tile is a chain of equal pieces
(of K, of a context), so parts of it can run side by side: more and shorter programs, whose last wave
may be fuller, for the traffic of their partial results.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.tiling.integers import ceil_div

START = 2  # pieces whose time a program takes for its first loads and its last sums
NEAR = 0.05  # more parts must gain more than this: adding them up takes a launch of its own


@dataclass(frozen=True)
class Room:
    """Where programs run: `multiprocessors`, each with room for `fit` of them at once.

    busy: how many of them, 1 to `fit`, hide each other's waits. More share what one multiprocessor
    can do, fewer leave some of it idle.
    """

    multiprocessors: int
    fit: int
    busy: int

    def turns(self, programs: int) -> int:
        """How often one multiprocessor does the work of a program until all `programs` are done.

        A wave takes `fit` turns, full or not. Only where all fit into one, those of the fullest
        multiprocessor count, `busy` of them at least.
        """
        waves = ceil_div(programs, self.multiprocessors * self.fit)
        fullest = ceil_div(programs, self.multiprocessors)
        return self.fit * waves if waves > 1 else max(fullest, self.busy)


def fill(tiles: int, pieces: int, room: Room, parts: int = 1) -> float:
    """Share of the time in which the card works, if `tiles` of `pieces` each are cut into `parts`.

    1.0 for whole waves, 0.54 for 1.08 of them, and less if some programs have fewer pieces.
    """
    return tiles * pieces / (room.multiprocessors * room.turns(tiles * parts) * ceil_div(pieces, parts))


def parts(tiles: int, pieces: int, room: Room, most: int, extra: float = 0.0) -> int:
    """The fewest parts, `most` at the utmost, that take hardly longer than the best number of them.

    extra: what the partial results of one part a tile add, over the time that all tiles take on a
    full card. No part is without a piece.
    """
    each = [ceil_div(pieces, wanted) for wanted in range(1, max(1, min(most, pieces)) + 1)]
    times = {}
    for longest in dict.fromkeys(each):
        n = ceil_div(pieces, longest)
        started = (longest + START) / longest
        times[n] = started / fill(tiles, pieces, room, n) + (extra * n if n > 1 else 0.0)
    return next(n for n in sorted(times) if times[n] <= (1 + NEAR) * min(times.values()))

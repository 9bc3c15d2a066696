"""How the bytes of a launch are divided among its programs: whether one of them does most of the work."""

from __future__ import annotations

import math
from collections import Counter

from book.say import say
from kernels.evidence.counted.races import Order

FEW = 8  # programs of a launch: they may be one whole tile and what is left over along three axes
MOST = 0.5  # of the bytes


class Balance:
    """Bytes of each program of the launch that runs; sentences: of the launches of which one did most."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._bytes: Counter[int] = Counter()  # by the program's first stamp
        self._programs = 0
        self._sentences: dict[str, None] = {}

    def begin_launch(self, grid: tuple[int, ...]) -> None:
        """A launch of this many programs begins, and the one before is over."""
        self._end()
        self._programs = math.prod(grid)

    def add(self, size: int) -> None:
        """The program that runs now has loaded or stored so many bytes."""
        self._bytes[self._order.program] += size

    def sentences(self) -> tuple[str, ...]:
        """What is wrong with launches so far."""
        self._end()
        return tuple(self._sentences)

    def _end(self) -> None:
        if self._programs > FEW and self._bytes:
            program, most = self._bytes.most_common(1)[0]
            share = most / self._bytes.total()
            if share > MOST:
                words = say(
                    "program {program} does {share:.0%} of the bytes of a launch of {programs:,} programs: a "
                    "GPU's other multiprocessors wait for it; give each program its part.",
                    program=self._order.called(program),
                    share=share,
                    programs=self._programs,
                )
                self._sentences[words] = None
        self._bytes.clear()

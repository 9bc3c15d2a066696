"""Data races between the programs of one launch: who touched which piece of memory, and in what order.

Triton's interpreter runs programs one after another, a GPU in any order and at once. So whatever one
program reads or writes of what another one of the same launch writes is a race, whichever came first
here, unless an atomic orders them. Launches are ordered among themselves.

Time is a stamp: a number that grows when a program begins and when it releases something. A cell
remembers the stamps of its last write, of the first and the last program that read it, and of the
first and last atomic; the method is FastTrack's (Flanagan and Freund, PLDI 2009), made simple by
programs that run one after another.

What is assumed of atomics: they never race with each other; one that releases passes on all that its
program did before, in every thread, and one that acquires at the same address takes it over. So a
ticket with acquire and release (Triton's default) orders the last arriver's reads behind the others'
writes; a relaxed atomic orders nothing. That the compiled code keeps this promise is for the rung
that executes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from book.say import say

# what a program may not do to a cell that another did this to, in no order
_AGAINST = {
    "reads": (("write", "writes"), ("first atomic", "atomics"), ("last atomic", "atomics")),
    "writes": (
        ("write", "writes"),
        ("first read", "reads"),
        ("last read", "reads"),
        ("first atomic", "atomics"),
        ("last atomic", "atomics"),
    ),
    "atomics": (("write", "writes"), ("first read", "reads"), ("last read", "reads")),
}


def sentence(verb: str, other_verb: str, *, program: str, other: str, element: str) -> str:
    """The race as a reader is told it. verb, other_verb: "reads", "writes" or "atomics"."""
    if (verb, other_verb) == ("reads", "writes"):
        return say(
            "program {program} reads {element}, which {other} of the same launch writes: a GPU runs them in "
            "any order; give the second step a launch of its own.",
            program=program,
            element=element,
            other=other,
        )
    if (verb, other_verb) == ("writes", "reads"):
        return say(
            "program {program} writes {element}, which {other} of the same launch reads: a GPU runs them in "
            "any order; write somewhere else, or in a launch of its own.",
            program=program,
            element=element,
            other=other,
        )
    if (verb, other_verb) == ("writes", "writes"):
        return say(
            "program {program} writes {element}, which {other} of the same launch writes too: on a GPU "
            "whichever comes last stays; give each element one program, or use atomics.",
            program=program,
            element=element,
            other=other,
        )
    return say(
        "programs {program} and {other} of the same launch touch {element}, one with an atomic and one "
        "without, and nothing orders the two: a GPU runs them in any order; use atomics in both.",
        program=program,
        element=element,
        other=other,
    )


@dataclass
class Order:
    """Which program runs now, and what of the others' work comes before what it does.

    now: the stamp of this moment. program, launch: the first stamps of the program and of the launch
    that run. seen: of other programs, by their first stamp, the last stamp that an atomic ordered
    before now.
    """

    now: int = 0
    program: int = 0
    launch: int = 1
    seen: dict[int, int] = field(default_factory=dict)
    _programs: list[int] = field(default_factory=lambda: [0])  # stamp -> first stamp of its program
    _indices: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    _grid: tuple[int, ...] = ()
    _clocks: list[dict[int, int]] = field(default_factory=lambda: [{}])  # what atomics released
    _first_clock: int = 1

    def begin_launch(self, grid: tuple[int, ...]) -> None:
        """A launch of this many programs: everything before is ordered before it."""
        self._grid = grid
        self.launch, self._first_clock = self.now + 1, len(self._clocks)

    def begin_program(self, index: tuple[int, ...]) -> None:
        """The program of this index runs from here on."""
        self.now += 1
        self.program = self.now
        self.seen = {}
        self._programs.append(self.program)
        self._indices[self.program] = index, self._grid

    def called(self, stamp: int) -> str:
        """The program that did what bears this stamp, by as many numbers as its grid has: "(3, 1)"."""
        index, grid = self._indices[self._programs[stamp]]
        used = max((i + 1 for i, n in enumerate(grid) if n > 1), default=1)
        return str(index[0]) if used == 1 else str(tuple(index[:used]))

    def programs(self, stamps: np.ndarray) -> list[str]:
        """The programs whose stamps these are, in the order in which they ran."""
        first = sorted({self._programs[stamp] for stamp in np.unique(stamps)})
        return [self.called(stamp) for stamp in first if stamp]

    def ordered(self, stamp: int) -> bool:
        """Whether what bears this stamp, of another program, is ordered before now."""
        return stamp <= self.seen.get(self._programs[stamp], 0)

    def synchronise(self, clocks: np.ndarray, acquires: bool, releases: bool) -> int:
        """An atomic on cells with these clocks: take over what they hold; the clock that they hold then.

        0 where the cells keep their own.
        """
        held: dict[int, int] = {}
        for clock in np.unique(clocks[clocks >= self._first_clock]):
            _join(held, self._clocks[clock])
        if acquires:
            _join(self.seen, held)
        if not releases:
            return 0
        _join(held, self.seen)
        held[self.program] = self.now
        self._clocks.append(held)
        self.now += 1  # what comes after a release is not part of it
        self._programs.append(self.program)
        return len(self._clocks) - 1


def _join(clock: dict[int, int], other: dict[int, int]) -> None:
    for program, stamp in other.items():
        if clock.get(program, 0) < stamp:
            clock[program] = stamp


class Cells:
    """The memory of one storage in cells of equal width, and the stamps of each."""

    def __init__(self, base: int, size: int, width: int) -> None:
        """base: address; size, width: bytes of all and of a cell."""
        self.base, self.size, self.width = base, size, width
        self._stamps: dict[str, np.ndarray] = {}

    def cells(self, address: int, itemsize: int, elements: np.ndarray) -> np.ndarray:
        """The cells of `elements` of a tensor that begins at `address`: [elements] or [elements, parts]."""
        if itemsize < self.width:  # a view with narrower numbers: cells become as narrow
            for name, stamps in self._stamps.items():
                self._stamps[name] = np.repeat(stamps, self.width // itemsize)
            self.width = itemsize
        offset = (address - self.base) // self.width
        parts = itemsize // self.width
        if parts == 1:
            return elements + offset if offset else elements
        return (elements * parts + offset)[:, None] + np.arange(parts)

    def stamps(self, name: str) -> np.ndarray:
        """What is remembered under this name, made at its first use."""
        if name not in self._stamps:
            self._stamps[name] = np.zeros(-(-self.size // self.width), dtype=np.int32)
        return self._stamps[name]

    def race(self, verb: str, cells: np.ndarray, order: Order) -> tuple[int, str, int] | None:
        """(position in `cells`, what another program did there, its stamp) of the first race, or None."""
        for name, other in _AGAINST[verb]:
            if name not in self._stamps:
                continue
            stamps = self._stamps[name][cells]
            if stamps.max() < order.launch:
                continue
            foreign = (stamps >= order.launch) & (stamps < order.program)
            if not foreign.any():
                continue
            for stamp in np.unique(stamps[foreign]):
                if not order.ordered(int(stamp)):
                    return int(np.argmax((stamps == stamp).ravel())), other, int(stamp)
        return None

    def read(self, cells: np.ndarray, order: Order) -> np.ndarray:
        """Remember a read; of each cell, whether it is this program's first of it."""
        return self._first_and_last("read", cells, order) < order.program

    def write(self, cells: np.ndarray, order: Order) -> np.ndarray:
        """Remember a write; of each cell, whether it is this program's first to it."""
        stamps = self.stamps("write")
        before = stamps[cells]
        stamps[cells] = order.now
        return before < order.program

    def atomic(self, cells: np.ndarray, order: Order, acquires: bool, releases: bool) -> None:
        """Remember an atomic, and what it orders."""
        self._first_and_last("atomic", cells, order)
        clocks = self.stamps("clock")
        if clock := order.synchronise(clocks[cells], acquires, releases):
            clocks[cells] = clock

    def _first_and_last(self, what: str, cells: np.ndarray, order: Order) -> np.ndarray:
        """Stamp the cells with now; the stamps that they bore before."""
        first, last = self.stamps(f"first {what}"), self.stamps(f"last {what}")
        before = last[cells]
        if before.max() < order.launch:
            first[cells] = order.now
        elif (fresh := before < order.launch).any():
            first[cells[fresh]] = order.now
        last[cells] = order.now
        return before

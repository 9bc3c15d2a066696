"""What every warp did in shared memory, in order, and by that why a synchronisation is not missed.

A second opinion on the race detector, by brute force: the accesses between two barriers are kept as they
are, and a barrier is needed if what lies before it and what lies behind it meet at a place, from two warps,
one of them writing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kernels.evidence.executed import races
from kernels.evidence.executed.ptx import Instruction

SEVERAL = 999  # warps
GROUP = 100  # plus the number of a warpgroup whose four warps read as one, see `same_warp`
NEEDED = "needed"


@dataclass
class Accesses:
    """Between two barriers of one program: (writes, cells, warps, sides) of each access.

    sides: "both", but "behind" a barrier only where a tensor core begins to read, "before" one only where
    that is over.
    """

    found: list[tuple[bool, np.ndarray, np.ndarray, str]] = field(default_factory=list)

    def by_cell(self, side: str, writes: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Sorted cells that were written, or read (or any), and of each the warp, or SEVERAL."""
        mine = [
            (c, w) for kind, c, w, where in self.found if writes in (None, kind) and where in ("both", side)
        ]
        if not mine:
            return np.zeros(0, int), np.zeros(0, int)
        cells, warps = (np.concatenate(parts) for parts in zip(*mine, strict=True))
        at, inverse = np.unique(cells, return_inverse=True)
        low, high = np.full(len(at), SEVERAL), np.zeros(len(at), int)
        np.minimum.at(low, inverse, warps)
        np.maximum.at(high, inverse, warps)
        return at, np.where(low == high, low, SEVERAL)

    @property
    def only_reads(self) -> bool:
        return not any(writes for writes, *_ in self.found)


def same_warp(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether two are one warp, or a warpgroup and a warp of it, whose wait tells it that all four are done.

    That is how CUTLASS uses wgmma: one thread of a warpgroup hands back what the group has read.
    """
    grouped = np.maximum(one, other)
    return (one == other) & (one < SEVERAL) | (
        (grouped >= GROUP) & (grouped < SEVERAL) & (np.minimum(one, other) // 4 == grouped - GROUP)
    )


def meet(before: Accesses, behind: Accesses) -> tuple[bool, bool]:
    """Whether the two touch one place, a write among them; and whether different warps do."""
    same = different = False
    for mine, its in ((True, None), (None, True)):
        (a, first), (b, second) = before.by_cell("before", mine), behind.by_cell("behind", its)
        _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
        same |= bool(len(i))
        different |= not same_warp(first[i], second[j]).all()
    return same, different


class Diary(races.SharedRaces):
    """A race detector that also keeps, of each program of its batch, what happened in which order.

    entries: program -> (barrier, what lies before it) in turn. ended: by id the waits that ended something.
    kept: one diary a batch.
    """

    kept: list[Diary] = []

    def __init__(self, *options: object) -> None:
        super().__init__(*options)
        self.entries: dict[int, list[tuple[Instruction, Accesses]]] = defaultdict(list)
        self.current: dict[int, Accesses] = defaultdict(Accesses)
        self.ended: set[int] = set()
        self.kept.append(self)

    def _note(
        self, writes: bool, cells: np.ndarray, program: np.ndarray, warp: np.ndarray, side: str = "both"
    ) -> None:
        program, warp = (np.broadcast_to(x, cells.shape).reshape(-1) for x in (program, warp))
        flat = cells.reshape(-1)
        for p in np.unique(program):
            here = program == p
            self.current[int(p)].found.append((writes, flat[here], warp[here], side))

    def barrier(self, programs):
        self._ended_here()
        super().barrier(programs)
        place = self.report.__self__.now
        for p in np.arange(len(self.epoch))[programs]:
            self.entries[int(p)].append((place, self.current.pop(int(p), Accesses())))

    def read(self, cells, program, warp, what):
        super().read(cells, program, warp, what)
        self._note(False, cells, program, warp)

    def write(self, cells, program, warp, what, *, in_flight=False):
        super().write(cells, program, warp, what, in_flight=in_flight)
        self._note(True, cells, program, warp)

    def land(self, cells, program, warp):
        super().land(cells, program, warp)
        if cells.size:
            self.ended.add(id(self.report.__self__.now))
        self._note(True, cells, program, warp)

    def read_by_tensor_core(self, offsets, programs, warps, what):
        reading = super().read_by_tensor_core(offsets, programs, warps, what)
        for p, warp in zip(reading.programs, reading.warps, strict=True):
            self._note(False, reading.cells + p * self.size, np.array(p), np.array(warp), "behind")
        return reading

    def product_touches(self, cells, program, warp, what, *, writes):
        super().product_touches(cells, program, warp, what, writes=writes)
        self._note(writes, cells, program, warp, "behind")

    def read_is_over(self, reading, warps, **options):
        super().read_is_over(reading, warps, **options)
        if warps[reading.programs].any():
            self.ended.add(id(self.report.__self__.now))

    def _ended_here(self) -> None:
        """Notes the reading that ended before this barrier; who all have seen that need no barrier for it."""
        many = self.report.__self__.warps_each
        for reading in self.readings:
            for p, epoch, seen in zip(reading.programs, reading.epoch, reading.seen, strict=True):
                who = np.flatnonzero(seen[:many])
                if epoch == self.epoch[p] and len(who) < many:
                    group = GROUP + who[0] // 4 if len(who) == 4 and who[0] // 4 == who[-1] // 4 else SEVERAL
                    self._note(False, reading.cells + p * self.size, np.array(p), np.array(group), "before")

    def around(self, place: Instruction) -> Iterator[tuple[Accesses, Accesses]]:
        """What lies before and behind each time a program met at this barrier."""
        for p, entries in self.entries.items():
            behind = [accesses for _, accesses in entries[1:]] + [self.current.get(p, Accesses())]
            for (where, before), after in zip(entries, behind, strict=True):
                if where is place:
                    yield before, after


def why_wait(place: Instruction, diaries: list[Diary]) -> str:
    """Why this wait may go."""
    if not any(id(place) in diary.ended for diary in diaries):
        return "nothing is on its way when it is reached"
    return "what it waits for is not touched before another wait"


def why(place: Instruction, diaries: list[Diary]) -> str:
    """Why this barrier may go, or NEEDED: of all the times that it was passed, the strongest reason."""
    reasons = [
        "nobody came here",
        "nothing is touched before it since the last barrier",
        "nothing is touched behind it until the next barrier",
        "there is only reading on both sides of it",
        "other places are touched behind it than before it",
        "each warp touches what it alone has touched before",
        NEEDED,
    ]
    worst = 0
    for diary in diaries:
        for before, after in diary.around(place):
            if not before.found:
                reason = 1
            elif not after.found:
                reason = 2
            elif before.only_reads and after.only_reads:
                reason = 3
            else:
                same, different = meet(before, after)
                reason = 6 if different else 5 if same else 4
            worst = max(worst, reason)
    return reasons[worst]

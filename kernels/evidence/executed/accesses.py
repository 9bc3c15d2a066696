"""Who has been at each cell of global memory: what the detector of races remembers of accesses of one kind.

A mark is epoch * WARPS + warp. The last two warps that no program has stand for several: SEVERAL_WARPS, and
ALIKE for those of one instruction whose numbers go nowhere but into what is stored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.evidence.executed.races import NOBODY, WARPS

Question = Callable[[], bool]  # asked only where the answer matters
SEVERAL = -2  # programs
SEVERAL_WARPS, ALIKE = WARPS - 1, WARPS - 2


def _clash(cells: np.ndarray, values: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Which of an instruction's accesses meet at their cell another one that has another value.

    last: int32, one for each cell, to be written into.
    """
    last[cells] = values
    off = last[cells] != values
    if off.any():
        last[cells[off]] = -1
        off = last[cells] == -1
    return off


def spread(cells: np.ndarray, program: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Which accesses of one instruction meet those of another program at their cell."""
    if cells.size == 0 or (program == program.flat[0]).all():
        return np.zeros(cells.shape, bool)
    return _clash(cells, program, last)


def conflict(
    earlier: np.ndarray, mark: np.ndarray, cells: np.ndarray, last: np.ndarray, *, one: bool
) -> np.ndarray:
    """Which accesses follow one of another warp in the same epoch; earlier: marks of their own program.

    one: a single warp may follow warps that were ALIKE, being one of them.
    """
    bad = (earlier >= 0) & (earlier // WARPS == mark // WARPS) & (earlier != mark)
    if one and bad.any() and (alike := bad & (earlier % WARPS == ALIKE)).any():
        bad &= ~alike | _clash(cells, mark, last)
    return bad


def _joined(
    old: np.ndarray, mark: np.ndarray, cells: np.ndarray, last: np.ndarray, only_stored: Question
) -> np.ndarray:
    """Marks after these accesses, of one program each; old: its marks before, -1 for none."""
    again = (old >= 0) & (old // WARPS == mark // WARPS) & (old != mark)
    meet = _clash(cells, mark, last)
    if not (again.any() or meet.any()):
        return mark
    first = mark - mark % WARPS
    together = meet & only_stored()
    several = (meet & ~together) | (again & ~(together & (old % WARPS == ALIKE)))
    return np.where(several, first + SEVERAL_WARPS, np.where(together, first + ALIKE, mark))


class Accesses:
    """Of each cell the one program that was there, or SEVERAL, and its mark: no program is ordered."""

    def __init__(self, last: np.ndarray) -> None:
        cells, self.last = len(last), last
        self.who = np.full(cells, NOBODY, np.int32)
        self.mark = np.full(cells, NOBODY, np.int32)

    def by_others(self, cells: np.ndarray, program: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Who was at each cell, and whether that was another program."""
        who = self.who[cells]
        return who, (who != NOBODY) & (who != program)

    def own(self, cells: np.ndarray, program: np.ndarray) -> np.ndarray:
        """The mark that the program itself left at each cell, -1 for none."""
        return np.where(self.who[cells] == program, self.mark[cells], NOBODY)

    def note(self, cells: np.ndarray, program: np.ndarray, mark: np.ndarray, only_stored: Question) -> None:
        old = self.who[cells]
        new = _joined(self.own(cells, program), mark, cells, self.last, only_stored)
        self.mark[cells] = new
        if new is not mark:
            several = new % WARPS == SEVERAL_WARPS
            self.mark[cells[several]] = new[several]
        self.who[cells] = np.where((old == NOBODY) | (old == program), program, SEVERAL)
        now = self.who[cells]  # several programs may be at one cell in this very instruction
        self.who[cells[(now != program) & (now != SEVERAL)]] = SEVERAL


class Clocks:
    """now: of each program what it knows of each other one's clock. sets: of accesses that they date."""

    def __init__(self, programs: int) -> None:
        self.now = np.eye(programs, dtype=np.int32)
        self.kinds: list[OrderedAccesses] = []

    def postpone(self, program: int, mark: int) -> None:
        """What other warps of this program did in this epoch is not part of what it now releases."""
        for one in self.kinds:
            when, marks = one.when[: one.count, program], one.marks[: one.count, program]
            late = (when == self.now[program, program]) & (marks // WARPS == mark // WARPS)
            when[late & (marks != mark) & (marks % WARPS != ALIKE)] += 1


class OrderedAccesses:
    """Of each cell the set of programs that were there, each with its clock then and its mark.

    Cells that the same programs visited in the same order share a set; set 0 is empty. when, marks:
    [sets, programs], 0 and -1 for who was not there.
    """

    def __init__(self, last: np.ndarray, clocks: Clocks) -> None:
        self.clocks, self.last = clocks, last
        self.at = np.zeros(len(last), np.int32)
        programs = len(clocks.now)
        self.when, self.marks = np.zeros((16, programs), np.int32), np.full((16, programs), -1, np.int32)
        self.count = 1
        self.next: dict[tuple[int, int, int, int], int] = {}  # set, program, its clock, mark -> set
        clocks.kinds.append(self)

    def by_others(self, cells: np.ndarray, program: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Who was at each cell, and whether nothing orders that before what `program` does now."""
        other, bad = np.full(cells.shape, NOBODY), np.zeros(cells.shape, bool)
        sets = self.at[cells]
        if not sets.any():
            return other, bad
        for p in np.unique(program):
            mine = program == p
            each, where = np.unique(sets[mine], return_inverse=True)
            unknown = self.when[each] > self.clocks.now[p]
            unknown[:, p] = False
            bad[mine] = unknown.any(1)[where]
            other[mine] = unknown.argmax(1)[where]
        return other, bad

    def own(self, cells: np.ndarray, program: np.ndarray) -> np.ndarray:
        """The mark that the program itself left at each cell, -1 for none."""
        return self.marks[self.at[cells], program]

    def note(self, cells: np.ndarray, program: np.ndarray, mark: np.ndarray, only_stored: Question) -> None:
        for p in np.unique(program):
            mine = program == p
            here, marks = cells[mine], mark[mine]
            sets = self.at[here]
            marks = _joined(self.marks[sets, p], marks, here, self.last, only_stored)
            each, where = np.unique(sets.astype(np.int64) << 32 | marks, return_inverse=True)
            after = np.array([self._after(int(one) >> 32, int(p), int(one) & 0xFFFFFFFF) for one in each])
            new = after[where]
            self.at[here] = new
            several = marks % WARPS == SEVERAL_WARPS  # wins at a cell over single warps
            self.at[here[several]] = new[several]

    def _after(self, before: int, program: int, mark: int) -> int:
        now = int(self.clocks.now[program, program])
        found = self.next.get((before, program, now, mark))
        if found is None:
            if self.count == len(self.when):
                self.when = np.concatenate([self.when, np.zeros_like(self.when)])
                self.marks = np.concatenate([self.marks, np.full_like(self.marks, -1)])
            found = self.next[before, program, now, mark] = self.count
            self.when[found], self.marks[found] = self.when[before], self.marks[before]
            self.when[found, program], self.marks[found, program] = now, mark
            self.count += 1
        return found

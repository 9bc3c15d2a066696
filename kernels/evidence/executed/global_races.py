"""Data races between the programs of a launch, and between the warps of one, in global memory.

The clocks of programs are vectors that acquire and release join, as in FastTrack (Flanagan and Freund, 2009).
"""

from __future__ import annotations

import numpy as np

from kernels.evidence.executed.races import NOBODY, WARPS, Report


class Readers:
    """Of each cell the program that read it last, or SEVERAL, and when."""

    SEVERAL = -2

    def __init__(self, cells: int) -> None:
        self.who = np.full(cells, NOBODY, np.int32)
        self.when = np.zeros(cells, np.int32)


class GlobalRaces:
    """Global memory of one launch. Atomics are ordered among themselves, not with other accesses.

    Strong loads (volatile, relaxed) race with none of them, and a strong store is one of them.

    A cell of two bytes remembers its last writer, reader and atomic, and when. A cell that several unordered
    programs have read is not written again without a report, even by one that all have synchronised with.
    Within a program a warp may not read what another has written with no barrier since, and an atomic that
    releases passes on what its own warp did, and the others before the last barrier. Lanes of a warp are
    taken to be in order, and all of a program to see what one of its threads acquired.
    """

    GRANULE = 2

    def __init__(self, size: int, programs: int, report: Report) -> None:
        cells = size // self.GRANULE
        self.report = report
        self.writer = np.full(cells, NOBODY, np.int32)
        self.written = np.zeros(cells, np.int32)
        self.readers = Readers(cells)
        self.strong: Readers | None = None  # of strong loads: made when the first one comes
        self.marks = np.full(cells, NOBODY, np.int32)  # epoch and warp of the last writer
        self.updater: np.ndarray | None = None  # of atomics: made when the first one comes
        self.updated = np.zeros(0, np.int32)
        self.programs = programs
        self.clock: np.ndarray | None = None  # programs squared: made when one of them first synchronises
        self.at: dict[int, np.ndarray] = {}

    def cells(self, address: np.ndarray, size: int) -> np.ndarray:
        """Places of the cells of accesses of `size` bytes, on a new last axis."""
        return address[..., None] // self.GRANULE + np.arange(max(1, size // self.GRANULE))

    def _unordered(self, who: np.ndarray, program: np.ndarray, when: np.ndarray) -> np.ndarray:
        known = 0 if self.clock is None else self.clock[program, np.maximum(who, 0)]
        return (who >= 0) & (who != program) & (known < when)

    def _now(self, program: np.ndarray) -> np.ndarray | int:
        return 1 if self.clock is None else self.clock[program, program]

    def _beside_atomics(self, cells: np.ndarray, program: np.ndarray, verb: str, what: str) -> None:
        if self.updater is None:
            return
        other = self.updater[cells]
        if (bad := self._unordered(other, program, self.updated[cells])).any():
            self._tell(verb, what, cells, program, other, bad)

    def read(
        self, cells: np.ndarray, program: np.ndarray, mark: np.ndarray, what: str, *, strong: bool = False
    ) -> None:
        """`program` (its number in the launch, for each cell) reads; mark: its epoch and warp."""
        program = np.broadcast_to(program, cells.shape)
        writer, wrote = self.writer[cells], self.marks[cells]
        bad = self._unordered(writer, program, self.written[cells])
        if bad.any():
            self._tell("reads", what, cells, program, writer, bad)
        bad = (writer == program) & (wrote // WARPS == mark // WARPS) & (wrote != mark)
        if bad.any():
            self.report(
                "global memory is read",
                f"{what}: written by another warp of its program with no barrier since",
                int(bad.sum()),
            )
        if strong:
            self.strong = self.strong or Readers(len(self.writer))
            self._note(self.strong, cells, program)
        else:
            self._beside_atomics(cells, program, "reads", what)
            self._note(self.readers, cells, program)

    def _note(self, readers: Readers, cells: np.ndarray, program: np.ndarray) -> None:
        old = readers.who[cells]
        alone = (old == NOBODY) | (old == program)
        alone |= (old >= 0) & ~self._unordered(old, program, readers.when[cells])
        readers.who[cells] = np.where(alone, program, readers.SEVERAL)
        readers.when[cells] = self._now(program)
        now = readers.who[cells]  # several programs may read one cell in this very instruction
        readers.who[cells[(now != program) & (now != readers.SEVERAL)]] = readers.SEVERAL

    def _read_by_others(
        self, readers: Readers, cells: np.ndarray, program: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Who has read each cell, and whether that is in no order with what `program` does now."""
        reader = readers.who[cells]
        return reader, (reader == readers.SEVERAL) | self._unordered(reader, program, readers.when[cells])

    def write(self, cells: np.ndarray, program: np.ndarray, mark: np.ndarray, what: str) -> None:
        """`program` (its number in the launch, for each cell) writes; mark: its epoch and warp."""
        program = np.broadcast_to(program, cells.shape)
        writer = self.writer[cells]
        written = self._unordered(writer, program, self.written[cells])
        reader, seen = self._read_by_others(self.readers, cells, program)
        if self.strong:
            other, strongly = self._read_by_others(self.strong, cells, program)
            reader, seen = np.where(seen, reader, other), seen | strongly
        self.writer[cells] = program
        bad = written | seen | (self.writer[cells] != program)
        if bad.any():
            other = np.where(written, writer, np.where(seen, reader, self.writer[cells]))
            self._tell("writes", what, cells, program, other, bad)
        self._beside_atomics(cells, program, "writes", what)
        self.written[cells] = self._now(program)
        self.marks[cells] = np.broadcast_to(mark, cells.shape)

    def update(self, cells: np.ndarray, program: np.ndarray, what: str) -> None:
        """An atomic of `program` (its number in the launch, for each cell) reads and writes."""
        if self.updater is None:
            self.updater, self.updated = np.full_like(self.writer, NOBODY), np.zeros_like(self.writer)
        program = np.broadcast_to(program, cells.shape)
        writer = self.writer[cells]
        bad = self._unordered(writer, program, self.written[cells])
        reader, late = self._read_by_others(self.readers, cells, program)
        if (bad | late).any():
            self._tell("updates", what, cells, program, np.where(bad, writer, reader), bad | late)
        self.updater[cells] = program
        self.updated[cells] = self._now(program)

    def _tell(
        self, verb: str, what: str, cells: np.ndarray, program: np.ndarray, other: np.ndarray, bad: np.ndarray
    ) -> None:
        first = np.flatnonzero(bad)[0]
        mine, its, cell = (int(x.reshape(-1)[first]) for x in (program, other, cells))
        whose = "several programs" if its == Readers.SEVERAL else f"program {its}"
        self.report(
            f"program {mine} {verb} at byte {cell * self.GRANULE}",
            f"{what}: {whose} of the same launch had been there and nothing orders the two",
            int(bad.sum()),
        )

    def synchronise(self, program: int, address: int, mark: int, *, acquire: bool, release: bool) -> None:
        """An atomic of `program` at `address` that acquires what others released there, or releases.

        mark: the epoch and warp of its thread, whose release does not cover other warps of this epoch.
        """
        if self.clock is None:
            self.clock = np.eye(self.programs, dtype=np.int32)
        there = self.at.get(address)
        if acquire and there is not None:
            self.clock[program] = np.maximum(self.clock[program], there)
        if release:
            mine = self.clock[program]
            now = (self.writer == program) & (self.written == mine[program])
            elsewhere = (self.marks // WARPS == mark // WARPS) & (self.marks != mark)
            self.written[now & elsewhere] += 1
            self.at[address] = mine.copy() if there is None else np.maximum(mine, there)
            self.clock[program, program] += 1

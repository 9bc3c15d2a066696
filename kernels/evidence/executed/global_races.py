"""Data races between the programs of a launch, and between the warps of one, in global memory.

The clocks of programs are vectors that acquire and release join, as in FastTrack (Flanagan and Freund, 2009).
"""

from __future__ import annotations

import numpy as np

from kernels.evidence.executed.accesses import Accesses, Clocks, OrderedAccesses, Question, conflict, spread
from kernels.evidence.executed.races import Report

# How an access is strong: beside which others it counts as one of a single thread (PTX ISA, "Memory
# consistency model", morally strong). A cluster is one program here.
PLAIN, PROGRAM, DEVICE = "plain", "program", "device"
SCOPES = {"cta": PROGRAM, "cluster": PROGRAM, "gpu": DEVICE, "sys": DEVICE}


def never() -> bool:
    """No: what is read may go anywhere."""
    return False


class GlobalRaces:
    """Global memory of one launch: of each cell who has read and written it, plainly or strongly, and when.

    Two accesses, one of them a write, that nothing orders are a race between programs unless both are
    strong on the device, and between the warps of one program unless both are strong. An atomic is a strong
    write, so is a strong store.

    A cell is as wide as the narrowest access, `granule` bytes. ordered: whether an access of the launch
    acquires or releases; if none does, all programs are without order. Within a program barriers are the
    only order between warps, and an access that releases passes on what its own warp did, and the others
    before the last barrier. Lanes of a warp are taken to be in order, and all of a program to see what one
    of its threads acquired.
    """

    def __init__(
        self, size: int, programs: int, report: Report, *, granule: int = 1, ordered: bool = True
    ) -> None:
        self.granule, self.last = granule, np.zeros(-(-size // granule), np.int32)
        self.report, self.programs = report, programs
        self.clocks = Clocks(programs) if ordered else None
        self.reads: dict[str, Accesses | OrderedAccesses] = {}  # how strong -> those reads
        self.writes: dict[str, Accesses | OrderedAccesses] = {}
        self.at: dict[int, np.ndarray] = {}

    def cells(self, address: np.ndarray, size: int) -> np.ndarray:
        """Places of the cells of accesses of `size` bytes, on a new last axis."""
        return address[..., None] // self.granule + np.arange(max(1, size // self.granule))

    def read(
        self,
        cells: np.ndarray,
        program: np.ndarray,
        mark: np.ndarray,
        what: str,
        *,
        strength: str = PLAIN,
        only_stored: Question = never,
    ) -> None:
        """`program` (its number in the launch, for each cell) reads; mark: its epoch and warp.

        only_stored: what is read goes nowhere but into what the same thread stores. Warps that hold the same
        numbers all load them and one stores its result; that the others may see it then changes nothing.
        """
        program, mark = (np.broadcast_to(x, cells.shape) for x in (program, mark))
        self._look(self.writes, cells, program, mark, what, strength, "read", "written")
        self._note(self.reads, cells, program, mark, strength, only_stored)

    def write(
        self, cells: np.ndarray, program: np.ndarray, mark: np.ndarray, what: str, *, strength: str = PLAIN
    ) -> None:
        """`program` (its number in the launch, for each cell) writes; mark: its epoch and warp.

        strength: of an atomic, or of a strong store, on what it is one.
        """
        program, mark = (np.broadcast_to(x, cells.shape) for x in (program, mark))
        verb = "written" if strength == PLAIN else "updated"
        self._look(self.writes, cells, program, mark, what, strength, verb, "written")
        self._look(self.reads, cells, program, mark, what, strength, verb, "read")
        self._note(self.writes, cells, program, mark, strength)
        if strength != DEVICE and (bad := spread(cells, program, self.last)).any():
            self._tell(verb, what, cells, program, program, bad)

    def _note(
        self,
        kinds: dict[str, Accesses | OrderedAccesses],
        cells: np.ndarray,
        program: np.ndarray,
        mark: np.ndarray,
        strength: str,
        only_stored: Question = never,
    ) -> None:
        if strength not in kinds:
            kinds[strength] = (
                Accesses(self.last) if self.clocks is None else OrderedAccesses(self.last, self.clocks)
            )
        kinds[strength].note(cells, program, mark, only_stored)

    def _look(
        self,
        kinds: dict[str, Accesses | OrderedAccesses],
        cells: np.ndarray,
        program: np.ndarray,
        mark: np.ndarray,
        what: str,
        strength: str,
        verb: str,
        had: str,
    ) -> None:
        """Reports what races with earlier accesses: verb and had are what is done and was done."""
        for strong, earlier in kinds.items():
            other, bad = earlier.by_others(cells, program)
            if bad.any() and not strength == strong == DEVICE:
                self._tell(verb, what, cells, program, other, bad)
            if PLAIN in (strength, strong):
                bad = conflict(earlier.own(cells, program), mark, cells, self.last, one=had == "read")
                if bad.any():
                    self.report(
                        f"global memory is {verb}",
                        f"{what}: {had} by another warp of its program with no barrier since",
                        int(bad.sum()),
                    )

    def _tell(
        self, verb: str, what: str, cells: np.ndarray, program: np.ndarray, other: np.ndarray, bad: np.ndarray
    ) -> None:
        first = np.flatnonzero(bad)[0]
        mine, its, cell = (int(x.reshape(-1)[first]) for x in (program, other, cells))
        whose = f"program {its}" if 0 <= its != mine else "another program"
        self.report(
            f"byte {cell * self.granule} is {verb} for program {mine}",
            f"{what}: {whose} of the same launch had been there and nothing orders the two",
            int(bad.sum()),
        )

    def synchronise(self, program: int, address: int, mark: int, *, acquire: bool, release: bool) -> None:
        """An access of `program` at `address` that acquires what others released there, or releases.

        mark: the epoch and warp of its thread, whose release does not cover other warps of this epoch.
        """
        now = self.clocks.now
        there = self.at.get(address)
        if acquire and there is not None:
            now[program] = np.maximum(now[program], there)
        if release:
            self.clocks.postpone(program, mark)
            self.at[address] = now[program].copy() if there is None else np.maximum(now[program], there)
            now[program, program] += 1

"""Data races: two accesses to one place, one of them a write, with nothing that orders them.

Comparing numbers can't find them, since threads run in lockstep here: a missing barrier changes no
result. So every access leaves its mark, and what synchronises moves a clock. Between the programs of a
launch the clocks are vectors that acquire and release join, as in FastTrack (Flanagan and Freund, 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Report = Callable[[str, str, int], None]
# A race that no line of a kernel can mend; `executed` tells it apart.
UNFENCED = "stored with no fence.proxy.async since"
NOBODY, IN_FLIGHT = -1, -2
WARPS = 64  # more than a program has


@dataclass
class Reading:
    """Cells of shared memory that a tensor core reads: of each of `programs`, by the warps from `warps` on.

    cells: sorted places within a program; epoch: of each program when the read was waited for, -1 before;
    seen: of each program, which warps have waited for it and so know that it is over.
    """

    programs: np.ndarray
    warps: np.ndarray
    cells: np.ndarray
    epoch: np.ndarray
    seen: np.ndarray


class SharedRaces:
    """Shared memory of a batch of programs; barriers are the only order between a program's warps.

    A cell covers `granule` bytes and remembers its last writer and reader, as epoch * WARPS + warp; the
    epoch of a program grows at each of its barriers. What is copied asynchronously is IN_FLIGHT until the
    wait that lands it; what a tensor core reads is a Reading until that was waited for and a barrier passed.
    Tensor cores read through a proxy of their own: what threads have stored is there only behind a fence of
    their program (PTX ISA, "Async proxy"). That every thread which stored passes it is not watched.

    Behind the cells of shared memory lie those of tensor memory, if a program has any: one for each column
    and the lanes that one warp of four reaches, `tensor_cells` a program.
    """

    def __init__(self, programs: int, size: int, granule: int, report: Report, tensor_cells: int = 0) -> None:
        self.tensor_first, self.tensor_cells = programs * size // granule, tensor_cells
        cells = self.tensor_first + programs * tensor_cells
        self.granule, self.size, self.report = granule, size // granule, report
        self.writer = np.full(cells, NOBODY, np.int32)
        self.reader = np.full(cells, NOBODY, np.int32)
        self.shared_in = np.full(cells, NOBODY, np.int32)  # the epoch in which several warps read it
        self.epoch = np.zeros(programs, np.int32)
        self.readings: list[Reading] = []
        self.stores = 0  # so far, to say which of them a fence has passed
        self.stored = np.zeros(cells, np.int32)  # the last store to each cell
        self.fenced = np.zeros(programs, np.int32)  # the last store before each program's last fence

    def cells(self, flat: np.ndarray, size: int) -> np.ndarray:
        """Places of the cells of accesses of `size` bytes at these flat addresses, on a new last axis."""
        return flat[..., None] // self.granule + np.arange(max(1, size // self.granule))

    def cells_of_tensor(self, program: np.ndarray, quarter: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Places of the cells of tensor memory of a quarter of its lanes and a column; all broadcast."""
        return self.tensor_first + program * self.tensor_cells + quarter * (self.tensor_cells // 4) + column

    def _memory(self, cells: np.ndarray) -> str:
        return "tensor memory" if cells.size and cells.flat[0] >= self.tensor_first else "shared memory"

    def barrier(self, programs: np.ndarray | slice) -> None:
        """All threads of these programs have met."""
        self.epoch[programs] += 1
        self.readings = [
            r for r in self.readings if ((r.epoch == -1) | (r.epoch == self.epoch[r.programs])).any()
        ]

    def fence(self, programs: np.ndarray) -> None:
        """These programs (a bool for each) let the proxy of tensor cores see what they have stored."""
        self.fenced[programs] = self.stores

    def mark(self, program: np.ndarray, warp: np.ndarray) -> np.ndarray:
        return self.epoch[program] * WARPS + warp

    def read(self, cells: np.ndarray, program: np.ndarray, warp: np.ndarray, what: str) -> None:
        """`what` reads these cells; program and warp broadcast to them."""
        mark = np.broadcast_to(self.mark(program, warp), cells.shape)
        self._unwritten(cells, mark, what)
        old = self.reader[cells]
        several = (old // WARPS == mark // WARPS) & (old != mark) & (old >= 0)
        self.reader[cells] = mark
        several |= self.reader[cells] != mark  # of several lanes at one cell the last is kept
        if several.any():
            self.shared_in[cells[several]] = mark[several] // WARPS

    def _unwritten(self, cells: np.ndarray, mark: np.ndarray, what: str) -> None:
        writer = self.writer[cells]
        bad = (writer == IN_FLIGHT) | ((writer >= 0) & (writer // WARPS == mark // WARPS) & (writer != mark))
        if bad.any():
            self.report(
                f"{self._memory(cells)} is read",
                f"{what}: written by another warp with no barrier since, or in flight",
                int(bad.sum()),
            )

    def write(
        self, cells: np.ndarray, program: np.ndarray, warp: np.ndarray, what: str, *, in_flight: bool = False
    ) -> None:
        """`what` writes these cells, or will have done so when it has been waited for."""
        mark = np.broadcast_to(self.mark(program, warp), cells.shape)
        now = mark // WARPS
        writer, reader = self.writer[cells], self.reader[cells]
        bad = (writer == IN_FLIGHT) | ((writer >= 0) & (writer // WARPS == now) & (writer != mark))
        bad |= (reader >= 0) & (reader // WARPS == now) & (reader != mark)
        bad |= self.shared_in[cells] == now
        if self.readings:
            bad = bad | self._being_read(cells, program, warp)
        if bad.any():
            self.report(
                f"{self._memory(cells)} is written",
                f"{what}: read or written by another warp with no barrier since, or in flight",
                int(bad.sum()),
            )
        self.writer[cells] = IN_FLIGHT if in_flight else mark
        if not in_flight:
            self._stored(cells)

    def _stored(self, cells: np.ndarray) -> None:
        self.stores += 1
        self.stored[cells] = self.stores

    def _being_read(self, cells: np.ndarray, program: np.ndarray, warp: np.ndarray) -> np.ndarray:
        program, warp = (np.broadcast_to(x, cells.shape) for x in (program, warp))
        inside = cells - program * self.size
        low, high = inside.min(), inside.max()
        bad = np.zeros(cells.shape, bool)
        for one in self.readings:
            if one.cells[-1] < low or one.cells[0] > high:
                continue
            at = np.searchsorted(one.cells, inside).clip(max=len(one.cells) - 1)
            hit = one.cells[at] == inside
            if not hit.any():
                continue
            for p, epoch, seen in zip(one.programs, one.epoch, one.seen, strict=True):
                still = (epoch == -1) | ((epoch == self.epoch[p]) & ~seen[warp])
                bad |= hit & (program == p) & still
        return bad

    def land(self, cells: np.ndarray, program: np.ndarray, warp: np.ndarray) -> None:
        """What was in flight has been waited for by these warps."""
        self.writer[cells] = self.mark(program, warp)
        self._stored(cells)  # cp.async writes as a thread does (PTX ISA, "Async proxy"), unlike its bulk kin

    def read_by_tensor_core(
        self, offsets: np.ndarray, programs: np.ndarray, warps: np.ndarray, what: str
    ) -> Reading:
        """A tensor core begins to read at these offsets of each program, for the warps from `warps` on."""
        cells = np.unique(offsets.reshape(-1) // self.granule)
        each = cells + programs[:, None] * self.size
        self._unwritten(each, np.broadcast_to(self.mark(programs, warps)[:, None], each.shape), what)
        if (unfenced := self.stored[each] > self.fenced[programs][:, None]).any():
            self.report(
                "shared memory is read",
                f"{what}: {UNFENCED}",
                int(unfenced.sum()),
            )
        reading = Reading(
            programs,
            warps,
            cells,
            np.full(len(programs), -1, np.int32),
            np.zeros((len(programs), WARPS), bool),
        )
        self.readings.append(reading)
        return reading

    def product_touches(
        self, cells: np.ndarray, program: np.ndarray, warp: np.ndarray, what: str, *, writes: bool
    ) -> None:
        """A product that this warp starts reads these cells of tensor memory, or adds to them.

        It leaves no mark. Who reads its sums waits for its mbarrier, where the first try succeeds here, so
        that no such wait is watched.
        """
        mark = np.broadcast_to(self.mark(program, warp), cells.shape)
        self._unwritten(cells, mark, what)
        reader = self.reader[cells]
        if writes and (bad := (reader // WARPS == mark // WARPS) & (reader >= 0) & (reader != mark)).any():
            self.report(
                "tensor memory is written",
                f"{what}: read by another warp with no barrier since",
                int(bad.sum()),
            )

    def read_is_over(self, reading: Reading, warps: np.ndarray, *, own: bool = False) -> None:
        """Warps that have waited for it: a bool for each program of the batch and each of its warps.

        own: only the warpgroup that began it can have waited for it, as with wgmma.
        """
        waited = warps[reading.programs]
        if own:
            waited = waited & (np.arange(warps.shape[1]) // 4 == reading.warps[:, None] // 4)
        reading.seen[:, : warps.shape[1]] |= waited
        over = waited.any(1) & (reading.epoch == -1)
        reading.epoch[over] = self.epoch[reading.programs[over]]

"""The scheduler: which threads of a batch go on where.

Threads that are at the same place run together, lowest place first, which joins again what an `if` or a
loop has parted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.evidence.executed import wgmma
from kernels.evidence.executed.ptx import BARRIERS, Instruction, NotExecutable

SPINS = 64  # branches back to themselves before every waiting group gets its turn
PATIENCE = 1_000_000  # basic blocks of a batch with a loop that never ends; the book's longest takes 3,000


class Scheduler:
    """Who waits where. groups: place in the code -> threads that are about to run there, None for all.

    meeting: place behind a barrier -> threads that have arrived there.
    """

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.groups: dict[int, np.ndarray | None] = {0: None}
        self.meeting: dict[int, np.ndarray] = {}
        self.alive = np.ones(machine.shape, bool)
        self.everyone = True  # nobody has returned yet

    def add(self, place: int, on: np.ndarray | None) -> None:
        """These threads go on at `place`."""
        there = self.groups.get(place)
        if on is not None and there is not None:
            on = there | on
        if on is not None and self.everyone and on.all():
            on = None
        self.groups[place] = on

    def barrier(self, place: int, on: np.ndarray | None) -> None:
        """These threads wait until all of their program that still run have come here."""
        machine = self.machine
        if machine.counts is not None:
            machine.counts.barriers += int(machine.active(on).sum())
        if on is None and self.everyone and not self.meeting:
            if machine.races is not None:
                machine.races.barrier(slice(None))
            return self.add(place, None)
        mine = machine.threads(on)
        self.meeting[place] = self.meeting[place] | mine if place in self.meeting else mine
        return self.release()

    def release(self) -> None:
        """Lets the programs go on whose running threads are all at a barrier."""
        if not self.meeting:
            return
        arrived = np.logical_or.reduce(list(self.meeting.values()))
        complete = (arrived == self.alive).all(1) & arrived.any(1)
        if not complete.any():
            return
        if self.machine.races is not None:
            self.machine.races.barrier(complete)
        for place, mask in list(self.meeting.items()):
            if (free := mask & complete[:, None]).any():
                self.add(place, free)
            self.meeting[place] = mask & ~complete[:, None]
            if not self.meeting[place].any():
                del self.meeting[place]

    def leave(self, on: np.ndarray) -> None:
        """These threads have returned."""
        self.alive &= ~on
        self.everyone = False
        self.release()

    def run(self) -> Iterator[None]:
        """Takes the batch to its end, a basic block at a time."""
        machine, code = self.machine, self.machine.kernel.code
        stuck, last, blocks = 0, -1, 0
        while self.groups:
            blocks += 1
            if blocks > PATIENCE:
                raise NotExecutable(
                    f"{machine.now}: program {machine.programs[0, 0]} and others of its batch have run "
                    f"{PATIENCE:,} basic blocks: they wait for what never comes, or comes in a later batch."
                )
            place = min(self.groups)
            if len(self.groups) > 1 and (stuck > SPINS or machine.yields):  # somebody spins: all in turn
                place, stuck = min((p for p in self.groups if p > last), default=place), 0
            machine.yields = False
            on, first, last = self.groups.pop(place), place, place
            if machine.counts is not None:
                machine.counts.entered[place] += machine.warps(on)
            while True:
                one = machine.now = code[place]
                place += 1
                if machine.unready and not machine.unready.isdisjoint(one.registers):
                    wgmma.touched(machine, one, on)
                if one.run is None:
                    stuck = stuck + 1 if self._control(one, place, on) == first else 0
                    break
                one.run(machine, on)
                if place in machine.kernel.leaders:
                    self.add(place, on)
                    break
            yield

    def _control(self, one: Instruction, place: int, on: np.ndarray | None) -> int | None:
        """A barrier, branch or return; where a branch leads."""
        machine, live = self.machine, self.machine.threads(on)
        if one.form == "bar.warp.sync":
            self.add(place, on)
            return None
        if one.form in BARRIERS:
            self.barrier(place, on)
            return None
        taken = live
        if one.predicate is not None:
            holds = machine.registers[machine.kernel.index[one.predicate[0]]]
            taken = live & (~holds if one.predicate[1] else holds)
        rest = live & ~taken
        target = machine.kernel.labels[one.operands[0]] if one.operands else None
        if taken.any():
            if target is None:
                self.leave(taken)
            else:
                self.add(target, on if not rest.any() else taken)
        if rest.any():
            self.add(place, on if not taken.any() else rest)
        return target

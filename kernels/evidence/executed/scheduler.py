"""The scheduler: which threads of a batch go on where.

Threads that are at the same place run together, lowest place first, which joins again what an `if` or a
loop has parted. Where somebody waits for another program, all programs have their turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.evidence.executed import wgmma
from kernels.evidence.executed.ptx import BARRIERS, Instruction, NotExecutable

SPINS = 64  # turns of a loop that waits before all others have theirs
PATIENCE = 100_000  # basic blocks of a batch with a loop that never ends; the book's longest takes 3,000


class Scheduler:
    """Who waits where. groups: place in the code -> threads that are about to run there, None for all.

    meeting: place behind a barrier -> threads that have arrived there. turns: of loops that watch memory
    (`ptx.Kernel.watching`) since somebody last was elsewhere, spun: of them ever; others: basic blocks that
    are in no such loop.
    """

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.groups: dict[int, np.ndarray | None] = {0: None}
        self.meeting: dict[int, np.ndarray] = {}
        self.alive = np.ones(machine.shape, bool)
        self.everyone = True  # nobody has returned yet
        self.turns = self.others = self.spun = 0
        self._fair = False  # whether programs have turns
        self._round: list[tuple[int, np.ndarray]] = []

    @property
    def resident(self) -> int:
        """Programs that have not returned."""
        return int(self.alive.any(1).sum())

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
        machine, code, watching = self.machine, self.machine.kernel.code, self.machine.kernel.watching
        stuck, last, blocks = 0, -1, 0
        while self.groups:
            blocks += self.turns <= SPINS
            if blocks > PATIENCE:
                raise NotExecutable(
                    f"{machine.now}: program {machine.programs[0, 0]} and others of its batch have run "
                    f"{PATIENCE:,} basic blocks, and no end: a loop that nothing ends, or one that waits "
                    "with plain loads, which a card need not repeat (wait with atomics or volatile loads)."
                )
            place = min(self.groups)
            on = self.groups[place]
            self._fair |= self.turns > SPINS
            if self._fair and (whose := self._whose_turn()):
                place, on = whose
            elif len(self.groups) > 1 and (stuck > SPINS or machine.yields):  # somebody spins: all in turn
                place, stuck = min((p for p in self.groups if p > last), default=place), 0
                on = self.groups[place]
            machine.yields = False
            self._take(place, on)
            first = last = place
            if place not in watching:
                self.turns, self.others = 0, self.others + 1
            if machine.counts is not None:
                machine.counts.entered[place] += machine.warps(on)
            while True:
                one = machine.now = code[place]
                place += 1
                if machine.unready and not machine.unready.isdisjoint(one.registers):
                    wgmma.touched(machine, one, on)
                if one.run is None:
                    target = self._control(one, place, on)
                    stuck = stuck + 1 if target == first else 0
                    if target is not None and target < place and target in watching:
                        self.turns, self.spun = self.turns + 1, self.spun + 1
                    break
                one.run(machine, on)
                if place in machine.kernel.leaders:
                    self.add(place, on)
                    break
            yield

    def _whose_turn(self) -> tuple[int, np.ndarray] | None:
        """In turn for each program its threads that are at its lowest place, so that no warp comes apart.

        None once nobody watches memory any more.
        """
        if not self._round:
            self._fair = not self.machine.kernel.watching.isdisjoint(self.groups)
            if not self._fair:
                return None
            taken = np.zeros(self.machine.shape[0], bool)
            for place in sorted(self.groups):
                mine = self.machine.threads(self.groups[place]) & ~taken[:, None]
                taken |= mine.any(1)
                if mine.any():
                    self._round.append((place, mine))
            self._round.reverse()
        return self._round.pop()

    def _take(self, place: int, on: np.ndarray | None) -> None:
        """These threads wait at `place` no longer."""
        there = self.groups.pop(place)
        if on is not there and (rest := self.machine.threads(there) & ~on).any():
            self.groups[place] = rest

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

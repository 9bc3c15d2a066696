"""mbarrier: a barrier in shared memory that asynchronous work arrives at too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed.forms import Run, family
from kernels.evidence.executed.operands import address, integer, reader
from kernels.evidence.executed.ptx import WARP, Instruction, Kernel


@dataclass
class Barrier:
    """expected: arrivals of a phase; pending: of them still to come; ended: phases that are over."""

    expected: int
    pending: int
    ended: int = 0


def arrive(machine: Any, program: int, place: int, times: int = 1) -> Barrier:
    """Somebody, or something asynchronous, has arrived; the last of a phase ends it."""
    barrier = machine.tensor.barriers.get((program, place))
    if barrier is None:
        raise CardRefuses(f"{machine.now}: there is no mbarrier at {place}.")
    barrier.pending -= times
    if barrier.pending == 0:
        barrier.ended, barrier.pending = barrier.ended + 1, barrier.expected
    return barrier


@family(r"mbarrier\.(init|inval)\.shared(?:::cta)?\.b64", 1, 2)
def _init(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    get, count = address(kernel, one.operands[0]), integer(one.operands[-1]) if found[1] == "init" else 0

    def run(machine: Any, on: Any) -> None:
        where = machine.full(get(machine))
        for p, t in zip(*np.nonzero(machine.threads(on)), strict=True):
            if found[1] == "init":
                machine.tensor.barriers[int(p), int(where[p, t])] = Barrier(count, count)
            else:
                machine.tensor.barriers.pop((int(p), int(where[p, t])), None)

    return run


@family(r"mbarrier\.arrive\.shared(?:::cta)?\.b64", 2, 3)
def _arrive(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    get, times = address(kernel, one.operands[1]), integer(one.operands[2]) if len(one.operands) > 2 else 1

    def run(machine: Any, on: Any) -> None:
        where = machine.full(get(machine))
        for p, t in zip(*np.nonzero(machine.threads(on)), strict=True):
            arrive(machine, int(p), int(where[p, t]), times)

    return run


@family(r"mbarrier\.(?:try|test)_wait\.parity\.shared(?:::cta)?\.b64", 3, 4)
def _wait(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
    """True once the phase of this parity is over; who has seen that knows that its products have ended."""
    out = kernel.index[one.operands[0]]
    get, parity = address(kernel, one.operands[1]), reader(kernel, one.operands[2])

    def run(machine: Any, on: Any) -> None:
        where, wanted, live = machine.full(get(machine)), machine.full(parity(machine)), machine.threads(on)
        done = np.zeros(machine.shape, bool)
        for p in np.flatnonzero(live.any(1)):
            for place in np.unique(where[p][live[p]]):
                here = live[p] & (where[p] == place)
                barrier = machine.tensor.barriers.get((int(p), int(place)))
                if barrier is None:
                    raise CardRefuses(f"{machine.now}: there is no mbarrier at {place}.")
                over = here & (barrier.ended % 2 != (wanted[p] & 1))
                done[p] |= over
                if over.any() and machine.races is not None:
                    warps = np.zeros((machine.shape[0], machine.warps_each), bool)
                    warps[p] = over.reshape(-1, WARP).any(1)
                    for phase, reading in machine.tensor.committed[int(p), int(place)]:
                        if phase < barrier.ended:
                            machine.races.read_is_over(reading, warps)
        machine.yields = not done[live].all()
        machine.put(out, done, on)

    return run

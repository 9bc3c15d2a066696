"""Asynchronous work in groups: what a program starts is closed into a group, and a wait leaves the newest.

cp.async and wgmma count theirs apart. Threads of a program close and wait together here.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernels.evidence.executed.forms import Maker, Run
from kernels.evidence.executed.ptx import Instruction, Kernel


class Groups:
    """closed: how many groups each program of a batch has closed."""

    def __init__(self, programs: int) -> None:
        self.closed = np.zeros(programs, np.int64)

    def close(self, active: np.ndarray) -> None:
        """These programs (a bool for each) close a group."""
        self.closed[active] += 1

    def current(self) -> np.ndarray:
        """The number of the group, in each program, that what starts now belongs to."""
        return self.closed.copy()

    def over(self, active: np.ndarray, newest: int) -> np.ndarray:
        """Groups below this number have ended when these programs have waited for all but the `newest`.

        newest: -1 also for what is in no closed group yet.
        """
        return np.where(active, self.closed - newest, 0)


def closes(which: str) -> Maker:
    """Decodes an instruction that closes a group of the machine's `which`."""

    def make(kernel: Kernel, one: Instruction, found: re.Match) -> Run:
        def run(machine: Any, on: Any) -> None:
            getattr(machine, which).close(machine.active(on))

        return run

    return make

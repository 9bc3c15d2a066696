"""The bench of a rehearsal: an imaginary card in the place of the one that is here.

A name of this module that is a chip's (`sm_90`) is a bench for it, as a request names one, and
`sm_90.describe` describes its card. Nothing that is timed on it is a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernels.contract import devices
from kernels.evidence.executed import EXECUTABLE
from kernels.evidence.rehearsal.card import RehearsalCard, RehearsalClock, Truth
from kernels.evidence.rehearsal.stream import Costs, Faults
from kernels.evidence.timed.clocks import Clock, GraphClock
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.machine import Device
from kernels.measure.bench import Bench

NOTES = (  # in each record of one
    "A rehearsal: compiled code was executed on a CPU, and every time is made up, of the datasheet's rates.",
    "The sizes are those that are counted; what a GPU is timed at is more than a CPU executes.",
    "Not asked of an imaginary card: clocks while it works (nvidia-smi) and DRAM bytes (ncu).",
)


@dataclass(frozen=True)
class Rehearsal:
    """A bench whose card is imagined. chip, truth, faults, costs: see RehearsalCard."""

    chip: str
    truth: Truth = Truth()
    faults: Faults = Faults()
    costs: Costs = Costs()

    def __call__(self, cold: Mapping[str, Any] | None = None) -> Bench:
        """The bench. cold: see `bench.here`."""
        card = self.card()

        def clock() -> tuple[Clock, dict[str, Any]]:
            if cold:
                return RehearsalClock(card, GraphClock(card.gpu, cold["kept"])), dict(cold)
            with card.timing():
                made, found = gpu_clock(card.device, card.gpu)
            return RehearsalClock(card, made), found.as_record()

        return Bench(card.device, clock, card.gpu, card.here, card.timing)

    def card(self) -> RehearsalCard:
        """A fresh card of this kind."""
        return RehearsalCard(self.chip, self.truth, self.faults, self.costs)

    def describe(self) -> tuple[Device | None, str]:
        """Its card, and why nothing can be started on it here, or ""."""
        if devices.MODE == "compiled":
            return self.card().device, ""
        return None, f"Triton has to compile for that (on Linux, installed), and here it is {devices.MODE}"


def __getattr__(name: str) -> Rehearsal:
    """The bench of a chip whose code can be executed."""
    if name in EXECUTABLE:
        return Rehearsal(name)
    raise AttributeError(f"{name}: no chip to rehearse on; choose {', '.join(EXECUTABLE)}.")


def addresses(chip: str) -> dict[str, str]:
    """The names of the bench and of its description that a request has for this chip."""
    return {"bench": f"{__name__}:{chip}", "describe": f"{__name__}:{chip}.describe"}

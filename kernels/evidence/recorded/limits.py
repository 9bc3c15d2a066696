"""What no time of a record can beat: its card's datasheet, or the best of all rows for a card without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from book import catalog, roofline
from book.catalog import Accelerator
from book.catalog.hardware import Unit
from kernels.contract.experiment import Experiment
from kernels.evidence import recorded

UNITS: tuple[Unit, ...] = ("matrix", "vector")


@dataclass(frozen=True)
class Limits:
    """The highest rates of some rows of the catalog. known: whether the row is the card's own."""

    rows: tuple[Accelerator, ...]
    known: bool

    @property
    def said(self) -> str:
        """What a sentence about these limits adds, where the card has no row."""
        return "" if self.known else " (The card has no row: these are the best rates of the whole catalog.)"

    @property
    def bandwidth(self) -> float:
        """byte/s."""
        return max(row.bandwidth for row in self.rows)

    def peak(self, arithmetic: str, units: Sequence[Unit] = UNITS) -> float | None:
        """The highest dense peak on any of `units`, FLOP/s; None where no row has it."""
        return max((rate for row in self.rows for rate in _peaks(row, arithmetic, units)), default=None)

    def floor(self, experiment: Experiment, dtype: str, sizes: Mapping[str, int]) -> float | None:
        """Seconds that no kernel on the units of `experiment` can beat; None where no row has its peak."""
        peak = self.peak(experiment.arithmetic(dtype), (experiment.unit,))
        cost = experiment.formula(dtype, **sizes)
        return roofline.time(cost.flops, cost.bytes, peak, self.bandwidth) if peak else None


def of(record: recorded.Record) -> Limits:
    """The limits of a record's card."""
    name = recorded.card_of(record)
    return (
        Limits((catalog.accelerator(name),), True) if name else Limits(tuple(catalog.accelerators()), False)
    )


def _peaks(row: Accelerator, arithmetic: str, units: Sequence[Unit]) -> list[float]:
    found = []
    for unit in units:
        try:
            found.append(row.peak(arithmetic, unit))
        except (catalog.UnsupportedDtype, catalog.UnknownName):
            continue
    return found

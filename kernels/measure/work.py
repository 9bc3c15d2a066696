"""What is to be measured, in the order of its worth, and what of it is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernels.contract.errors import Unsupported
from kernels.contract.experiment import Experiment
from kernels.evidence import timed
from kernels.evidence.recorded.goals import GOALS
from kernels.evidence.sweeps import described, sweep
from kernels.evidence.timed.machine import Device

Sizes = dict[str, int]
# The kernels that a goal is set for come first, then what the book ends with.
FIRST = (*dict.fromkeys(goal.kernel for goal in GOALS), "decode_layer")

AGAIN = ("failed", "time", "stopped")  # why something is missing that another run may have


@dataclass(frozen=True)
class Job:
    """One kernel in one dtype, with the sizes that are still to be timed, those of most worth first."""

    key: str
    experiment: Experiment
    dtype: str
    rows: tuple[Sizes, ...] = field(default=())

    def only(self, rows: Iterable[Sizes]) -> Job:
        """The same with these sizes."""
        return replace(self, rows=tuple(rows))


def jobs(
    experiments: Mapping[str, Experiment],
    device: Device,
    dtype: str | None,
    quick: bool,
    rung: str = "timed",
) -> tuple[list[Job], list[tuple[str, str]]]:
    """A job for each experiment, by worth; and (key, why not) for those that this card can't run.

    rung: whose sweep has the sizes.
    """
    found, refused = [], []
    for key in sorted(experiments, key=_worth):
        experiment = experiments[key]
        try:
            chosen = chosen_dtype(experiment, device, dtype)
        except Unsupported as error:
            refused.append((key, str(error)))
            continue
        rows = sweep(experiment, rung)
        if quick and len(rows) > 3:
            rows = [rows[0], rows[len(rows) // 2], rows[-1]]
        found.append(Job(key, experiment, chosen, tuple(by_worth(rows, key))))
    return found, refused


def _worth(key: str) -> tuple[int, str]:
    """Experiments with a goal, then other main ones, then variants."""
    if key in FIRST:
        return FIRST.index(key), key
    return len(FIRST) + ("." in key), key


def by_worth(rows: Sequence[Sizes], key: str = "") -> list[Sizes]:
    """The largest, the smallest and the middle one, then the rest from the largest down.

    Before all of them one size for each goal of the kernel `key`, the first in that order that it is set at.
    """
    if not rows:
        return []
    order = dict.fromkeys([len(rows) - 1, 0, len(rows) // 2, *reversed(range(len(rows)))])
    found = [rows[i] for i in order]
    mine = (goal for goal in GOALS if goal.kernel == key)
    at = [next((row for row in found if goal.holds_at(row)), None) for goal in mine]
    return sorted(found, key=lambda row: row not in at)


def chosen_dtype(experiment: Experiment, device: Device, asked: str | None) -> str:
    """What was asked for, where this kernel and this device have it; else the best that both have."""
    if asked in experiment.dtypes and not timed.why_not(experiment, device, asked):
        return asked
    return timed.default_dtype(experiment, device)


def without_done(job: Job, record: Mapping[str, Any]) -> Job:
    """The job without the sizes that `record` has already."""
    done = [
        point["sizes"]
        for kept in record["sweeps"]
        if (kept["experiment"], kept["dtype"]) == (job.key, job.dtype)
        for point in kept["points"]
    ]
    return job.only(row for row in job.rows if row not in done)


def missing(job: Job, why: str, reason: str, sizes: Sizes | None = None) -> dict[str, Any]:
    """What a record says of something that is not in it.

    why: "failed", "wrong" (its result), "memory" (it doesn't fit), "unsupported", "time" (the
    budget was spent) or "stopped" (by hand). sizes: None for all of the kernel's.
    """
    named = {"experiment": job.key, "dtype": job.dtype, "sizes": sizes}
    return {**named, "why": why, "reason": reason}


def sentence(gap: Mapping[str, Any]) -> str:
    """A gap in words: the kernel, the size, and the first line of what went wrong."""
    where = f"{gap['experiment']} in {gap['dtype']}"
    if gap["sizes"]:
        where += f" at {described(gap['sizes'])}"
    return f"{where}: {gap['reason']}"

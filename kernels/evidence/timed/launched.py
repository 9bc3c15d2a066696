"""A run as a work to time, and what it really started: its plan, and what the compiler made of each kernel.

A point keeps both, so that a faster tile of a later commit can be told from a faster card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from kernels.contract import devices
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch


@dataclass(frozen=True, eq=False)
class OneRun:
    """One run of an experiment on these inputs: a work that says what it is a run of."""

    experiment: Experiment
    inputs: Mapping[str, Any]
    dtype: str
    sizes: Mapping[str, int]

    def __call__(self) -> Any:
        """Start it."""
        return self.experiment.run(**self.inputs)


def plan_as_record(plan: Any) -> dict[str, Any] | None:
    """The fields of a plan, plans within it too; None for something else."""
    if is_dataclass(plan) and not isinstance(plan, type):
        return asdict(plan)
    return dict(plan) if isinstance(plan, Mapping) else None


def kernels_of(run: Callable[[], Any]) -> tuple[dict[str, Any], ...]:
    """For each kernel that `run` starts: label, grid, registers a thread, spilled bytes, shared bytes.

    run: something that ran before, so that all is compiled. What isn't known is left out: nothing
    of it is in the interpreter, or where Triton keeps it elsewhere.
    """
    started: list[Launch] = []
    with devices.observed(started.append):
        run()
    return tuple(
        {"label": one.label or getattr(one.kernel, "__name__", ""), "grid": list(one.grid), **compiled(one)}
        for one in started
    )


def compiled(launch: Launch) -> dict[str, int]:
    """{"registers", "spilled_bytes", "shared_bytes", "warps"} of a launch that has run; {} if not known."""
    try:
        # Asks for the same specialisation without starting it: Triton answers from its cache.
        made = launch.kernel.warmup(*launch.args, grid=launch.grid, **launch.options)
        made._init_handles()  # a kernel that has run is loaded: this only looks
        # Of no registers speaks a driver that can't tell them, as an imaginary card's.
        known = {"registers": int(made.n_regs), "spilled_bytes": int(made.n_spills) * 4}
        return {
            **(known if made.n_regs else {}),
            "shared_bytes": int(made.metadata.shared),
            "warps": int(made.metadata.num_warps),
        }
    except Exception:  # noqa: BLE001 - what is told beside a time must never cost it
        return {}

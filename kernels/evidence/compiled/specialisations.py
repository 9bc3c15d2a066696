"""Which machine code a sweep really starts: one compilation for each specialisation that it launches.

Triton compiles a kernel anew for other compile-time arguments, other dtypes, and integers that are
1 or multiples of 16 (it loads wider then). Most points of a sweep share their code, so compiling
these sizes is compiling all that is launched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.evidence.sweeps import sweep


def specialisations(
    experiment: Experiment, target: Target, rungs: Sequence[str] = ("timed", "compiled")
) -> list[dict[str, int]]:
    """Sizes of its sweeps, as few as needed, whose launches have every specialisation on `target`.

    In its best dtype there. Raises Unsupported for a target that has none.
    """
    dtype, seen = experiment.best_dtype(target), set()
    chosen = []
    for rung in rungs:
        for sizes in sweep(experiment, rung):
            plan = experiment.plan(**sizes, dtype=dtype, target=target)
            codes = {code(one) for one in experiment.meta_launches(plan, dtype, **sizes)}
            if not codes <= seen:
                chosen.append(sizes)
                seen |= codes
    return chosen


def code(launch: Launch) -> tuple[Any, ...]:
    """What decides the machine code of a launch; equal for launches that share it."""
    return (
        launch.kernel.__name__,
        tuple(_kind(argument) for argument in launch.args),
        tuple(sorted(launch.options.items())),
    )


def _kind(argument: Any) -> str:
    if hasattr(argument, "dtype"):
        return f"{argument.dtype}"
    if isinstance(argument, bool) or not isinstance(argument, int):
        return type(argument).__name__
    width = "i32" if abs(argument) < 2**31 else "i64"
    return "1" if argument == 1 else f"{width} of 16" if argument % 16 == 0 else width

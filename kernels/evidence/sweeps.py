"""The sizes that a rung of evidence runs through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernels.contract.experiment import Experiment


def sweep(experiment: Experiment, rung: str, **sizes: Any) -> list[dict[str, int]]:
    """The rung's own sweep with `sizes` in place of its values, as one mapping a point."""
    wanted = {**experiment.sweep.get(rung, {}), **sizes}
    missing = [name for name in experiment.sizes if name not in wanted]
    unknown = [name for name in wanted if name not in experiment.sizes]
    if missing or unknown:
        raise ValueError(
            f"{experiment.name}: sizes = {sizes}: {', '.join(missing or unknown)} is "
            f"{'missing' if missing else 'not one of its sizes'}; it takes {', '.join(experiment.sizes)}."
        )
    lists = [name for name in experiment.sizes if not isinstance(wanted[name], int)]
    if len(lists) > 1:
        raise ValueError(f"{experiment.name}: {', '.join(lists)} are lists; at most one size may be a list.")
    axis = lists[0] if lists else experiment.axis
    values = list(wanted[axis]) if lists else [wanted[axis]]
    return [{name: int(v if name == axis else wanted[name]) for name in experiment.sizes} for v in values]


def described(sizes: Mapping[str, int]) -> str:
    """Sizes in words: "m = 16, k = 1,024"."""
    return ", ".join(f"{name} = {value:,}" for name, value in sizes.items())

"""The sizes that a rung of evidence runs through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from kernels.contract.experiment import Experiment


def sweep(experiment: Experiment, rung: str, **sizes: Any) -> list[dict[str, int]]:
    """The rung's own sweep with `sizes` in place of its values, as one mapping a point.

    A size is a whole number; one of them may be a list of these, the axis. Raises ValueError for
    a size that is missing, unknown or something else, and for two lists.
    """
    wanted = {**experiment.sweep.get(rung, {}), **sizes}
    missing = [name for name in experiment.sizes if name not in wanted]
    unknown = [name for name in wanted if name not in experiment.sizes]
    if missing or unknown:
        raise ValueError(
            f"{experiment.name}: sizes = {sizes}: {', '.join(missing or unknown)} is "
            f"{'missing' if missing else 'not one of its sizes'}; it takes {', '.join(experiment.sizes)}."
        )
    wanted = {name: _whole(experiment, name, wanted[name]) for name in experiment.sizes}
    lists = [name for name, value in wanted.items() if isinstance(value, list)]
    if len(lists) > 1:
        raise ValueError(f"{experiment.name}: {', '.join(lists)} are lists; at most one size may be a list.")
    if not lists:
        return [wanted]
    (axis,) = lists
    return [{**wanted, axis: value} for value in wanted[axis]]


def _whole(experiment: Experiment, name: str, value: Any) -> int | list[int]:
    if isinstance(value, Integral):
        return int(value)
    values = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else []
    if not values or not all(isinstance(v, Integral) for v in values):
        raise ValueError(
            f"{experiment.name}: {name} = {value!r}: a size must be a whole number, or a list of some."
        )
    return [int(v) for v in values]


def described(sizes: Mapping[str, int]) -> str:
    """Sizes in words: "m = 16, k = 1,024"."""
    return ", ".join(f"{name} = {value:,}" for name, value in sizes.items())

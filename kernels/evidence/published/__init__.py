"""The rung "published": other people's measurements, placed on our axes and never called ours.

Their time and their shapes are theirs; intensity and FLOP/s follow from the book's own formula.
"""

from __future__ import annotations

from typing import Any

from book import catalog
from book.say import say
from kernels.contract.experiment import Experiment
from kernels.evidence import alarm


def points(
    experiment: Experiment, series: str | None = None, *, accelerator: str | None = None
) -> tuple[dict[str, Any], ...]:
    """Published series for this experiment: {"rung", "label", "accelerator", "source", "points"}.

    series: the name in the catalog, by default the experiment's. accelerator: only this card's.
    Each point has the problem's sizes, "seconds", and from the formula "intensity" (FLOP/byte),
    "flops_per_s" and "bytes_per_s". Raises catalog.UnknownName for a series that is not there, and
    ImpossibleResult for a row that beats its card, or is faster in fewer bits than those allow: it
    was copied wrongly, or was never true.
    """
    made = []
    alarms: list[alarm.Alarm] = list(_dtypes_compared(experiment, series))
    for table in catalog.published(series or experiment.name):
        if accelerator is not None and table.accelerator != accelerator:
            continue
        fixed = {name: value for name, value in table.fixed.items() if name in experiment.sizes}
        placed = [
            place(experiment, {**fixed, **point}, table.dtype or "bf16", point["seconds"])
            for point in table.points
            if set(experiment.sizes) <= {*fixed, *point} and "seconds" in point
        ]
        if not placed:
            continue
        alarms += _impossible(table, placed)
        card = (
            catalog.accelerator(table.accelerator).short_name if table.accelerator else say("card not said")
        )
        shape = ", ".join(f"{name} = {value:,}" for name, value in fixed.items())
        made.append(
            {
                "rung": "published",
                "label": ", ".join(filter(None, [card, table.dtype, shape])),
                "accelerator": table.accelerator,
                "source": table.source,
                "points": placed,
            }
        )
    alarm.raise_if(tuple(alarms))
    return tuple(made)


def _impossible(table: catalog.Series, placed: list[dict[str, Any]]) -> list[alarm.Alarm]:
    if table.accelerator is None:
        return []
    card = catalog.accelerator(table.accelerator)
    limits = {"bandwidth": card.bandwidth, "peak": card.peaks.get(table.dtype or "bf16")}
    return [
        found
        for point in placed
        for found in alarm.inspect(
            bytes_per_s=point["bytes_per_s"], flops_per_s=point["flops_per_s"], **limits
        )
    ]


def _dtypes_compared(experiment: Experiment, series: str | None) -> list[alarm.Alarm]:
    """The same sizes on the same card in several dtypes, held against each other."""
    rates: dict[tuple, dict[str, float]] = {}
    for table in catalog.published(series or experiment.name):
        for point in (p for p in table.points if table.dtype and "seconds" in p):
            sizes = {name: v for name, v in {**table.fixed, **point}.items() if name != "seconds"}
            same = (table.accelerator, *sorted(sizes.items()))
            rates.setdefault(same, {})[table.dtype] = 1 / point["seconds"]
    return [
        found
        for (accelerator, *_), by_dtype in rates.items()
        for found in alarm.dtype_ratio(by_dtype, catalog.accelerator(accelerator) if accelerator else None)
    ]


def place(experiment: Experiment, row: dict[str, Any], dtype: str, seconds: float) -> dict[str, Any]:
    """One measured time as a point: sizes, seconds, intensity, FLOP/s and bytes/s."""
    sizes = {name: row[name] for name in experiment.sizes}
    if dtype in experiment.dtypes:
        cost = experiment.formula(dtype, **sizes)
    else:  # a format that others ran it in and this kernel does not: all tensors are stored in it
        cost = experiment.cost(**sizes, itemsize=catalog.itemsize(dtype))
    return {
        **sizes,
        "seconds": seconds,
        "intensity": cost.intensity,
        "flops_per_s": cost.flops / seconds,
        "bytes_per_s": cost.bytes / seconds,
    }

"""The rung "published": other people's measurements, placed on our axes and never called ours.

Their time and their shapes are theirs; intensity and FLOP/s follow from the book's own formula.
"""

from __future__ import annotations

from typing import Any

from book import catalog
from kernels.contract.experiment import Experiment


def points(
    experiment: Experiment, series: str | None = None, *, accelerator: str | None = None
) -> tuple[dict[str, Any], ...]:
    """Published series for this experiment: {"rung", "label", "accelerator", "source", "points"}.

    series: the name in the catalog, by default the experiment's. accelerator: only this card's.
    Each point has the problem's sizes, "seconds", and from the formula "intensity" (FLOP/byte),
    "flops_per_s" and "bytes_per_s". Raises catalog.UnknownName for a series that is not there.
    """
    made = []
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
        card = catalog.accelerator(table.accelerator).short_name if table.accelerator else "card not said"
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
    return tuple(made)


def place(experiment: Experiment, row: dict[str, Any], dtype: str, seconds: float) -> dict[str, Any]:
    """One measured time as a point: sizes, seconds, intensity, FLOP/s and bytes/s."""
    sizes = {name: row[name] for name in experiment.sizes}
    cost = experiment.cost(**sizes, itemsize=catalog.itemsize(dtype))
    return {
        **sizes,
        "seconds": seconds,
        "intensity": cost.intensity,
        "flops_per_s": cost.flops / seconds,
        "bytes_per_s": cost.bytes / seconds,
    }

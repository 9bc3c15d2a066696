"""One experiment on an imaginary card, in the process that compiles (`kernels.evidence.child_process`)."""

from __future__ import annotations

import math
from typing import Any

from kernels.contract import devices, tiles
from kernels.contract.accuracy import relative_error
from kernels.contract.experiment import Experiment
from kernels.contract.targets import Target
from kernels.contract.targets import target as find_target
from kernels.evidence.addresses import find
from kernels.evidence.executed import hot_loops
from kernels.evidence.executed.imaginary_card import Card, Launched, card
from kernels.evidence.poison import poisoned


def execute_request(request: dict[str, Any]) -> dict[str, Any]:
    """The fields of an `Executed` row, as JSON has them.

    request: {"experiment": "module:name", "target": "sm_90", "dtype": "bf16", "sizes": {...}, "order"}; with
    "tile_of", other sizes, the tile is what a plan has for these.
    """
    experiment, target = find(request["experiment"]), find_target(request["target"])
    if "tile_of" not in request:
        return _execute_request(request)
    with tiles.imposed(experiment.plan(**request["tile_of"], dtype=request["dtype"], target=target)):
        return _execute_request(request)


def _execute_request(request: dict[str, Any]) -> dict[str, Any]:
    experiment, target = find(request["experiment"]), find_target(request["target"])
    how = experiment, target, request["dtype"], request["sizes"]
    here, error = execute(*how, order=request["order"])
    if any(one.outcome.counts and one.outcome.counts.atomics for one in here.launched):
        # who comes first may decide the result: the worse of two orders is told
        other = "reverse" if request["order"] == "forward" else "forward"
        error = max(error, execute(*how, order=other, count=False, races=False)[1], key=_badness)
    with devices.imagined(target):  # a mixed dtype's products are in what this card has
        itemsizes = experiment.itemsizes(request["dtype"])
    return {
        "compulsory_bytes": float(experiment.cost(**request["sizes"], **itemsizes).bytes),
        "relative_error": error,
        "tolerance": experiment.tolerance(request["dtype"]),
        "launches": [told(one) for one in here.launched],
    }


def _badness(error: float) -> float:
    return error if error == error else math.inf  # a NaN is worst


def execute(
    experiment: Experiment, target: Target, dtype: str, sizes: dict[str, int], **options: Any
) -> tuple[Card, float]:
    """The card after the experiment's own launcher ran on it, and the relative error of what came out.

    What the launcher makes and nobody writes is poison (`kernels.evidence.poison`). options: those of
    `imaginary_card.card`. Raises CardRefuses for what a card would refuse.
    """
    with card(target, **options) as here:
        inputs = experiment.inputs(**sizes, dtype=dtype, device="cpu", seed=0)
        here.know(inputs)
        expected = experiment.expected(inputs)
        with poisoned():
            results = experiment.results(inputs)
        return here, relative_error(results, expected)


def told(one: Launched) -> dict[str, Any]:
    """A launch as the fields of `executed.Launch`."""
    counts = one.outcome.counts
    traffic: dict[str, dict[str, int]] = {}
    for (what, direction, tensor, _), n in (counts.traffic if counts else {}).items():
        entry = traffic.setdefault(f"{direction} {tensor}", {"bytes": 0, "requests": 0, "sectors": 0})
        entry[what] += n
    return {
        "label": one.label,
        "programs": one.programs,
        "races": list(one.outcome.races),
        "traffic": traffic,
        "wavefronts": sum(n for (what, _), n in counts.shared.items() if what == "wavefronts")
        if counts
        else 0,
        "ideal_wavefronts": sum(n for (what, _), n in counts.shared.items() if what == "ideal")
        if counts
        else 0,
        "barriers": counts.barriers if counts else 0,
        "atomics": counts.atomics if counts else 0,
        "tensor_flops": dict(counts.tensor_flops) if counts else {},
        "special": dict(counts.special) if counts else {},
        "loop": hot_loops.told(hot_loops.hot_loop(one.kernel, counts, one.programs)) if counts else None,
    }

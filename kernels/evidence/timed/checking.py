"""Is a result right? One poisoned run against float64, in pieces where the reference is too large."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from kernels.contract.axes import axes
from kernels.contract.errors import PhysicsDisagrees
from kernels.contract.experiment import Experiment
from kernels.evidence.poison import poisoned
from kernels.evidence.timed.memory import cut

AT_ONCE = 2**24  # numbers that are compared at once, in float64


def check(
    experiment: Experiment, inputs: Mapping[str, Any], dtype: str, *, rows: str = "", pieces: int = 1
) -> float:
    """||out - ref|| / ||ref|| of one poisoned run against float64; raises PhysicsDisagrees if wrong.

    rows, pieces: the axis along which the reference is computed in so many parts (see
    `memory.need`), for results that are larger in float64 than what is free.
    """
    if pieces == 1:
        expected = [experiment.expected(inputs)]  # before the run, which may write in place
        with poisoned():
            results = experiment.results(inputs)
        parts: Iterable[Sequence[torch.Tensor]] = [results]
    else:
        # What is written in place is kept as it was, off the device, for the reference.
        places = {n: t for n, t in experiment.tensors.items() if t.written and not t.out}
        before = {name: inputs[name].to("cpu", copy=True) for name in places}
        with poisoned():
            results = experiment.results(inputs)
        given = cut(experiment, {**inputs, **before}, rows, pieces)
        expected = (experiment.expected(_back(part, inputs)) for part in given)  # type: ignore[assignment]
        parts = _parts(experiment, results, rows, pieces)
    distance = size = 0.0
    for got, wanted in zip(parts, expected, strict=True):
        for a, b in zip(got, wanted, strict=True):
            d, s = _squares(experiment, a, b)
            distance, size = distance + d, size + s
    error = math.sqrt(distance) / math.sqrt(size) if size or math.isnan(size) else math.sqrt(distance)
    allowed = experiment.tolerance(dtype)
    if not error <= allowed:
        raise PhysicsDisagrees(
            f"{experiment.name}: relative error {error:.2e} in {dtype}, allowed {allowed:.0e}: the kernel is "
            "wrong on this device; its time means nothing."
        )
    return error


def _back(part: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {n: x.to(inputs[n].device) if isinstance(x, torch.Tensor) else x for n, x in part.items()}


def _parts(
    experiment: Experiment, results: Sequence[torch.Tensor], rows: str, pieces: int
) -> list[tuple[torch.Tensor, ...]]:
    """The results, cut as `cut` cuts the inputs."""
    written = [t for t in experiment.tensors.values() if t.written]
    lists = []
    for tensor, got in zip(written, results, strict=True):
        place = axes(tensor.shape).index(rows)
        lists.append(got.split(-(-got.shape[place] // pieces), place))
    return list(zip(*lists, strict=True))


def _squares(experiment: Experiment, got: torch.Tensor, wanted: torch.Tensor) -> tuple[float, float]:
    """||got - wanted||^2 and ||wanted||^2 in float64, without a copy of either."""
    distance = size = 0.0
    if got.shape != wanted.shape:
        raise PhysicsDisagrees(
            f"{experiment.name}: the result has shape {tuple(got.shape)}, its reference "
            f"{tuple(wanted.shape)}: the launcher returns another tensor than its table says."
        )
    for a, b in zip(got.reshape(-1).split(AT_ONCE), wanted.reshape(-1).split(AT_ONCE), strict=True):
        a, b = a.double(), b.double()
        if not torch.isfinite(a).all():
            raise PhysicsDisagrees(
                f"{experiment.name}: the result holds NaN or infinity: some elements were never written, "
                "or overflowed."
            )
        distance += (a - b).square().sum().item()
        size += b.square().sum().item()
    return distance, size

"""Is a result right? One poisoned run against float64, in pieces where the reference is too large.

`distance` is also how far the vendor's result is from ours (see `baselines`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    try:
        error = distance(parts, expected)
    except Differs as why:
        raise PhysicsDisagrees(f"{experiment.name}: {why}") from None
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


class Differs(ValueError):
    """Two results that can't be compared as numbers; the message says why, without naming whose they are."""


def distance(got: Iterable[Sequence[torch.Tensor]], wanted: Iterable[Sequence[torch.Tensor]]) -> float:
    """||got - wanted|| / ||wanted|| in float64, of all parts together; the norm itself where that is zero.

    A part is a sequence of tensors; `wanted` may lie on another device. No more than AT_ONCE numbers
    of each are copied at a time. Raises Differs for other shapes, and for NaN or infinity in `got`.
    """
    difference = size = 0.0
    for part, right in zip(got, wanted, strict=True):
        for a, b in zip(part, right, strict=True):
            if a.shape != b.shape:
                raise Differs(
                    f"the result has shape {tuple(a.shape)}, its reference {tuple(b.shape)}: the launcher "
                    "returns another tensor than its table says."
                )
            for mine, theirs in _pieces(a, b):
                d, s = _squares(mine, theirs)
                difference, size = difference + d, size + s
    if size or math.isnan(size):
        return math.sqrt(difference) / math.sqrt(size)
    return math.sqrt(difference)


def _pieces(a: torch.Tensor, b: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Both in parts of AT_ONCE numbers at most: views, whatever their strides."""
    if a.numel() <= AT_ONCE:
        yield a, b
    elif rows := AT_ONCE * len(a) // a.numel():
        yield from zip(a.split(rows), b.split(rows), strict=True)
    else:
        for one, other in zip(a, b, strict=True):
            yield from _pieces(one, other)


def _squares(got: torch.Tensor, wanted: torch.Tensor) -> tuple[float, float]:
    """||got - wanted||^2 and ||wanted||^2 in float64."""
    a, b = got.double(), wanted.to(got.device).double()
    if not torch.isfinite(a).all():
        raise Differs("the result holds NaN or infinity: some elements were never written, or overflowed.")
    return (a - b).square().sum().item(), b.square().sum().item()

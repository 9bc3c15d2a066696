"""How much memory a point takes, found without taking any: its tensors, its launches and its reference.

All three are asked on tensors that hold nothing (torch's meta device), so the numbers are those of
the code that will run and not of a formula about traffic, which leaves out what lies still: a cache
of which one token is written is held whole.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from book.cost.base import ceil_div
from kernels.contract import devices
from kernels.contract import tensors as tables
from kernels.contract.axes import axes, names
from kernels.contract.dispatch import Watch
from kernels.contract.errors import Unsupported
from kernels.contract.experiment import Experiment
from kernels.evidence.sweeps import described, sweep

DRAWN = 4  # bytes of a random number before it is rounded to what is stored
COPIES = 3  # of what a run makes: its own, that of warming a graph up, and the graph's


class TooLarge(Unsupported):
    """A size that doesn't fit into the memory that is free; the message has both numbers."""


@dataclass(frozen=True)
class Need:
    """Bytes that one size of an experiment takes at most, and when.

    inputs: what a run is given. made: what it makes, outputs and workspaces. drawing: while random
    inputs are drawn. checking: while the result is held against its reference, which is computed in
    `pieces` along the axis `rows`. timing: while a graph of it is replayed.
    """

    inputs: int
    made: int
    drawing: int
    checking: int
    pieces: int = 1
    rows: str = ""

    @property
    def timing(self) -> int:
        return self.inputs + COPIES * self.made

    @property
    def most(self) -> int:
        return max(self.drawing, self.checking, self.timing)


def need(experiment: Experiment, dtype: str, sizes: Mapping[str, int], available: int | None = None) -> Need:
    """What this size takes; its reference is cut into as few pieces as fit into `available` bytes.

    Raises TooLarge, with both numbers, where it doesn't fit even so.
    """
    inputs, made, drawing = _tensors(experiment, dtype, sizes)
    whole = inputs + made + reference_bytes(experiment, dtype, sizes)
    found = Need(inputs, made, drawing, whole)
    if available is None or found.most <= available:
        return found
    if available >= max(drawing, found.timing):
        every = rows_of(experiment, dtype, sizes)
        for pieces in (2**i for i in range(1, 17)):
            for rows in (name for name in every if pieces <= sizes[name]):
                part = {**sizes, rows: ceil_div(sizes[rows], pieces)}
                checking = inputs + made + reference_bytes(experiment, dtype, part)
                if checking <= available:
                    return Need(inputs, made, drawing, checking, pieces, rows)
    raise TooLarge(
        f"{experiment.key} in {dtype} at {described(sizes)} needs {found.most / 1e9:.2f} GB and "
        f"{available / 1e9:.2f} GB are free: close other GPU programs, or take a larger card for it."
    )


def _tensors(experiment: Experiment, dtype: str, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """Bytes of the inputs, of all else that the launches hold, and while the inputs are drawn."""
    every = {**sizes, **{name: make(**sizes) for name, make in experiment.derived.items()}}
    storage = experiment.storage(dtype)
    inputs = drawing = results = 0
    for tensor in experiment.tensors.values():
        if tensor.optional:
            continue
        kind = storage(tensor)
        numbers = prod(tensor.lengths(every, kind))
        stored = numbers * devices.torch_dtype(kind).itemsize
        if tensor.out:
            results += stored
            continue
        inputs += stored
        # drawn, and rounded beside it
        wide = numbers * DRAWN if tensor.fill == "normal" else stored
        drawing = max(drawing, inputs + wide)
    launches = experiment.meta_launches(experiment.plan(**sizes, dtype=dtype, target=None), dtype, **sizes)
    held: dict[int, int] = {}
    for one in launches:
        for x in one.args:
            if isinstance(x, torch.Tensor):
                bytes_of = x.untyped_storage()
                held[bytes_of._cdata] = bytes_of.nbytes()
    # Whose launches nobody knows beforehand makes its results, at least.
    return inputs, max(sum(held.values()) - inputs, results), drawing


class _Live(Watch):
    """Adds up the bytes of every storage that is made inside, for as long as it lives."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._alive: dict[int, Any] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for x in tree_leaves(made):
            if isinstance(x, torch.Tensor) and x.device.type == "meta":
                self.hold(x)
        return made

    def hold(self, x: torch.Tensor) -> None:
        """Count this tensor's storage, unless it is counted already."""
        storage = x.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._alive:
            return

        def gone(_: Any) -> None:
            self._alive.pop(key, None)
            self.now -= size

        self._alive[key] = weakref.ref(storage, gone)
        self.now += size
        self.most = max(self.most, self.now)


@functools.lru_cache(maxsize=256)
def _reference_bytes(experiment: _Same, dtype: str, sizes: tuple[tuple[str, int], ...]) -> int:
    given = experiment.one
    values = dict(sizes)
    inputs = imagined_inputs(given, dtype, values)
    with _Live() as live:
        given.reference(**inputs)
    return live.most


def reference_bytes(experiment: Experiment, dtype: str, sizes: Mapping[str, int]) -> int:
    """The most bytes that the reference holds at once beside its inputs: it is run on empty tensors."""
    return _reference_bytes(_Same(experiment), dtype, tuple(sizes.items()))


@dataclass(frozen=True, eq=False)
class _Same:
    """An experiment as a key: mappings in it can't be hashed, but it is one object while it lives."""

    one: Experiment

    def __hash__(self) -> int:
        return id(self.one)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.one is self.one


def imagined_inputs(experiment: Experiment, dtype: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """What `run` takes, on the meta device; tables hold their numbers, as a reference reads them."""
    every = {**sizes, **{name: make(**sizes) for name, make in experiment.derived.items()}}
    wanted = {n: t for n, t in experiment.tensors.items() if not (t.out or t.optional)}
    real = {n: t for n, t in wanted.items() if t.table}
    empty = {n: t for n, t in wanted.items() if not t.table}
    made: dict[str, Any] = tables.meta(empty, experiment.storage(dtype), every)
    made |= tables.random_inputs(real, experiment.storage(dtype), every, "cpu", 0)
    made = {name: made[name] for name in wanted}
    return {**made, **{name: sizes[name] for name in experiment.arguments}}


# ------------------------------------------------------------------------- a check in pieces


def rows_of(experiment: Experiment, dtype: str, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The axes along which the reference treats every row alone, the largest first.

    Found by trying it on a small problem: the reference of both halves must be both halves of the
    reference.
    """
    written = [t for t in experiment.tensors.values() if t.written]
    plain = [name for name in experiment.sizes if all(name in axes(t.shape) for t in written)]
    largest = sorted(plain, key=lambda size: sizes[size], reverse=True)
    return tuple(name for name in largest if _alone(_Same(experiment), dtype, name))


@functools.lru_cache(maxsize=256)
def _alone(experiment: _Same, dtype: str, rows: str) -> bool:
    given = experiment.one
    if any(rows in names(axis) and axis != rows for t in given.tensors.values() for axis in axes(t.shape)):
        return False
    # Two of everything at least: with one KV head its query heads would seem to be alone.
    small = {name: max(n, 2) for name, n in sweep(given, "counted")[0].items()}
    try:
        inputs = given.inputs(**small, dtype=dtype, seed=3)
        whole = given.expected(inputs)
        parts = [given.expected(part) for part in cut(given, inputs, rows, 2)]
    except (ValueError, RuntimeError, IndexError):
        return False
    places = [axes(t.shape).index(rows) for t in given.tensors.values() if t.written]
    joined = [torch.cat([part[i] for part in parts], place) for i, place in enumerate(places)]
    return all(
        a.shape == b.shape and torch.allclose(a, b.double(), rtol=1e-9, atol=1e-12)
        for a, b in zip(whole, joined, strict=True)
    )


def cut(
    experiment: Experiment, inputs: Mapping[str, Any], rows: str, pieces: int
) -> Iterator[dict[str, Any]]:
    """The inputs of each of `pieces` parts along the axis `rows`: views, nothing is copied."""
    places = {n: axes(t.shape).index(rows) for n, t in experiment.tensors.items() if rows in axes(t.shape)}
    length = next(inputs[n].shape[at] for n, at in places.items() if inputs.get(n) is not None)
    step = ceil_div(length, pieces)
    for start in range(0, length, step):
        yield {
            name: x.narrow(places[name], start, min(step, length - start))
            if name in places and isinstance(x, torch.Tensor)
            else x
            for name, x in inputs.items()
        }

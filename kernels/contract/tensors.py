"""A kernel's tensors as data: name -> Tensor, written once, in the order of the launcher's arguments.

    {"x": Tensor("m k"), "w": Tensor("k n"), "y": Tensor("m n", out=True)}

From such a table come random inputs, tensors for the compiler, what is refused (`checks`), the
compulsory bytes (a second derivation beside `book.cost`) and a definition in FlashInfer's schema.
The idea is theirs (flashinfer-bench's Definition: axes, inputs, outputs, reference) and PyTorch's
OpInfo's: a table of operators, and tests that are written once over it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import torch

from book.catalog.dtypes import DTYPES
from book.cost import Cost
from book.cost.base import ceil_div
from kernels.contract import devices
from kernels.contract.axes import axes, length, shape_of

Sizes = Mapping[str, int]
Storage = Callable[["Tensor"], str]  # a tensor -> the dtype that it is stored in
Filled = Callable[[torch.Generator, tuple[int, ...], Sizes], torch.Tensor]


@dataclass(frozen=True)
class Tensor:
    """One tensor of a kernel.

    shape: its axes (see `kernels.contract.axes`). dtype: "" for the experiment's own, a slot that
    an experiment may store otherwise ("kv", "weight"), or a fixed one ("int32" for tables).
    out: the launcher makes it and it is written whole. reads, writes: the part of it that moves, as
    a shape, where that isn't all of it: a cache of which one token is written. table: it says where
    numbers are and is none of the operation's own, so no formula has its bytes.
    optional: None is allowed, and random inputs leave it out.
    stored: the order of the axes in memory, "n k" for a weight that checkpoints keep transposed.
    side_by_side: numbers of the last axis must be neighbours in memory.
    within: axis -> how far apart in memory, in numbers, its neighbours may be at most.
    packed: the axis along which numbers under a byte share one; the last by default.
    fan_in: the axis that a product sums over; random numbers are scaled to keep the variance.
    fill: "normal", "zeros", or a function of (generator, shape, sizes).
    """

    shape: str
    dtype: str = ""
    out: bool = False
    reads: str | None = None
    writes: str | None = None
    table: bool = False
    optional: bool = False
    stored: str = ""
    side_by_side: bool = False
    within: Mapping[str, int] = field(default_factory=dict)
    packed: str = ""
    fan_in: str = ""
    fill: Literal["normal", "zeros"] | Filled = "normal"

    @property
    def written(self) -> bool:
        """A result: made by the launcher, or written in place."""
        return self.out or self.writes is not None

    def lengths(self, sizes: Sizes, storage: str) -> tuple[int, ...]:
        """Its shape in elements that torch knows: two int4 share a byte."""
        return tuple(length(axis, sizes) for axis in self.stored_axes(storage))

    def stored_axes(self, storage: str) -> tuple[str, ...]:
        """Its axes in elements that torch knows: "k n" of packed int4 is "k/2 n"."""
        every = axes(self.shape)
        shared = 8 // bits(storage)
        if shared < 2:
            return every
        along = self.packed or every[-1]
        return tuple(f"({axis})/{shared}" if axis == along else axis for axis in every)


def bits(storage: str) -> int:
    """Bits of a stored number: of the catalog's formats, and of torch's whole numbers ("int32")."""
    known = DTYPES.get(storage)
    return known.bits if known else 8 * devices.torch_dtype(storage).itemsize


def nbytes(shape: str, packed: str, storage: str, sizes: Sizes) -> int:
    """Bytes of numbers of this shape and dtype, whole bytes along the packed axis."""
    each, lengths = bits(storage), shape_of(shape, sizes)
    if each % 8 == 0:
        return prod(lengths) * each // 8
    along = axes(shape).index(packed) if packed else len(lengths) - 1
    others = prod(n for i, n in enumerate(lengths) if i != along)
    return others * ceil_div(lengths[along] * each, 8)


def compulsory(tensors: Mapping[str, Tensor], storage: Storage, sizes: Sizes) -> Cost:
    """Every input read once, every output written once, by the table alone; no FLOPs.

    A derivation beside `book.cost`'s, which must give the same bytes for each tensor.
    """
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    for name, tensor in tensors.items():
        if tensor.table:
            continue
        kind = storage(tensor)
        read = "" if tensor.out else tensor.shape if tensor.reads is None else tensor.reads
        wrote = tensor.shape if tensor.out else tensor.writes or ""
        for moved, part in ((reads, read), (writes, wrote)):
            if part:
                moved[name] = nbytes(part, tensor.packed, kind, sizes)
    return Cost(0, reads, writes)


def random_inputs(
    tensors: Mapping[str, Tensor], storage: Storage, sizes: Sizes, device: str, seed: int
) -> dict[str, torch.Tensor]:
    """A random tensor for each input, drawn one after the other: never zeros, unless the table says so."""
    generator = torch.Generator(device).manual_seed(seed)
    wanted = {name: t for name, t in tensors.items() if not (t.out or t.optional)}
    return {name: _random(t, storage(t), sizes, generator) for name, t in wanted.items()}


def _random(tensor: Tensor, storage: str, sizes: Sizes, generator: torch.Generator) -> torch.Tensor:
    kind, shape = devices.torch_dtype(storage), tensor.lengths(sizes, storage)
    order = _order(tensor, storage)
    shape = tuple(shape[i] for i in order)
    if callable(tensor.fill):
        made = tensor.fill(generator, shape, sizes).to(kind)
    elif tensor.fill == "zeros":
        made = torch.zeros(shape, dtype=kind, device=generator.device)
    elif kind.is_floating_point:
        made = torch.randn(shape, generator=generator, device=generator.device)
        if tensor.fan_in:
            made = made.mul_(length(tensor.fan_in, sizes) ** -0.5)
        made = made.to(kind)
    else:  # every pattern of bits is a number of a packed or whole format
        low, high = (0, 256) if kind == torch.uint8 else (-127, 128)
        made = torch.randint(low, high, shape, generator=generator, device=generator.device).to(kind)
    return made.permute([order.index(i) for i in range(len(order))])


def _order(tensor: Tensor, storage: str) -> list[int]:
    """For each axis in memory, which axis of the shape it is."""
    every = axes(tensor.shape)
    return [every.index(axis) for axis in axes(tensor.stored)] if tensor.stored else list(range(len(every)))


def meta(tensors: Mapping[str, Tensor], storage: Storage, sizes: Sizes) -> dict[str, torch.Tensor | None]:
    """All tensors, outputs too, on the meta device: only the compiler looks at them."""
    made: dict[str, torch.Tensor | None] = {}
    for name, tensor in tensors.items():
        if tensor.optional:
            made[name] = None
            continue
        kind, order = storage(tensor), _order(tensor, storage(tensor))
        shape = tensor.lengths(sizes, kind)
        empty = torch.empty([shape[i] for i in order], dtype=devices.torch_dtype(kind), device="meta")
        made[name] = empty.permute([order.index(i) for i in range(len(order))])
    return made


def outputs(tensors: Mapping[str, Tensor], given: Mapping[str, Any], returned: Any) -> tuple[Any, ...]:
    """What a run gave, in the table's order: what it returned, and what it wrote in place."""
    made = iter(returned if isinstance(returned, tuple) else (returned,))
    return tuple(next(made) if t.out else given[name] for name, t in tensors.items() if t.written)

"""Who touched which byte: the running counts of every launch, tensor by tensor.

`kernels.evidence.counted.interpreter` tells a `Tally` what a kernel does; this file knows no Triton.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

SECTOR = 32  # bytes: the least that L2 and DRAM exchange on NVIDIA and AMD cards


class OutOfBounds(IndexError):
    """A kernel touched memory outside the tensor that its pointer came from."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of one tensor in one direction; `counted` says what the four mean."""

    unique: int
    block: int
    issued: int
    sector: int


class _Tensor:
    """One tensor argument: where it lies and which of its elements were read and written."""

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        self.name, self.shape = name, tuple(tensor.shape)
        self.itemsize, self.base = tensor.element_size(), tensor.data_ptr()
        self.extent, self.gaps = _extent(tensor), _gaps(tensor)
        self.touched: dict[str, np.ndarray] = {}
        self.totals: dict[str, list[int]] = {}

    def grow(self, tensor: torch.Tensor) -> None:
        """Take in the rest of the memory that it is the beginning of."""
        self.shape, self.extent, self.gaps = tuple(tensor.shape), _extent(tensor), _gaps(tensor)
        for verb, before in self.touched.items():
            self.touched[verb] = np.zeros(self.extent, dtype=bool)
            self.touched[verb][: before.size] = before

    def record(self, verb: str, addresses: np.ndarray, program: Any) -> None:
        """Tally one load or store: the addresses of the lanes that its mask leaves on."""
        lanes = addresses.size
        offsets = addresses.astype(np.int64) - self.base
        ordered = _increasing(offsets)
        first, last = int(ordered[0]), int(ordered[-1])
        elements = ordered // self.itemsize
        outside = first < 0 or last + self.itemsize > self.extent * self.itemsize
        if outside or (self.gaps is not None and self.gaps[elements].any()):
            bad = (
                elements[(elements < 0) | (elements >= self.extent)]
                if outside
                else elements[self.gaps[elements]]
            )
            raise OutOfBounds(
                f"{self.name}: program {program} {verb} element {int(bad[0])}, which is none of the tensor's "
                f"(shape {self.shape}, {self.extent} elements from first to last); mask that lane off."
            )
        if verb not in self.touched:
            self.touched[verb] = np.zeros(self.extent, dtype=bool)
            self.totals[verb] = [0, 0, 0]
        self.touched[verb][elements] = True
        sectors = ((self.base % SECTOR) + ordered) // SECTOR
        block, issued, sector = self.totals[verb]
        self.totals[verb] = [
            block + ordered.size * self.itemsize,
            issued + lanes * self.itemsize,
            sector + (1 + np.count_nonzero(np.diff(sectors))) * SECTOR,
        ]

    def traffic(self, verb: str) -> Traffic:
        unique = int(np.count_nonzero(self.touched[verb])) * self.itemsize
        block, issued, sector = self.totals[verb]
        return Traffic(unique, block, issued, int(sector))


def _extent(tensor: torch.Tensor) -> int:
    """Elements from the first to the last."""
    return 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _gaps(tensor: torch.Tensor) -> np.ndarray | None:
    """Of a strided view: which elements in between are not its own; None if there are none."""
    if _extent(tensor) == tensor.numel():
        return None
    gaps = torch.ones(_extent(tensor), dtype=torch.bool)
    gaps.as_strided(tensor.shape, tensor.stride()).fill_(False)
    return gaps.numpy()


def _increasing(offsets: np.ndarray) -> np.ndarray:
    """The distinct offsets in increasing order. Most blocks are in order already, or transposed."""
    for flat in (offsets.ravel(), offsets.T.ravel()):
        if flat.size == 1 or (flat[1:] > flat[:-1]).all():
            return flat
    return np.unique(offsets)


class Tally:
    """Running counts of every launch inside `count()`: bytes by tensor, FLOPs, programs."""

    def __init__(self) -> None:
        self.dot_flops = 0
        self.alu_flops = 0
        self.sfu_ops = 0
        self.programs = 0
        self._tensors: dict[tuple[int, int], _Tensor] = {}
        self._bases: dict[int, _Tensor] = {}
        self.program: Any = None  # index of the one that runs now

    def reads(self) -> dict[str, Traffic]:
        """Traffic of each tensor that was read, by the name of its pointer without `_ptr`."""
        return self._traffic("reads")

    def writes(self) -> dict[str, Traffic]:
        """Traffic of each tensor that was written."""
        return self._traffic("writes")

    def _traffic(self, verb: str) -> dict[str, Traffic]:
        return {t.name: t.traffic(verb) for t in self._tensors.values() if verb in t.totals}

    def traffic_by_address(self, verb: str) -> list[tuple[int, Traffic]]:
        """(address of the first element, traffic) of each tensor that was read ("reads") or written.

        Views of one buffer are tensors of their own, so whoever made the buffers can add them up.
        """
        return [(t.base, t.traffic(verb)) for t in self._tensors.values() if verb in t.totals]

    def learn(self, named: dict[str, Any]) -> None:
        """Note tensors by name. A tensor keeps the name it had first; a new one gets a new name."""
        names = {t.name for t in self._tensors.values()}
        for argument, tensor in named.items():
            if not isinstance(tensor, torch.Tensor):
                continue
            key = (tensor.data_ptr(), tensor.untyped_storage().nbytes())
            if key in self._tensors and _extent(tensor) > self._tensors[key].extent:
                self._tensors[key].grow(tensor)  # a part of it was met first
            if key not in self._tensors:
                name = argument.removesuffix("_ptr")
                while name in names:
                    name += "'"
                names.add(name)
                self._tensors[key] = _Tensor(name, tensor)
            self._bases[key[0]] = self._tensors[key]

    def tensor_at(self, address: int) -> _Tensor | None:
        """The tensor that begins at this address, if one is known."""
        return self._bases.get(address)

    def access(self, verb: str, pointers: Any, mask: Any) -> None:
        """Note a load ("reads") or a store ("writes") through a block of pointers."""
        addresses = np.asarray(pointers.data)
        on = np.asarray(getattr(mask, "data", mask) if not isinstance(mask, np.ndarray) else mask).astype(
            bool
        )
        if not on.all():
            addresses, on = np.broadcast_arrays(addresses, on)
            addresses = addresses[on]
        if addresses.size:
            self._owner(pointers, addresses).record(verb, addresses, self.program)

    def _owner(self, pointers: Any, addresses: np.ndarray) -> _Tensor:
        owner = getattr(pointers, "made_from", None) or self.tensor_at(int(addresses.flat[0]))
        if owner is None:
            raise OutOfBounds(
                f"a pointer of program {self.program}: it leads to address {int(addresses.flat[0]):#x}, and "
                "no tensor argument it was made from is known; build pointers from the kernel's arguments."
            )
        return owner

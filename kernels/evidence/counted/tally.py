"""Who touched which byte: the running counts of every launch, tensor by tensor.

`kernels.evidence.counted.interpreter` tells a `Tally` what a kernel does; this file knows no Triton.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernels.evidence.counted import races
from kernels.evidence.counted.balance import Balance

PATIENCE = 10_000  # atomics of one program: no kernel has as many, and one that spins has no end
SECTOR = 32  # bytes: the least that L2 and DRAM exchange on NVIDIA and AMD cards


class OutOfBounds(IndexError):
    """A kernel touched memory outside the tensor that its pointer came from."""


class NeverEnds(RuntimeError):
    """A program waits for another of its launch, which runs after it."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of one tensor in one direction; `counted` says what the five mean."""

    unique: int
    block: int
    issued: int
    sector: int
    by_launch: int = 0


class Touched:
    """What one direction, reads or writes, did to one tensor.

    times: of each element, how often a load or a store (each counts it once) took it; an atomic is
    both. programs: by how many programs. launch: the last launch that took it; by_launch: the bytes of
    elements that were new to their launch.
    """

    def __init__(self, extent: int) -> None:
        self.times = np.zeros(extent, dtype=np.int32)
        self.programs = np.zeros(extent, dtype=np.int32)
        self.launch = np.zeros(extent, dtype=np.int32)
        self.block = self.issued = self.sector = self.by_launch = 0  # bytes

    def grow(self, extent: int) -> None:
        """The tensor is longer than was known."""
        more = extent - self.times.size
        self.times, self.programs, self.launch = (
            np.pad(x, (0, more)) for x in (self.times, self.programs, self.launch)
        )


class TensorTally:
    """One tensor argument: where it lies and which of its elements were read and written."""

    def __init__(self, name: str, tensor: torch.Tensor, memory: races.Cells) -> None:
        self.name, self.memory = name, memory
        self.itemsize, self.base = tensor.element_size(), tensor.data_ptr()
        self.touched: dict[str, Touched] = {}
        self.atomics = 0
        self.grow(tensor)

    def grow(self, tensor: torch.Tensor) -> None:
        """Take in the memory that it is, or that what was known is the beginning of."""
        self.shape, self.strides = tuple(tensor.shape), tensor.stride()
        self.extent, self.gaps = extent(tensor), _gaps(tensor)
        for touched in self.touched.values():
            touched.grow(self.extent)

    def record(self, verb: str, addresses: np.ndarray, program: Any, launch: int) -> np.ndarray:
        """Tally one load or store: the addresses of the lanes that its mask leaves on; the elements.

        launch: the number of the launch, from 1.
        """
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
            self.touched[verb] = Touched(self.extent)
        touched = self.touched[verb]
        touched.times[elements] += 1
        touched.by_launch += int(np.count_nonzero(touched.launch[elements] != launch)) * self.itemsize
        touched.launch[elements] = launch
        sectors = ((self.base % SECTOR) + ordered) // SECTOR
        touched.block += ordered.size * self.itemsize
        touched.issued += lanes * self.itemsize
        touched.sector += int(1 + np.count_nonzero(sectors[1:] != sectors[:-1])) * SECTOR
        return elements

    def traffic(self, verb: str) -> Traffic:
        """Its bytes in one direction."""
        one = self.touched[verb]
        unique = int(np.count_nonzero(one.times)) * self.itemsize
        return Traffic(unique, one.block, one.issued, one.sector, one.by_launch)

    def last_readers(self) -> np.ndarray:
        """Of each of its elements, the stamp of the program that read it last (see `races.Order`)."""
        cells = self.memory.cells(self.base, self.itemsize, np.arange(self.extent))
        return self.memory.stamps("last read")[cells].reshape(self.extent, -1)[:, 0].copy()

    def element(self, offset: int) -> str:
        """The name of what lies that many elements behind the first: "s[17]", "y[3, 0]"."""
        index = [0] * len(self.shape)
        for axis in sorted(range(len(index)), key=lambda i: -self.strides[i]):
            if self.shape[axis] > 1 and self.strides[axis]:
                index[axis], offset = divmod(offset, self.strides[axis])
        return f"{self.name}[{', '.join(map(str, index))}]"


def extent(tensor: torch.Tensor) -> int:
    """Elements from the first to the last."""
    return 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _gaps(tensor: torch.Tensor) -> np.ndarray | None:
    """Of a strided view: which elements in between are not its own; None if there are none."""
    if extent(tensor) == tensor.numel():
        return None
    gaps = torch.ones(extent(tensor), dtype=torch.bool)
    gaps.as_strided(tensor.shape, tensor.stride()).fill_(False)
    return gaps.numpy()


def _increasing(offsets: np.ndarray) -> np.ndarray:
    """The distinct offsets in increasing order. Most blocks are in order already, or transposed."""
    for flat in (offsets.ravel(), offsets.T.ravel()):
        if flat.size == 1 or (flat[1:] > flat[:-1]).all():
            return flat
    return np.unique(offsets)


class Tally:
    """Running counts of every launch inside `count()`: bytes by tensor, FLOPs, programs, atomics.

    race: the first race between two programs of one launch, as a sentence; "" if there was none.
    """

    def __init__(self) -> None:
        self.dot_flops = 0
        self.alu_flops = 0
        self.sfu_ops = 0
        self.launches = 0
        self.programs = 0
        self.atomics = 0
        self.race = ""
        self._tensors: dict[tuple[int, int], TensorTally] = {}
        self._bases: dict[int, TensorTally] = {}
        self._memory: dict[tuple[int, int], races.Cells] = {}
        self.order = races.Order()
        self.balance = Balance(self.order)
        self._tries = 0  # of this program, at atomics
        self.program: Any = None  # index of the one that runs now

    def reads(self) -> dict[str, Traffic]:
        """Traffic of each tensor that was read, by the name of its pointer without `_ptr`."""
        return self._traffic("reads")

    def writes(self) -> dict[str, Traffic]:
        """Traffic of each tensor that was written."""
        return self._traffic("writes")

    def tensors(self) -> list[TensorTally]:
        """Every tensor that was touched, in the order in which they became known."""
        return [t for t in self._tensors.values() if t.touched]

    def _traffic(self, verb: str) -> dict[str, Traffic]:
        return {t.name: t.traffic(verb) for t in self._tensors.values() if verb in t.touched}

    def traffic_by_address(self, verb: str) -> list[tuple[int, Traffic]]:
        """(address of the first element, traffic) of each tensor that was read ("reads") or written.

        Views of one buffer are tensors of their own, so whoever made the buffers can add them up.
        """
        return [(t.base, t.traffic(verb)) for t in self._tensors.values() if verb in t.touched]

    def learn(self, named: dict[str, Any]) -> None:
        """Note tensors by name. A tensor keeps the name it had first; a new one gets a new name."""
        names = {t.name for t in self._tensors.values()}
        for argument, tensor in named.items():
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            key, place = (tensor.data_ptr(), storage.nbytes()), (storage.data_ptr(), storage.nbytes())
            if key in self._tensors and extent(tensor) > self._tensors[key].extent:
                self._tensors[key].grow(tensor)  # a part of it was met first
            if key not in self._tensors:
                name = argument.removesuffix("_ptr")
                while name in names:
                    name += "'"
                names.add(name)
                memory = self._memory.setdefault(place, races.Cells(*place, tensor.element_size()))
                self._tensors[key] = TensorTally(name, tensor, memory)
            self._bases[key[0]] = self._tensors[key]

    def tensor_at(self, address: int) -> TensorTally | None:
        """The tensor that begins at this address, if one is known."""
        return self._bases.get(address)

    def begin_launch(self, grid: tuple[int, ...]) -> None:
        """A launch of this many programs begins."""
        self.launches += 1
        self.balance.begin_launch(grid)
        self.order.begin_launch(grid)

    def begin_program(self, index: tuple[int, ...]) -> None:
        """A program of the launch begins."""
        self.programs += 1
        self.program, self._tries = index, 0
        self.order.begin_program(index)

    def access(self, verb: str, pointers: Any, mask: Any) -> None:
        """Note a load ("reads") or a store ("writes") through a block of pointers."""
        addresses = _active(pointers, mask)
        if not addresses.size:
            return
        tensor = self._owner(pointers, addresses)
        elements = tensor.record(verb, addresses, self.program, self.launches)
        self.balance.add(elements.size * tensor.itemsize)
        cells = tensor.memory.cells(tensor.base, tensor.itemsize, elements)
        self._look_for_a_race(verb, tensor, cells)
        remember = tensor.memory.read if verb == "reads" else tensor.memory.write
        anew = remember(cells, self.order)
        tensor.touched[verb].programs[elements] += anew.reshape(elements.size, -1)[:, 0]

    def atomic(self, pointers: Any, mask: Any, acquires: bool, releases: bool) -> None:
        """Note an atomic: a read and a write of its addresses, which may order the programs."""
        self._tries += 1
        if self._tries > PATIENCE:
            raise NeverEnds(
                f"program {self.program}: {PATIENCE:,} atomics and no end: it waits for another program of "
                "its launch, which here runs after it, and on a GPU perhaps never; let none wait for another."
            )
        addresses = _active(pointers, mask)
        if not addresses.size:
            return
        tensor = self._owner(pointers, addresses)
        for verb in ("reads", "writes"):
            elements = tensor.record(verb, addresses, self.program, self.launches)
            self.balance.add(elements.size * tensor.itemsize)
        self.atomics += addresses.size
        tensor.atomics += addresses.size
        cells = tensor.memory.cells(tensor.base, tensor.itemsize, elements)
        self._look_for_a_race("atomics", tensor, cells)
        tensor.memory.atomic(cells, self.order, acquires, releases)

    def _look_for_a_race(self, verb: str, tensor: TensorTally, cells: np.ndarray) -> None:
        if self.race or not (found := tensor.memory.race(verb, cells, self.order)):
            return
        position, other_verb, stamp = found
        cell = int(cells.ravel()[position]) * tensor.memory.width + tensor.memory.base
        self.race = races.sentence(
            verb,
            other_verb,
            program=self.order.called(self.order.now),
            other=self.order.called(stamp),
            element=tensor.element((cell - tensor.base) // tensor.itemsize),
        )

    def _owner(self, pointers: Any, addresses: np.ndarray) -> TensorTally:
        owner = getattr(pointers, "made_from", None) or self.tensor_at(int(addresses.flat[0]))
        if owner is None:
            raise OutOfBounds(
                f"a pointer of program {self.program}: it leads to address {int(addresses.flat[0]):#x}, and "
                "no tensor argument it was made from is known; build pointers from the kernel's arguments."
            )
        return owner


def _active(pointers: Any, mask: Any) -> np.ndarray:
    """The addresses of the lanes that the mask leaves on."""
    addresses = np.asarray(pointers.data)
    on = mask_of(mask)
    if on.all():
        return addresses
    addresses, on = np.broadcast_arrays(addresses, on)
    return addresses[on]


def mask_of(mask: Any) -> np.ndarray:
    """A mask as booleans, whether the interpreter made it an array or one of its handles."""
    return np.asarray(mask if isinstance(mask, np.ndarray) else mask.data).astype(bool, copy=False)

"""Global memory: tensors that lie so far apart that whoever leaves one lands in none.

A launch may touch what it was given: the elements of its tensors, and what else of their memory the caller
of its launcher holds. What a view leaves out belongs to nobody, though memory is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from kernels.contract.errors import CardRefuses

APART = 36  # bits: tensors begin at multiples of 64 GiB, and who misses one by less is seen
RED_ZONE = 256  # bytes between tensors where they are kept; wider than an access
POISON = 0xFF  # NaN in every float format


def own_bytes(views: Iterable[torch.Tensor], size: int) -> np.ndarray:
    """Which of the `size` bytes of a storage are elements of one of these views of it."""
    own = np.zeros(size, bool)
    for view in views:
        item = view.element_size()
        if view.is_contiguous():
            start = view.storage_offset() * item
            own[start : start + view.numel() * item] = True
            continue
        elements = torch.zeros(size // item, dtype=torch.bool)
        elements.as_strided(view.shape, view.stride(), view.storage_offset()).fill_(True)
        own[: size // item * item] |= elements.numpy().repeat(item)
    return own


class GlobalMemory:
    """Tensors at addresses far apart, kept one after another in one flat array of bytes.

    owner: which tensor a byte belongs to, 0 for none; names: of the tensors; places: of each its address and
    size. gaps: whether some bytes of a tensor's memory belong to nobody.
    """

    def __init__(self) -> None:
        self.gaps = False
        self.bytes = np.full(RED_ZONE * 16, POISON, np.uint8)
        self.owner = np.zeros(RED_ZONE * 16, np.uint16)
        self.names = ["nothing"]
        self.places: list[tuple[int, int]] = [(0, 0)]
        self._kept = np.zeros(1, np.int64)  # where each tensor's bytes begin in `bytes`
        self._room = np.zeros(1, np.int64)  # how many follow, its red zone among them

    def put(self, name: str, data: np.ndarray, own: np.ndarray | None = None) -> int:
        """The address of a copy of these bytes; own: which of them may be touched, None for all.

        Raises ValueError for more tensors than can be told apart.
        """
        number = len(self.names)
        if number > np.iinfo(np.uint16).max:
            raise ValueError(f"{number} tensors: more than this memory tells apart; launch fewer.")
        size = data.size
        room = -(-(size + RED_ZONE) // RED_ZONE) * RED_ZONE
        at = self.bytes.size
        self.bytes = np.concatenate([self.bytes, np.full(room, POISON, np.uint8)])
        self.owner = np.concatenate([self.owner, np.zeros(room, np.uint16)])
        self.bytes[at : at + size] = data
        self.owner[at : at + size] = number if own is None else own * np.uint16(number)
        self.gaps |= own is not None and not own.all()
        self.names.append(name)
        self.places.append((number << APART, size))
        self._kept, self._room = np.append(self._kept, at), np.append(self._room, room)
        return number << APART

    def get(self, address: int, size: int) -> np.ndarray:
        """A copy of `size` bytes from `address` on, which are one tensor's."""
        at = int(self._kept[address >> APART]) + address % (1 << APART)
        return self.bytes[at : at + size].copy()

    def name(self, address: int) -> str:
        """The tensor that this address belongs to, or "nothing"."""
        number, offset = address >> APART, address % (1 << APART)
        if not 0 < number < len(self.names) or offset >= self._room[number]:
            return self.names[0]
        return self.names[self.owner[self._kept[number] + offset]]

    def checked(self, machine: Any, address: np.ndarray, size: int, on: np.ndarray | None) -> np.ndarray:
        """Where the lanes' bytes are kept, 0 for idle lanes; raises CardRefuses for one that may not be.

        address: int64 [programs, threads]; size: bytes of each lane's access, a power of two.
        """
        live = address if on is None else address[on]
        at = self._kept_at(live, size)
        if at is None or self._nobodys(at, size).any():
            raise CardRefuses(f"{machine.now}: {self._astray(machine, address, size, on)}")
        if (crooked := live & (size - 1) != 0).any():
            name = self.name(int(live[crooked][0]))
            raise CardRefuses(f"{machine.now}: an address in {name} that is no multiple of its {size} bytes.")
        if on is None:
            return at
        found = np.zeros(address.shape, np.int64)
        found[on] = at
        return found

    def _kept_at(self, address: np.ndarray, size: int) -> np.ndarray | None:
        """Places in `bytes` of these addresses, None where one is in no tensor's room."""
        low, high = int(address.min()), int(address.max())
        number = low >> APART
        if number == high >> APART and 0 < number < len(self.names):  # all in one tensor, as nearly always
            start = number << APART
            if high + size - start > self._room[number]:
                return None
            return address + (int(self._kept[number]) - start)
        if low < 0 or high >> APART >= len(self.names):
            return None
        numbers = address >> APART
        offset = address - (numbers << APART)
        if (offset + size > self._room[numbers]).any():
            return None
        return self._kept[numbers] + offset

    def _nobodys(self, at: np.ndarray, size: int) -> np.ndarray:
        """Which accesses to `size` bytes from these places on touch one that is no tensor's.

        Red zones are wider than an access: whose first and last byte are a tensor's is inside, without gaps.
        """
        if self.gaps:
            return (self.owner[at[..., None] + np.arange(size)] == 0).any(-1)
        first = self.owner[at]
        return (first == 0) | (self.owner[at + (size - 1)] != first)

    def _astray(self, machine: Any, address: np.ndarray, size: int, on: np.ndarray | None) -> str:
        """Who is outside every tensor, and how far from the nearest one, or in what a view leaves out."""
        number = address >> APART
        number = np.where((number > 0) & (number < len(self.names)), number, 0)
        offset = address - (number << APART)
        inside = (offset >= 0) & (offset <= self._room[number] - size)
        outside = ~inside | self._nobodys(np.where(inside, self._kept[number] + offset, 0), size)
        if on is not None:
            outside &= on
        program, thread = np.argwhere(outside)[0]
        where, lanes = int(address[program, thread]), int(outside.sum())
        who = f"thread {thread} of program {machine.programs[program, 0]}"
        name, start, length = min(
            ((name, *place) for name, place in zip(self.names[1:], self.places[1:], strict=True)),
            key=lambda known: max(known[1] - where, where + size - known[1] - known[2]),
            default=("nothing", 0, 0),
        )
        if start <= where and where + size <= start + length:
            return (
                f"{who} touches byte {where - start} of the memory that {name} is a view of, which is in "
                f"none of its elements ({lanes} such lanes); mask it off, or pass the whole tensor."
            )
        before = where < start
        distance = start - where if before else where + size - start - length
        return (
            f"{who} is outside every tensor; {name} is the nearest, {distance} bytes "
            f"{'before it' if before else 'past its end'} ({lanes} such lanes)."
        )

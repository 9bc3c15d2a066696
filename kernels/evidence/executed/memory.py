"""Global memory: tensors that lie apart, with red zones between them that trap."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses

RED_ZONE = 256  # bytes between tensors; their addresses are multiples of it, as CUDA's allocator has them
POISON = 0xFF  # NaN in every float format


class GlobalMemory:
    """One flat array of bytes. owner: which tensor a byte belongs to, 0 for none; names: of the tensors."""

    def __init__(self) -> None:
        self.bytes = np.full(RED_ZONE * 16, POISON, np.uint8)
        self.owner = np.zeros(RED_ZONE * 16, np.uint16)
        self.names = ["nothing"]
        self.places: list[tuple[int, int]] = [(0, 0)]

    def put(self, name: str, data: np.ndarray) -> int:
        """The address of a copy of these bytes. Raises ValueError for more tensors than can be told apart."""
        if len(self.names) > np.iinfo(np.uint16).max:
            raise ValueError(f"{len(self.names)} tensors: more than this memory tells apart; launch fewer.")
        size = data.size
        room = -(-(size + RED_ZONE) // RED_ZONE) * RED_ZONE
        at = self.bytes.size
        self.bytes = np.concatenate([self.bytes, np.full(room, POISON, np.uint8)])
        self.owner = np.concatenate([self.owner, np.zeros(room, np.uint16)])
        self.bytes[at : at + size] = data
        self.owner[at : at + size] = len(self.names)
        self.names.append(name)
        self.places.append((at, size))
        return at

    def get(self, address: int, size: int) -> np.ndarray:
        """A copy of `size` bytes from `address` on."""
        return self.bytes[address : address + size].copy()

    def checked(self, machine: Any, address: np.ndarray, size: int, on: np.ndarray | None) -> np.ndarray:
        """The lanes' addresses, those of idle lanes moved to 0; raises CardRefuses for one that may not be.

        address: int64 [programs, threads]; size: bytes of each lane's access, a power of two.
        """
        live = address if on is None else address[on]
        if live.min() < 0 or live.max() + size > self.bytes.size:
            raise CardRefuses(f"{machine.now}: {self._astray(machine, address, size, on)}")
        first = self.owner[live]
        if not first.all() or (self.owner[live + (size - 1)] != first).any():
            raise CardRefuses(f"{machine.now}: {self._astray(machine, address, size, on)}")
        if (crooked := live & (size - 1) != 0).any():
            name = self.names[first[crooked][0]]
            raise CardRefuses(f"{machine.now}: an address in {name} that is no multiple of its {size} bytes.")
        return address if on is None else np.where(on, address, 0)

    def _astray(self, machine: Any, address: np.ndarray, size: int, on: np.ndarray | None) -> str:
        """Who is outside every tensor, and how far from the nearest one."""
        inside = (address >= 0) & (address + size <= self.bytes.size)
        at = np.where(inside, address, 0)
        first, last = self.owner[at], self.owner[np.minimum(at + size - 1, self.bytes.size - 1)]
        outside = ~inside | (first == 0) | (first != last)
        if on is not None:
            outside &= on
        program, thread = np.argwhere(outside)[0]
        where = int(address[program, thread])
        name, distance = min(
            (
                (name, where - start if where < start else where + size - start - length)
                for name, (start, length) in zip(self.names[1:], self.places[1:], strict=True)
            ),
            key=lambda found: abs(found[1]),
            default=("nothing", where),
        )
        side = "before it" if distance < 0 else "past its end"
        return (
            f"thread {thread} of program {machine.programs[program, 0]} is outside every tensor; {name} is "
            f"the nearest, {abs(distance)} bytes {side} ({int(outside.sum())} such lanes)."
        )

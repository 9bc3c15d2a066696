"""Operands in shared memory as a tensor core wants them: where each element lies, from the manual's pictures.

Written from the canonical layouts of CUTLASS (include/cute/arch/mma_sm90_desc.hpp) and the PTX ISA's figures
of swizzles: within eight rows of an atom, the 16-byte pieces of a row change places by the row's number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from tests.kernels.executed.test_matrix import BYTES, as_bytes

NONE = 16  # bytes of a row without a swizzle
WIDTHS = (128, 64, 32, NONE)
CODES = {"sm_90": {128: 1, 64: 2, 32: 3, NONE: 0}, "sm_100": {128: 2, 64: 4, 32: 6, NONE: 0}}


def moved(piece: int, row: int, width: int) -> int:
    """Where a row's 16-byte piece lies: bits 4-6, 4-5 or 4 of an address change with its bits from 7 on."""
    return piece ^ {128: row, 64: row // 2, 32: row // 4, NONE: 0}[width]


@dataclass(frozen=True)
class Tile:
    """values: [rows, deep] along M or N and along K.

    width: bytes of an atom's row. transposed: rows lie side by side in memory, not elements along K.
    """

    values: np.ndarray
    kind: str
    width: int
    transposed: bool

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return BYTES[self.kind]

    @property
    def strides(self) -> tuple[int, int]:
        """The leading and the stride byte offset."""
        deep = self.values.shape[1]
        if self.width == NONE:  # 8 rows of 16 bytes are a unit; the next one along K lies beside it
            return 128, 128 * (deep // 8 if self.transposed else deep * self.item // 16)
        return (deep * self.width, 8 * self.width) if self.transposed else (16, 8 * self.width)

    def place(self, row: int, k: int) -> int:
        """The byte offset of an element."""
        lead, stride = self.strides
        if self.transposed:
            each = self.width // self.item
            across, along = (stride, lead) if self.width == NONE else (lead, stride)
            inside, line = row % each * self.item, k % 8
            base = row // each * across + k // 8 * along
        else:
            inside, line = k * self.item, row % 8
            base = row // 8 * stride
            if self.width == NONE:
                base, inside = base + inside // 16 * lead, inside % 16
        return base + line * self.width + moved(inside // 16, line, self.width) * 16 + inside % 16

    def memory(self) -> np.ndarray:
        """The bytes of the tile; what no element covers is NaN."""
        rows, deep = self.values.shape
        raw = as_bytes(self.values[..., None], self.kind)
        places = [[self.place(row, k) for k in range(deep)] for row in range(rows)]
        memory = np.full(-(-(np.max(places) + 16) // 1024) * 1024, 0xFF, np.uint8)
        for row, k in product(range(rows), range(deep)):
            memory[places[row][k] : places[row][k] + self.item] = raw[row, k]
        return memory

    def descriptor(self, start: int, step: int, depth: int, chip: str) -> int:
        """Of the elements from step * depth on along K, for a tile that begins at the address `start`."""
        lead, stride = self.strides
        if self.transposed:
            start += step * depth // 8 * (lead if self.width == NONE else stride)
        else:
            start += step * depth * self.item * (lead // 16 if self.width == NONE else 1)
        code = CODES[chip][self.width] << (62 if chip == "sm_90" else 61)
        version = 1 << 46 if chip == "sm_100" else 0
        return start >> 4 | lead >> 4 << 16 | stride >> 4 << 32 | version | code

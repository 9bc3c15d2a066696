"""Where a tensor core finds an operand in shared memory: the 64-bit matrix descriptors of wgmma and tcgen05.

Bits 0-13 hold the start, 16-29 the leading and 32-45 the stride byte offset, each over 16; the swizzle is on
top (PTX ISA, "Matrix descriptor"; bits 62-63 on sm_90, 61-63 on sm_100).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed import formats
from kernels.evidence.executed.formats import FP8, UINT
from kernels.evidence.executed.ptx import NotExecutable

# Code on top of a descriptor -> how many address bits are exchanged; an atom's row is 16 << that bytes.
SWIZZLES = {"sm_90": {0: 0, 1: 3, 2: 2, 3: 1}, "sm_100": {0: 0, 2: 3, 4: 2, 6: 1}}
ITEM = {"bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1}  # bytes


@functools.lru_cache(maxsize=4096)
def offsets(descriptor: int, rows: int, depth: int, item: int, transposed: bool, chip: str) -> np.ndarray:
    """Byte offsets [rows, depth] of an operand's elements; rows along M or N, depth along K.

    An atom is 8 rows of 16, 32, 64 or 128 bytes. K-major: rows lie along the stride offset and K along an
    atom's row. Transposed: an atom's row runs along M or N, and the two offsets change their parts. The
    swizzle exchanges bits 4-6 of the final address with its bits 7-9 (128 bytes), 4-5 with 7-8, 4 with 7, so
    that a start in the middle of an atom, a step along K, comes out right.
    """
    start, lead, stride = ((descriptor >> low & 0x3FFF) << 4 for low in (0, 16, 32))
    code = descriptor >> 62 & 3 if chip == "sm_90" else descriptor >> 61 & 7
    if descriptor >> 49 & 7 or code not in SWIZZLES[chip]:
        raise NotExecutable(
            f"matrix descriptor {descriptor:#018x}: its base offset or swizzle is not known here."
        )
    exchanged = SWIZZLES[chip][code]
    width = 16 << exchanged  # bytes of an atom's row
    each = width // item
    r, k = np.arange(rows)[:, None], np.arange(depth)[None]
    if transposed and exchanged:
        at = r // each * lead + r % each * item + k // 8 * stride + k % 8 * width
    elif transposed:
        at = r // each * stride + r % each * item + k // 8 * lead + k % 8 * 16
    elif exchanged:
        if depth * item > width:
            raise NotExecutable(
                f"an operand of {depth * item} bytes along K in rows of {width}: not known here."
            )
        at = r // 8 * stride + r % 8 * width + k * item
    else:
        at = r // 8 * stride + r % 8 * 16 + k * item // 16 * lead + k * item % 16
    at = at + start
    return at ^ ((at >> 7 & ((1 << exchanged) - 1)) << 4)


def fetch(
    machine: Any, descriptors: np.ndarray, programs: np.ndarray, rows: int, depth: int, kind: str,
    transposed: bool, chip: str,
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:  # fmt: skip
    """An operand's numbers [n, rows, depth], for n descriptors, of the programs at these places.

    And where they lie: for each distinct descriptor its offsets and which of the n have it.
    """
    item = ITEM[kind]
    unique, which = np.unique(descriptors, return_inverse=True)
    each = [offsets(int(one), rows, depth, item, transposed, chip) for one in unique]
    if max(int(one.max()) for one in each) + item > machine.size:
        raise CardRefuses(f"{machine.now}: an operand outside the shared memory of its program.")
    at = each[0][None] if len(each) == 1 else np.stack(each)[which]
    flat = at + machine.base[programs, 0][:, None, None]
    raw = machine.shared.view(UINT[item * 8])[flat // item]
    values = FP8[kind][raw] if kind in FP8 else formats.numbers(raw, kind).astype(np.float32, copy=False)
    return values, [(one, np.flatnonzero(which == i)) for i, one in enumerate(each)]

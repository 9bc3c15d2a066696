"""Numbers that no right kernel uses: in memory that nobody wrote yet, and in lanes that a mask leaves out.

A kernel that uses such a number gives a wrong result, and not by luck the right one: a lane that is
masked off and has no `other=` may hold anything on a GPU, and so may a fresh output or workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# Whole numbers are this byte again and again: 123 in int8, 2,071,690,107 in int32. As an index that
# leads far outside; as a number it is seen.
BYTE = 0x7B


def like(pointers: np.ndarray, dtype: np.dtype, floating: bool) -> np.ndarray:
    """An array of `pointers`' shape full of poison: NaN, True, or a large whole number.

    floating: the numbers are floating point, also where NumPy has no such type and holds their bits
    (bf16 in uint16, fp8 in uint8): all bits set is NaN in every format that Triton has.
    """
    if dtype.kind == "f":
        return np.full(pointers.shape, np.nan, dtype=dtype)
    if dtype.kind == "b":
        return np.ones(pointers.shape, dtype=dtype)
    bytes_ = np.full(dtype.itemsize, 0xFF if floating else BYTE, dtype=np.uint8)
    return np.full(pointers.shape, bytes_.view(dtype)[0], dtype=dtype)


@contextmanager
def poisoned() -> Iterator[None]:
    """Inside, torch fills every new uninitialised tensor with NaN (the largest value, for ints).

    That is torch's own switch, so split-K workspaces are poisoned as well as outputs.
    """
    import torch

    # use_deterministic_algorithms sets the same, and imports torch's compiler for it: a second's work.
    before = torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = fill
        torch.set_deterministic_debug_mode(before)

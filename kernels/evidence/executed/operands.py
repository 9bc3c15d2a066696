"""Operands: what a function of the machine gives their bits, or their addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.evidence.executed.formats import UINT
from kernels.evidence.executed.ptx import WIDTH, Kernel, NotExecutable

Get = Callable[[Any], np.ndarray]
_SPECIAL = re.compile(r"%(?:n?tid|n?ctaid)\.[xyz]|%laneid|%warpid|global_smem")


def reader(kernel: Kernel, text: str, kind: str = "b32") -> Get:
    """machine -> bits of a register, a special register or an immediate of the PTX type `kind`.

    They broadcast to [programs, threads]. Raises NotExecutable for what is none of the three.
    """
    if text in kernel.index:
        place = kernel.index[text]
        return lambda machine: machine.registers[place]
    if _SPECIAL.fullmatch(text):
        return lambda machine: machine.special[text]
    constant = immediate(text, kind)
    return lambda machine: constant


def immediate(text: str, kind: str) -> np.ndarray:
    """A number of the text as bits, [1, 1]; 0f3F800000 and 0d... are floats by their bits."""
    if kind == "pred":
        return np.full((1, 1), integer(text) != 0)
    if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", text):
        return np.full((1, 1), int(found[1] or found[2], 16), UINT[32 if found[1] else 64])
    width = WIDTH[kind]
    return np.full((1, 1), integer(text.rstrip("U")) & ((1 << width) - 1), UINT[width])


def integer(text: str) -> int:
    """A whole number that stands in the text. Raises NotExecutable for anything else."""
    try:
        return int(text, 0)
    except ValueError:
        raise NotExecutable(f"{text!r} is neither a register nor a number") from None


def address(kernel: Kernel, text: str) -> Get:
    """machine -> int64 addresses of "[register + offset]"."""
    base, _, offset = text.strip("[] ").partition("+")
    get, plus = reader(kernel, base.strip(), "b64"), integer(offset.replace(" ", "") or "0")
    return lambda machine: get(machine).astype(np.int64) + plus

"""Experiments that go wrong as real ones do, at one size: for the process that measures."""

import dataclasses

import torch

from tests.kernels.fakes import Memory
from tests.kernels.toy import experiment as toy
from tests.kernels.toy import toy as right

BAD = 16  # the m at which they go wrong


def out_of_memory(x, w):
    """What torch raises where an allocation fails."""
    if len(x) == BAD:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")
    return right(x, w)


def illegal(x, w):
    """What a launch after an illegal access raises; nothing more can be done in that process."""
    if len(x) == BAD:
        Memory.lost = "CUDA error: an illegal memory access was encountered"
        raise RuntimeError(f"{Memory.lost}\nCompile with TORCH_USE_CUDA_DSA")
    return right(x, w)


def refused(x, w):
    """What Triton raises for a tile that the card has no room for."""
    from triton.runtime.errors import OutOfResources

    if len(x) == BAD:
        raise OutOfResources(240_000, 232_448, "shared memory")
    return right(x, w)


def wrong(x, w):
    """A result that is off."""
    return right(x, w) * (1.1 if len(x) == BAD else 1.0)


memory, access, launch, result = (
    dataclasses.replace(toy, run=run) for run in (out_of_memory, illegal, refused, wrong)
)
large = dataclasses.replace(toy, variant="large")

"""Benches of a rehearsal on which something goes wrong, for the real child processes of a real run."""

import os
import signal
from collections import Counter

import torch
from triton.runtime.errors import OutOfResources

from kernels.evidence.rehearsal.card import Truth
from kernels.evidence.rehearsal.stream import Costs, Faults
from kernels.measure.rehearsal import Rehearsal

CHIP = "sm_90"
_launches: Counter[str] = Counter()


def _again(launched):
    """What is launched, "kv append 8", if it was in this process before: a check's launch is left alone."""
    shapes = launched.shapes or {}
    rows = shapes["k_ptr"][0] if "k_ptr" in shapes else shapes["y_ptr"][-1] if "y_ptr" in shapes else 0
    name = f"{launched.label} {rows}"
    _launches[name] += 1
    return name if _launches[name] > 1 else ""


def _refused(launched):
    match _again(launched):
        case "kv append 32":
            return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")
        case "kv append 8":
            os.kill(os.getpid(), signal.SIGKILL)
        case "gemv 64":
            return OutOfResources(300_000, 232_448, "shared memory")
    return None


def _illegal(launched):
    return launched.label == "kv append" and launched.shapes["k_ptr"][0] == 1 and _launches["kv append 1"] > 1


# Kernels run at four times the bandwidth of the card, and start in no time; events are read as finely.
faulty = Rehearsal(
    CHIP, Truth(kernels=4.0, start=0.0), Faults(refused=_refused, illegal=_illegal), Costs(resolution=0.0)
)

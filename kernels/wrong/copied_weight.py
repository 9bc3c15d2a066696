"""The mistake: the weight is copied before it is used, as when a layout or a format is changed in each step.

The right one is `kernels.gemv`, which reads the weight where it lies. Chapter 04.
"""

from dataclasses import replace

import torch

from book.say import say
from kernels import gemv, stream
from kernels.contract import devices
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong
from kernels.tiling.products import Plan


def copied_weight(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = x[M, K] @ w[K, N], as `kernels.gemv` gives it; it raises as that does."""
    sizes, dtype = experiment.check(x=x, w=w)
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(experiment.plan(**sizes, dtype=dtype), x, w, y), x.device)
    return y


def launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """A copy of the weight, then `kernels.gemv` on the copy."""
    rows = w.mT.reshape(-1)  # as it lies in memory, a row of K numbers for each output
    copied = torch.empty_like(rows)
    [copy] = stream.experiment.launches(stream.Plan(block=8192, num_warps=8), rows, copied)
    names = {"x": "w", "y": "copied_w"}
    return [
        replace(copy, names=names),
        *gemv.launches(plan, x, copied.view(w.shape[1], -1).mT, y),
    ]


experiment = replace(gemv.experiment, variant="copied_weight", run=copied_weight, launches=launches)
wrong = Wrong(
    experiment, say("It copies the weight before it uses it: the weight is read, written and read again.")
)

"""The mistake: sixteen rows at a time, a launch for each slice, and the weight is read for every slice.

The right one is `kernels.linear`, which reads it once for all rows. Chapter 02.
"""

from dataclasses import replace

import torch

from book.say import say
from kernels import linear
from kernels.contract import devices
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong
from kernels.tiling import products
from kernels.tiling.products import Plan

ROWS = 16  # of a slice


def linear_in_slices(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = x[M, K] @ w[K, N], as `kernels.linear` gives it; it raises as that does."""
    sizes, dtype = experiment.check(x=x, w=w)
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(plan(**sizes, dtype=dtype), x, w, y), x.device)
    return y


def plan(m: int, **others) -> Plan:
    """The tile of one slice; K is not split, so no partial sums add to the mistake."""
    return products.whole(min(m, ROWS), **others)


def launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """Those of `kernels.linear`, slice by slice."""
    slices = [slice(first, first + ROWS) for first in range(0, len(x), ROWS)]
    return [one for rows in slices for one in linear.launches(plan, x[rows], w, y[rows])]


experiment = replace(
    linear.experiment, variant="in_slices", run=linear_in_slices, plan=plan, launches=launches
)
wrong = Wrong(
    experiment,
    say("It takes sixteen rows at a time, a launch for each slice, and each reads the weight."),
)

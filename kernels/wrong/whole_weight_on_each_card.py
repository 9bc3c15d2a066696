"""The mistake: the weight is not cut. Each of four cards reads all of it, so four are no faster than one.

The right one gives each card its own columns: together they read the weight once. Chapter 09.
"""

from dataclasses import replace

import torch

from book.say import say
from kernels import linear
from kernels.contract import devices
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong
from kernels.tiling.products import Plan

CARDS = 4


def whole_weight_on_each_card(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = x[M, K] @ w[K, N], as `kernels.linear` gives it; it raises as that does."""
    sizes, dtype = experiment.check(x=x, w=w)
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(experiment.plan(**sizes, dtype=dtype), x, w, y), x.device)
    return y


def launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """Those of `kernels.linear`, once for each card."""
    return linear.launches(plan, x, w, y) * CARDS


experiment = replace(linear.experiment, variant="not_cut", run=whole_weight_on_each_card, launches=launches)
wrong = Wrong(experiment, say("The weight is not cut: each of {cards} cards reads all of it.", cards=CARDS))

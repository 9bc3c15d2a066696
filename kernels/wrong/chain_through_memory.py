"""The mistake: a launch for every link, so that each number goes back to memory after each multiply-add.

The right one is `kernels.fma_chain`, which keeps the numbers in registers. Chapter 01.
"""

from dataclasses import replace

import torch

from book.say import say
from kernels import fma_chain
from kernels.contract import devices
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong
from kernels.stream import Plan

BLOCK = 4096  # elements of a program: there are many launches to interpret


def chain_through_memory(x: torch.Tensor, k: int) -> torch.Tensor:
    """What `fma_chain` computes, of x[n]; it raises as that does."""
    sizes, dtype = experiment.check(x=x)
    y = torch.empty_like(x)
    devices.launch(launches(experiment.plan(**sizes, k=k, dtype=dtype), x, y, k), x.device)
    return y


def launches(plan: Plan, x: torch.Tensor, y: torch.Tensor, k: int) -> list[Launch]:
    """k launches of one link each: the first reads x, each of the others what the one before wrote."""
    [first] = fma_chain.launches(replace(plan, block=BLOCK), x, y, 1)
    again = replace(first, args=(y, *first.args[1:]))
    return [first, *[again] * (k - 1)]


experiment = replace(
    fma_chain.experiment, variant="through_memory", run=chain_through_memory, launches=launches
)
wrong = Wrong(
    experiment,
    say("It starts a launch for every link, so each number is written and read again after each one."),
)

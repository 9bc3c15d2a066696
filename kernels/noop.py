"""A kernel that does nothing, and steps of n launches. Confirms chapter 09: what a launch costs.

Python decides and queues each launch (eager), or the whole queue was recorded once and is started
as one (a CUDA graph). `kernels.evidence.launch_overhead` times both for this kernel and for
`kernels.linear`, and fits a line: its slope is what one more launch adds.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import torch

from kernels.contract import checks, devices
from kernels.contract.devices import triton
from kernels.contract.launch import Launch
from kernels.contract.tensors import Tensor

Step = Callable[[], Any]


@triton.jit
def noop_kernel(x_ptr):
    pass


def noop(x: torch.Tensor) -> None:
    """Start one program that does nothing on the device of x[n], which it gets and leaves alone."""
    checks.refuse("noop", {"x": Tensor("n")}, {"x": x}, {dtype: {"": (dtype,)} for dtype in checks.PLANNED})
    devices.launch(launches(x), x.device)


def launches(x: torch.Tensor) -> list[Launch]:
    """The one launch of `noop`, as the compiler sees it."""
    return [Launch(noop_kernel, (1,), (x,), {"num_warps": 1, "num_stages": 1}, "noop")]


def repeated(works: Iterable[Step], n: int) -> Step:
    """A step that starts n of `works`, in order and over again; the next step goes on from there."""
    checks.sizes(n=n)
    endless = itertools.cycle(works)

    def step() -> None:
        for _ in range(n):
            next(endless)()

    return step

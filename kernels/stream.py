"""y[n] = x[n], and y[n] = a[n] + scale * b[n]. Confirms chapter 01: the bandwidth ceiling.

After McCalpin's STREAM. There is nothing to reuse, so the time is the bytes over the bandwidth, and
the bandwidth that comes out is the one that every other kernel is held to.
"""

from dataclasses import dataclass, replace

import torch

from book import catalog, cost
from kernels.contract import devices
from kernels.contract.checks import planned
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor
from kernels.tiling.integers import ceil_div

SCALE = 3.0  # STREAM's own


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    inside = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=inside), mask=inside)


@triton.jit
def triad_kernel(a_ptr, b_ptr, y_ptr, scale, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    inside = offsets < n
    a = tl.load(a_ptr + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    b = tl.load(b_ptr + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    y = a + scale * b
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def copy(x: torch.Tensor) -> torch.Tensor:
    """y[n] = x[n]. Raises ValueError or TypeError, with the remedy, for a tensor it can't stream."""
    sizes, dtype = experiment.check(x=x)
    y = torch.empty_like(x)
    devices.launch(_copy_launches(plan(**sizes, dtype=dtype), x, y), x.device)
    return y


def triad(a: torch.Tensor, b: torch.Tensor, scale: float = SCALE) -> torch.Tensor:
    """y[n] = a[n] + scale * b[n], computed in fp32. Raises as `copy` does."""
    sizes, dtype = triad_experiment.check(a=a, b=b)
    y = torch.empty_like(a)
    devices.launch(_triad_launches(plan(**sizes, dtype=dtype), a, b, y, scale), a.device)
    return y


@dataclass(frozen=True)
class Plan:
    """block: elements for each program."""

    block: int
    num_warps: int

    def grid(self, n: int) -> tuple[int]:
        """One program for each block, the last one ragged."""
        return (ceil_div(n, self.block),)

    @property
    def options(self) -> dict[str, int]:
        """Compile-time arguments of the kernels."""
        return {"BLOCK": self.block, "num_warps": self.num_warps, "num_stages": 1}


@planned()
def plan(n: int, dtype: str | None = "fp32", target: Target | str | None = None) -> Plan:
    """16 KiB a program and tensor, so that each thread has 64 bytes in flight; less for a small n."""
    block = int(16384 / catalog.itemsize(dtype))
    while block > 1024 and n < 2 * target.sm_count * block:
        block //= 2
    return Plan(block, 8 if block >= 4096 else 4)


def _copy_launches(plan: Plan, x: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    return [Launch(copy_kernel, plan.grid(len(x)), (x, y, len(x)), plan.options, "copy")]


def _triad_launches(
    plan: Plan, a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, scale: float = SCALE
) -> list[Launch]:
    return [Launch(triad_kernel, plan.grid(len(a)), (a, b, y, scale, len(a)), plan.options, "triad")]


def whole_blocks(plan: Plan, useful: cost.Cost, n: int) -> cost.Cost:
    """The same with the FLOPs of whole blocks: the last one computes past the end."""
    return replace(useful, flops=useful.flops // n * plan.grid(n)[0] * plan.block)


def copy_reference(x: torch.Tensor) -> torch.Tensor:
    """x in float64."""
    return x.double()


def triad_reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same in float64, by torch."""
    return a.double() + SCALE * b.double()


VECTOR = Tensor("n", side_by_side=True)

experiment = Experiment(
    name="stream",
    sizes=("n",),
    axis="n",
    tensors={"x": VECTOR, "y": replace(VECTOR, out=True)},
    run=copy,
    reference=copy_reference,
    cost=cost.copy,
    plan=plan,
    issued=lambda plan, *, n, itemsize=4: cost.copy(n, itemsize),
    launches=_copy_launches,
    sweep={
        "counted": {"n": [4_096, 1_000_003]},
        "timed": {"n": [2**24, 2**26, 2**28]},
        "compiled": {"n": 2**24},
    },
    unit="vector",
    dtypes=("fp32", "fp16", "bf16"),
)

triad_experiment = replace(
    experiment,
    variant="triad",
    tensors={"a": VECTOR, "b": VECTOR, "y": replace(VECTOR, out=True)},
    run=triad,
    reference=triad_reference,
    cost=cost.triad,
    issued=lambda plan, *, n, itemsize=4: whole_blocks(plan, cost.triad(n, itemsize), n),
    launches=_triad_launches,
)

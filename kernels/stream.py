"""y[n] = x[n], and y[n] = a[n] + scale * b[n]. Confirms chapter 01: the bandwidth ceiling.

After McCalpin's STREAM. There is nothing to reuse, so the time is the bytes over the bandwidth, and
the bandwidth that comes out is the one that every other kernel is held to.
"""

from dataclasses import dataclass, replace

import torch

from book import catalog, cost
from kernels.contract import checks, devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Launch
from kernels.contract.targets import Target

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
    checks.vectors("copy", x=x)
    y = torch.empty_like(x)
    chosen = plan(len(x), devices.dtype_name(x.dtype))
    devices.launch(_copy_launches(chosen, x, y), x.device)
    return y


def triad(a: torch.Tensor, b: torch.Tensor, scale: float = SCALE) -> torch.Tensor:
    """y[n] = a[n] + scale * b[n], computed in fp32. Raises as `copy` does."""
    checks.vectors("triad", a=a, b=b)
    y = torch.empty_like(a)
    chosen = plan(len(a), devices.dtype_name(a.dtype))
    devices.launch(_triad_launches(chosen, a, b, y, scale), a.device)
    return y


@dataclass(frozen=True)
class Plan:
    """block: elements for each program."""

    block: int
    num_warps: int

    def grid(self, n: int) -> tuple[int]:
        """One program for each block, the last one ragged."""
        return (-(-n // self.block),)

    @property
    def options(self) -> dict[str, int]:
        """Compile-time arguments of the kernels."""
        return {"BLOCK": self.block, "num_warps": self.num_warps, "num_stages": 1}


def plan(n: int, dtype: str | None = None, target: Target | str | None = None) -> Plan:
    """16 KiB a program and tensor, so that each thread has 64 bytes in flight; less for a small n.

    Raises ValueError for a size below 1, and for a dtype or target that is not known.
    """
    checks.sizes(n=n)
    dtype = "fp32" if dtype is None else dtype
    chip, multiprocessors = devices.chip(target)
    checks.dtype(dtype, chip)
    block = int(16384 / catalog.itemsize(dtype))
    while block > 1024 and n < 2 * multiprocessors * block:
        block //= 2
    return Plan(block, 8 if block >= 4096 else 4)


def _copy_launches(plan: Plan, x: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    return [Launch(copy_kernel, plan.grid(len(x)), (x, y, len(x)), plan.options, "copy")]


def _triad_launches(plan: Plan, a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, scale: float):
    return [Launch(triad_kernel, plan.grid(len(a)), (a, b, y, scale, len(a)), plan.options, "triad")]


# ------------------------------------------------------------------------------ the experiments


def random(n: int, dtype: str, device: str, seed: int) -> torch.Tensor:
    """n random numbers of variance 1."""
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randn(n, generator=generator, device=device).to(devices.TORCH_DTYPES[dtype])


def meta(n: int, dtype: str) -> torch.Tensor:
    """A vector of n elements that only the compiler looks at."""
    return torch.empty(n, dtype=devices.TORCH_DTYPES[dtype], device="meta")


experiment = Experiment(
    name="stream",
    sizes=("n",),
    axis="n",
    inputs=lambda *, n, dtype="fp32", device="cpu", seed=0: {"x": random(n, dtype, device, seed)},
    run=copy,
    reference=lambda x: x.double(),
    cost=cost.copy,
    plan=plan,
    tiles=lambda plan, *, n, itemsize=4: cost.copy(n, itemsize),
    launches=lambda plan, *, n, dtype: _copy_launches(plan, meta(n, dtype), meta(n, dtype)),
    sweep={
        "counted": {"n": [4_096, 1_000_003]},
        "timed": {"n": [2**24, 2**26, 2**28]},
        "compiled": {"n": 2**24},
    },
    dtypes=("fp32", "fp16", "bf16"),
)

triad_experiment = replace(
    experiment,
    inputs=lambda *, n, dtype="fp32", device="cpu", seed=0: {
        "a": random(n, dtype, device, seed),
        "b": random(n, dtype, device, seed + 1),
    },
    run=triad,
    reference=lambda a, b: a.double() + SCALE * b.double(),
    cost=cost.triad,
    tiles=lambda plan, *, n, itemsize=4: replace(
        cost.triad(n, itemsize), flops=cost.triad(plan.grid(n)[0] * plan.block).flops
    ),
    launches=lambda plan, *, n, dtype: _triad_launches(plan, *[meta(n, dtype)] * 3, SCALE),
)

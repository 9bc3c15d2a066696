"""x -> x * scale + shift, k times in registers, for each of n elements. Confirms chapter 01.

One read, one write, and 2k FLOPs in between: k is a dial for the intensity, so this one kernel
traces the whole roof of the CUDA cores, from the slope at k = 1 to the flat at large k. It is the
fp32 roof whatever the dtype in memory is, since the arithmetic is done in fp32.
"""

from dataclasses import replace

import torch

from book import cost
from kernels import stream
from kernels.contract import checks, devices
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.stream import Plan

SCALE, SHIFT = 0.984375, 0.015625  # exact in binary; |scale| < 1 keeps every element near 1


@triton.jit
def fma_chain_kernel(
    x_ptr, y_ptr, scale, shift, n, LINKS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    x = x.to(tl.float32)  # [BLOCK], kept in registers
    for _ in range(LINKS // 16):
        # 16 links a turn, written out.
        for _ in tl.static_range(16):
            x = x * scale + shift
    for _ in tl.static_range(LINKS % 16):
        x = x * scale + shift
    tl.store(y_ptr + offsets, x.to(y_ptr.dtype.element_ty), mask=inside)


def fma_chain(x: torch.Tensor, k: int) -> torch.Tensor:
    """Apply x * SCALE + SHIFT k times to each element of x[n].

    Raises ValueError or TypeError, with the remedy, for k < 1 or a tensor it can't stream.
    """
    sizes, dtype = experiment.check(x=x)
    y = torch.empty_like(x)
    devices.launch(launches(plan(**sizes, k=k, dtype=dtype), x, y, k), x.device)
    return y


def plan(n: int, k: int, dtype: str | None = None, target: Target | str | None = None) -> Plan:
    """Blocks as for `stream`: each thread then has 4 to 32 independent chains, which hides latency."""
    checks.sizes(k=k)
    return stream.plan(n, dtype or "fp32", target)


def launches(plan: Plan, x: torch.Tensor, y: torch.Tensor, k: int) -> list[Launch]:
    """The one launch that puts the chain's end into y."""
    args, options = (x, y, SCALE, SHIFT, len(x)), {"LINKS": k, **plan.options}
    return [Launch(fma_chain_kernel, plan.grid(len(x)), args, options, "fma_chain")]


def reference(x: torch.Tensor, k: int) -> torch.Tensor:
    """The same chain in float64, by torch."""
    x = x.double()
    for _ in range(k):
        x = x * SCALE + SHIFT
    return x


experiment = replace(
    stream.experiment,
    name="fma_chain",
    sizes=("n", "k"),
    axis="k",
    run=fma_chain,
    reference=reference,
    cost=cost.fma_chain,
    plan=plan,
    issued=lambda plan, *, n, k, itemsize=4: stream.whole_blocks(plan, cost.fma_chain(n, k, itemsize), n),
    launches=launches,
    sweep={
        "counted": {"n": 16_384, "k": [1, 16, 256]},
        "timed": {"n": 2**26, "k": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]},
        "compiled": {"n": 2**24, "k": 256},
    },
)

"""A toy W4A16 layer for the tests of the contract: y[m, n] = x[m, k] @ (w4[k, n] * scales[k/32, n]).

Weights of four bits, two a byte along k, a scale of 16 bits for each 32 of them; products in 16
bits. What chapter 14 will want of a table of tensors, as small as it gets.
"""

from dataclasses import replace

import torch

from book import cost
from kernels.contract import devices
from kernels.contract.checks import planned
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Mixed
from kernels.contract.launch import Launch
from kernels.contract.tensors import Tensor
from kernels.tiling.integers import ceil_div

GROUP = 32


@triton.jit
def w4a16_kernel(
    x_ptr, w_ptr, scales_ptr, y_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)  # [BLOCK_M]
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)  # [BLOCK_N]
    rk = tl.arange(0, GROUP)  # [GROUP]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(0, K, GROUP):
        k = first + rk
        in_x = (rm < M)[:, None] & (k < K)[None, :]
        x = tl.load(x_ptr + rm[:, None] * K + k[None, :], mask=in_x, other=0.0)
        in_w = (k < K)[:, None] & (rn < N)[None, :]
        both = tl.load(w_ptr + (k // 2)[:, None] * N + rn[None, :], mask=in_w, other=0)  # two a byte
        w = ((both >> ((k % 2) * 4)[:, None].to(tl.uint8)) & 15).to(tl.int32) - 8
        scales = tl.load(scales_ptr + first // GROUP * N + rn, mask=rn < N, other=0.0)
        acc += tl.dot(x, w.to(x.dtype)) * scales.to(tl.float32)[None, :]
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], y, mask=(rm < M)[:, None] & (rn < N)[None, :])


def w4a16(x, w, scales):
    sizes, dtype = experiment.check(x=x, w=w, scales=scales)
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(plan(**sizes, dtype=dtype), x, w, scales, y), x.device)
    return y


@planned(dtypes=("w4a16",))
def plan(m, k, n, dtype=None, target=None):
    return {"BLOCK_M": 16, "BLOCK_N": 32}


def launches(plan, x, w, scales, y):
    (m, k), n = x.shape, w.shape[1]
    grid = (ceil_div(m, plan["BLOCK_M"]), ceil_div(n, plan["BLOCK_N"]))
    return [Launch(w4a16_kernel, grid, (x, w, scales, y, m, n, k), {**plan, "GROUP": GROUP}, "w4a16")]


def reference(x, w, scales):
    k = x.shape[1]
    numbers = torch.stack([w & 15, w >> 4], 1).flatten(0, 1)[:k].double() - 8  # [k, n]
    return x.double() @ (numbers * scales.double().repeat_interleave(GROUP, 0)[:k])


def formula(*, m, k, n, itemsize=2, weight_itemsize=0.5):
    whole = cost.linear(m, k, n, itemsize, weight_itemsize)
    return replace(whole, reads={**whole.reads, "scales": ceil_div(k, GROUP) * n * itemsize})


def issued(plan, *, m, k, n, **itemsizes):
    rows, columns = (ceil_div(s, b) * b for s, b in ((m, plan["BLOCK_M"]), (n, plan["BLOCK_N"])))
    useful = formula(m=m, k=k, n=n, **itemsizes)
    blocks = ceil_div(k, GROUP)
    scaled = 2 * rows * columns * blocks  # each block's product is scaled, and added
    return replace(useful, flops=2 * rows * columns * blocks * GROUP, workspace_flops=scaled)


experiment = Experiment(
    name="w4a16",
    sizes=("m", "k", "n"),
    axis="m",
    tensors={
        "x": Tensor("m k"),
        "w": Tensor("k n", "weight", packed="k"),
        "scales": Tensor(f"k/{GROUP} n", fan_in="k"),
        "y": Tensor("m n", out=True),
    },
    run=w4a16,
    reference=reference,
    cost=formula,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={"counted": {"m": 2, "k": 64, "n": 32}, "timed": {"m": 2, "k": 64, "n": 32}},
    dtypes=("w4a16",),
    mixed={"w4a16": Mixed(("bf16", "fp16"), {"weight": "int4"})},
)

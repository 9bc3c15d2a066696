"""y[M, N] = x[M, K] @ w[K, N], from one row to thousands. Confirms chapter 02.

With the formula's intensity, M / (1 + M/K + M/N) at two bytes a number, one row is a stream of
weights and four thousand are arithmetic. At few rows there are too few tiles for the card, so K is
split as well: `splits` programs share a tile, each writes an fp32 partial sum, and a second kernel
adds those up in a fixed order (the result is the same in every run). Their traffic is named.
"""

from dataclasses import replace

import torch

from kernels import matmul
from kernels.contract import devices
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.matmul import tile_position, tile_product
from kernels.tiling import products
from kernels.tiling.integers import ceil_div
from kernels.tiling.products import Plan


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, y_ptr, partials_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    split = program % SPLITS
    # rm [BLOCK_M] rows and rn [BLOCK_N] columns of y
    rm, rn = tile_position(program // SPLITS, M, N, BLOCK_M, BLOCK_N, GROUP_M)
    k_blocks = ((K + BLOCK_K - 1) // BLOCK_K + SPLITS - 1) // SPLITS
    acc = tile_product(
        x_ptr, w_ptr, rm, rn, split * k_blocks * BLOCK_K, k_blocks, M, N, K,
        stride_xm, stride_xk, stride_wk, stride_wn,
        BLOCK_M, BLOCK_N, BLOCK_K, WHOLE_X, WHOLE_W,
    )  # fmt: skip
    in_y = (rm[:, None] < M) & (rn[None, :] < N)
    if SPLITS == 1:
        y_ptrs = y_ptr + rm[:, None] * N + rn[None, :]  # [BLOCK_M, BLOCK_N]
        tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=in_y)
    else:
        row = split.to(tl.int64) * M + rm  # [BLOCK_M] of SPLITS * M rows of partials
        # partials_ptrs [BLOCK_M, BLOCK_N]
        partials_ptrs = partials_ptr + row[:, None] * N + rn[None, :]
        tl.store(partials_ptrs, acc, mask=in_y)


@triton.jit
def add_partials_kernel(
    partials_ptr, y_ptr, size, SPLITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # offsets [BLOCK] of size = M * N
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    in_y = offsets < size
    partials_ptrs = partials_ptr + offsets  # [BLOCK], of split 0, then 1, ...
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in tl.static_range(SPLITS):
        total += tl.load(partials_ptrs, mask=in_y, other=0.0)
        partials_ptrs += size
    tl.store(y_ptr + offsets, total.to(y_ptr.dtype.element_ty), mask=in_y)


def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = x[M, K] @ w[K, N], in the dtype of x, summed in fp32. Any strides, any sizes >= 1.

    For a weight that is stored as [N, K] pass `w.T`; nothing is copied. Raises ValueError or
    TypeError, with the remedy, for tensors it cannot multiply.
    """
    sizes, dtype = experiment.check(x=x, w=w)
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(plan(**sizes, dtype=dtype), x, w, y), x.device)
    return y


plan = products.split


def launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """The launches that put x @ w into y on `plan`; with splits, the workspace is made here."""
    (m, k), n = x.shape, w.shape[1]
    partials = y
    if plan.splits > 1:
        partials = torch.empty(plan.splits, m, n, dtype=torch.float32, device=y.device)
    args = (x, w, y, partials, m, n, k, *x.stride(), *w.stride())
    options = {"SPLITS": plan.splits, **plan.options(m, k, n)}
    main = Launch(linear_kernel, (plan.programs(m, n),), args, options, "linear")
    return [main, *add_partials(plan, partials, y)]


def add_partials(plan: Plan, partials: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """The launch that adds the partial sums of `plan` up into y; none where K is not split."""
    if plan.splits == 1:
        return []
    grid = (ceil_div(y.numel(), plan.reduce_block),)
    options = {"SPLITS": plan.splits, "BLOCK": plan.reduce_block, "num_warps": 4, "num_stages": 1}
    return [Launch(add_partials_kernel, grid, (partials, y, y.numel()), options, "add partials")]


experiment = replace(
    matmul.experiment,
    name="linear",
    run=linear,
    plan=plan,
    launches=launches,
    sweep={
        "counted": {"m": [1, 16, 256], "k": 1024, "n": 1024},
        "timed": {"m": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096], "k": 8192, "n": 8192},
        "compiled": {"m": [1, 16, 64, 256, 4096], "k": 4096, "n": 4096},
    },
    edges=((1, 463, 523), (3, 1328, 37), (37, 463, 1328), (130, 200, 257), (1, 256, 128), (64, 64, 128)),
)

"""y[N] = x[K] @ w[K, N] for one row, or a few: the weights stream by. Confirms chapter 04.

Every weight is read once and used in one multiply and one add, so the time is the weights' bytes
over the bandwidth, and the matrix units would only idle on a tile of 16 rows with 15 of them empty.
The ordinary units do it, also on cards for which Triton has no matrix instructions. What is left to
do is to keep enough bytes in flight: wide loads along whichever axis of w lies side by side, and K
split between programs where N alone gives too few.
"""

import functools
from dataclasses import replace

import torch

from book import cost
from kernels import matmul
from kernels.contract import checks, devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Launch
from kernels.contract.targets import Target
from kernels.linear import add_partials_kernel
from kernels.tiling import products
from kernels.tiling.products import Plan

MAX_ROWS = 4  # more rows want more sums than there are registers: that is `kernels.linear`'s work


@triton.jit
def gemv_kernel(
    x_ptr, w_ptr, y_ptr, partials_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    split = program % SPLITS
    k_blocks = ((K + BLOCK_K - 1) // BLOCK_K + SPLITS - 1) // SPLITS
    rm = tl.arange(0, BLOCK_M).to(tl.int64)  # [BLOCK_M], all rows
    rn = (program // SPLITS).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)  # [BLOCK_N]
    rk = (split * k_blocks * BLOCK_K).to(tl.int64) + tl.arange(0, BLOCK_K)  # [BLOCK_K]
    # Three axes from the start, so that x and w meet without moving between threads:
    # x_ptrs [BLOCK_M, 1, BLOCK_K], w_ptrs [1, BLOCK_N, BLOCK_K].
    x_ptrs = x_ptr + rm[:, None, None] * stride_xm + rk[None, None, :] * stride_xk
    w_ptrs = w_ptr + rn[None, :, None] * stride_wn + rk[None, None, :] * stride_wk
    in_m = (rm < M)[:, None, None]
    in_n = (rn < N)[None, :, None]
    x_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    w_step = tl.cast(BLOCK_K, tl.int64) * stride_wk
    acc = tl.zeros((BLOCK_M, BLOCK_N, BLOCK_K), dtype=tl.float32)
    for _ in range(k_blocks):
        in_k = (rk < K)[None, None, :]
        w = tl.load(w_ptrs, mask=in_n & in_k, other=0.0).to(tl.float32)
        x = tl.load(x_ptrs, mask=in_m & in_k, other=0.0).to(tl.float32)
        acc += x * w
        rk += BLOCK_K
        x_ptrs += x_step
        w_ptrs += w_step
    y = tl.sum(acc, axis=2)  # [BLOCK_M, BLOCK_N]: only here threads wait for each other
    in_y = (rm[:, None] < M) & (rn[None, :] < N)
    if SPLITS == 1:
        y_ptrs = y_ptr + rm[:, None] * N + rn[None, :]  # [BLOCK_M, BLOCK_N]
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=in_y)
    else:
        row = split.to(tl.int64) * M + rm  # [BLOCK_M] of SPLITS * M rows of partials
        # partials_ptrs [BLOCK_M, BLOCK_N]
        partials_ptrs = partials_ptr + row[:, None] * N + rn[None, :]
        tl.store(partials_ptrs, y, mask=in_y)


def gemv(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[N] = x[K] @ w[K, N], or y[M, N] for x[M, K] with M <= 4, summed in fp32, in the dtype of x.

    Any strides: for a weight that is stored as [N, K], as checkpoints do, pass `w.T`. The same bits
    in every run. Raises ValueError or TypeError, with the remedy, for tensors it cannot multiply.
    """
    vector = isinstance(x, torch.Tensor) and x.ndim == 1
    rows = x[None] if vector else x
    m, k, n = matmul.shapes("gemv", rows, w)
    along = "k" if abs(w.stride(0)) <= abs(w.stride(1)) else "n"
    chosen = plan(m, k, n, devices.dtype_name(x.dtype), along=along)
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    devices.launch(_launches(chosen, rows, w, y), x.device)
    return y[0] if vector else y


def plan(
    m: int, k: int, n: int, dtype: str | None = None, target: Target | str | None = None, along: str = "k"
) -> Plan:
    """Tiles of 4,096 weights, long on the axis of w that lies side by side (`along`: "k" or "n").

    That is 64 bytes in flight for each thread at two bytes a weight; K is split until there are
    about four programs a multiprocessor. Raises ValueError for a size below 1 or more than MAX_ROWS
    rows, and for a dtype or target that is not known.
    """
    checks.sizes(m=m, k=k, n=n)
    if m > MAX_ROWS:
        raise ValueError(
            f"m = {m}: gemv keeps the sums of at most {MAX_ROWS} rows in registers; use kernels.linear."
        )
    chip, multiprocessors = devices.chip(target)
    checks.dtype(devices.default_dtype() if dtype is None else dtype, chip)
    block_m = products.power_of_two(m)
    weights = min(4096, 8192 // block_m)
    if along == "k":
        block_k = max(16, min(products.power_of_two(k), 512))
        block_n = max(1, min(products.power_of_two(n), weights // block_k))
    else:
        block_n = max(16, min(products.power_of_two(n), 256))
        while block_n > 64 and -(-n // block_n) * products.MAX_SPLITS < 2 * multiprocessors:
            block_n //= 2
        block_k = max(1, min(products.power_of_two(k), weights // block_n))
    tile = Plan(block_m, block_n, block_k, num_warps=4, num_stages=1)
    k_blocks = -(-k // block_k)
    splits = max(1, min(round(4 * multiprocessors / tile.tiles(m, n)), k_blocks, products.MAX_SPLITS))
    splits = -(-k_blocks // -(-k_blocks // splits))  # no split without a piece of K
    return tile if splits == 1 else replace(tile, splits=splits, reduce_block=256)


def _launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    (m, k), n = x.shape, w.shape[1]
    partials = y
    if plan.splits > 1:
        partials = torch.empty(plan.splits, m, n, dtype=torch.float32, device=y.device)
    args = (x, w, y, partials, m, n, k, *x.stride(), *w.stride())
    options = {"SPLITS": plan.splits, "BLOCK_M": plan.block_m, "BLOCK_N": plan.block_n}
    options |= {"BLOCK_K": plan.block_k, "num_warps": plan.num_warps, "num_stages": plan.num_stages}
    main = Launch(gemv_kernel, (plan.programs(m, n),), args, options, "gemv")
    if plan.splits == 1:
        return [main]
    grid = (-(-m * n // plan.reduce_block),)
    options = {"SPLITS": plan.splits, "BLOCK": plan.reduce_block, "num_warps": 4, "num_stages": 1}
    return [main, Launch(add_partials_kernel, grid, (partials, y, m * n), options, "add partials")]


# ------------------------------------------------------------------------------ the experiments


def inputs(*, m: int, k: int, n: int, dtype: str = "fp16", device: str = "cpu", seed: int = 0):
    """Random x[m, k] and w[k, n]; w is stored as [n, k], as in a checkpoint."""
    made = matmul.inputs(m=m, k=k, n=n, dtype=dtype, device=device, seed=seed)
    return {"x": made["x"], "w": made["w"].reshape(n, k).T}


def issued(plan: Plan, *, m: int, k: int, n: int, itemsize: float = 2) -> cost.Cost:
    """What `plan` issues for this problem."""
    return cost.gemv_issued(
        m,
        k,
        n,
        block_m=plan.block_m,
        block_n=plan.block_n,
        block_k=plan.block_k,
        splits=plan.splits,
        reduce_block=plan.reduce_block,
        itemsize=itemsize,
    )


def _meta_launches(plan: Plan, *, m: int, k: int, n: int, dtype: str, along: str = "k") -> list[Launch]:
    def meta(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=devices.TORCH_DTYPES[dtype], device="meta")

    return _launches(plan, meta(m, k), meta(n, k).T if along == "k" else meta(k, n), meta(m, n))


experiment = Experiment(
    name="gemv",
    sizes=("m", "k", "n"),
    axis="n",
    inputs=inputs,
    run=gemv,
    reference=matmul.reference,
    cost=cost.linear,
    plan=plan,
    tiles=issued,
    launches=_meta_launches,
    sweep={
        "counted": {"m": 1, "k": 1024, "n": [64, 256]},
        # Llama-3-8B: k and v, q and o, gate and up, the head
        "timed": {"m": 1, "k": 4096, "n": [1024, 4096, 14_336, 128_256]},
        "compiled": {"m": 1, "k": 4096, "n": 14_336},
    },
)

# The same for a weight that is stored as [k, n].
kn_experiment = replace(
    experiment,
    inputs=matmul.inputs,
    plan=functools.partial(plan, along="n"),
    launches=functools.partial(_meta_launches, along="n"),
)

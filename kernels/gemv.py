"""y[N] = x[K] @ w[K, N] for one row, or a few: the weights stream by. Confirms chapter 04.

Every weight is read once and used in one multiply and one add, so the time is the weights' bytes
over the bandwidth, and the matrix units would only idle on a tile of 16 rows with 15 of them empty.
The ordinary units do it, also on cards for which Triton has no matrix instructions. What is left to
do is to keep enough bytes in flight: wide loads along whichever axis of w lies side by side, and K
split between programs where N alone gives too few.
"""

from dataclasses import replace
from functools import partial

import torch

from book import catalog, cost
from kernels import matmul
from kernels.contract import devices
from kernels.contract.checks import planned
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor
from kernels.linear import add_partials
from kernels.tiling import waves
from kernels.tiling.integers import ceil_div, power_of_two
from kernels.tiling.products import MAX_SPLITS, Plan

# more rows want more sums than there are registers
FEW_ROWS = {"m <= 4": "gemv keeps the sums of at most 4 rows in registers; use kernels.linear"}
THREADS = 128  # of a program
LOAD_BYTES = 16  # the widest load of one thread
PROGRAMS_PER_SM = 4  # what the registers of a tile leave room for


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
    # Three axes, x_ptrs [BLOCK_M, 1, BLOCK_K] and w_ptrs [1, BLOCK_N, BLOCK_K]. Each
    # thread loads the same columns of x and of every row of w (where w lies along K,
    # BLOCK_K is 16 bytes a thread): they meet in registers, no barrier in the loop.
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
    # [BLOCK_M, BLOCK_N]: only here threads wait for each other
    y = tl.sum(acc, axis=2)
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
    sizes, dtype = experiment.check(x=rows, w=w)
    along = "k" if abs(w.stride(0)) <= abs(w.stride(1)) else "n"
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(plan(**sizes, dtype=dtype, along=along), rows, w, y), x.device)
    return y[0] if vector else y


@planned(conditions=FEW_ROWS)
def plan(
    m: int, k: int, n: int, dtype: str | None = None, target: Target | str | None = None, along: str = "k"
) -> Plan:
    """Tiles that are long on the axis of w that lies side by side (`along`: "k" or "n").

    Along k, eight rows of w (fewer for several rows of x), of each as much as the program's 128
    threads load at once, 16 bytes each: up to 128 bytes in flight for each thread. With half of
    that BLOCK_K, w would lie across other threads than x, and Triton would send all of it through
    shared memory, with four barriers a block; asking for x once for every row of w, in its layout,
    avoids that, too, for eight times the loads of x. Along n, tiles of 4,096 weights.

    K is split where that fills waves of four programs a multiprocessor better (`tiling.waves`).
    """
    block_m, itemsize = power_of_two(m), catalog.itemsize(dtype)
    if along == "k":
        wide = int(THREADS * LOAD_BYTES / itemsize)
        block_k = max(16, min(power_of_two(k), wide))
        block_n = max(1, min(power_of_two(n), 8 // block_m))
        threads = THREADS * block_k // wide
    else:
        block_n = max(16, min(power_of_two(n), 256))
        while block_n > 64 and ceil_div(n, block_n) * MAX_SPLITS < 2 * target.sm_count:
            block_n //= 2
        block_k = max(1, min(power_of_two(k), min(4096, 8192 // block_m) // block_n))
        threads = THREADS
    tile = Plan(block_m, block_n, block_k, max(1, threads // target.warp_size), num_stages=1)
    partials = 2 * cost.FP32_BYTES * m * n / cost.linear(m, k, n, itemsize).bytes
    room = waves.Room(target.sm_count, PROGRAMS_PER_SM, PROGRAMS_PER_SM)
    splits = waves.parts(tile.tiles(m, n), ceil_div(k, block_k), room, MAX_SPLITS, partials)
    return tile if splits == 1 else replace(tile, splits=splits, reduce_block=256)


def launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """The launches that put x @ w into y on `plan`; with splits, the workspace is made here."""
    (m, k), n = x.shape, w.shape[1]
    partials = y
    if plan.splits > 1:
        partials = torch.empty(plan.splits, m, n, dtype=torch.float32, device=y.device)
    args = (x, w, y, partials, m, n, k, *x.stride(), *w.stride())
    options = {"SPLITS": plan.splits, "BLOCK_M": plan.block_m, "BLOCK_N": plan.block_n}
    options |= {"BLOCK_K": plan.block_k, "num_warps": plan.num_warps, "num_stages": plan.num_stages}
    main = Launch(gemv_kernel, (plan.programs(m, n),), args, options, "gemv")
    return [main, *add_partials(plan, partials, y)]


def issued(plan: Plan, **sizes: float) -> cost.Cost:
    """What `plan` issues for this problem."""
    return cost.gemv_issued(**sizes, **plan.blocks)


experiment = replace(
    matmul.experiment,
    name="gemv",
    axis="n",
    tensors={**matmul.experiment.tensors, "w": Tensor("k n", stored="n k")},
    run=gemv,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={
        "counted": {"m": 1, "k": 4096, "n": [64, 256]},
        # Llama-3.1-8B: k and v, q and o, gate and up, the head
        "timed": {"m": 1, "k": 4096, "n": [1024, 4096, 14_336, 128_256]},
        "compiled": {"m": 1, "k": 4096, "n": 14_336},
    },
    unit="vector",
    conditions=FEW_ROWS,
    edges=((1, 463, 67), (4, 130, 41), (2, 37, 523), (1, 512, 64)),
)

# The same for a weight that is stored as [k, n].
kn_experiment = replace(
    experiment, variant="kn", tensors=matmul.experiment.tensors, plan=partial(plan, along="n")
)

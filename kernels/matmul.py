"""y[M, N] = x[M, K] @ w[K, N] in tiles. Confirms chapter 01: the matrix units' own ceiling.

Each program owns one tile of y and walks along K: it loads a piece of x and a piece of w, multiplies
them, and keeps the sum in registers. The larger the tile, the more often each loaded number is used.
`tile_position` and `tile_product` serve `kernels.linear` too, `multiply_tile` `kernels.persistent_matmul`.
"""

import torch

from book import cost
from kernels.contract import devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.tensors import Tensor
from kernels.tiling import products
from kernels.tiling.products import Plan


@triton.jit
def tile_position(
    tile, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Rows [BLOCK_M] and columns [BLOCK_N] of tile number `tile`, as 64-bit indices.

    Tiles are numbered down GROUP_M rows of tiles, then across: neighbours share
    columns of w.
    """
    tiles_m = (M + BLOCK_M - 1) // BLOCK_M
    tiles_n = (N + BLOCK_N - 1) // BLOCK_N
    group = tile // (GROUP_M * tiles_n)
    within = tile % (GROUP_M * tiles_n)
    height = min(tiles_m - group * GROUP_M, GROUP_M)
    rm = (group * GROUP_M + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = (within // height) * BLOCK_N + tl.arange(0, BLOCK_N)
    return rm.to(tl.int64), rn.to(tl.int64)


@triton.jit
def tile_product(
    x_ptr, w_ptr, rm, rn, first, k_blocks, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    """x[rm, first:] @ w[first:, rn] over k_blocks pieces of BLOCK_K.

    The sum is fp32 [BLOCK_M, BLOCK_N].
    """
    rk = first + tl.arange(0, BLOCK_K).to(tl.int64)  # [BLOCK_K]
    # x_ptrs [BLOCK_M, BLOCK_K], w_ptrs [BLOCK_K, BLOCK_N]
    x_ptrs = x_ptr + rm[:, None] * stride_xm + rk[None, :] * stride_xk
    w_ptrs = w_ptr + rk[:, None] * stride_wk + rn[None, :] * stride_wn
    x_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    w_step = tl.cast(BLOCK_K, tl.int64) * stride_wk
    in_m = rm[:, None] < M  # [BLOCK_M, 1]
    in_n = rn[None, :] < N  # [1, BLOCK_N]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(k_blocks):
        # Where no tile reaches over an edge nothing needs a mask, known when compiling.
        if WHOLE_X:
            x = tl.load(x_ptrs)
        else:
            in_x = in_m & (rk < K)[None, :]  # [BLOCK_M, BLOCK_K]
            x = tl.load(x_ptrs, mask=in_x, other=0.0)
        if WHOLE_W:
            w = tl.load(w_ptrs)
        else:
            in_w = (rk < K)[:, None] & in_n  # [BLOCK_K, BLOCK_N]
            w = tl.load(w_ptrs, mask=in_w, other=0.0)
        rk += BLOCK_K
        # "ieee": an fp32 product stays fp32. The default rounds fp32 operands to tf32.
        acc = tl.dot(x, w, acc, input_precision="ieee")
        x_ptrs += x_step
        w_ptrs += w_step
    return acc


@triton.jit
def multiply_tile(
    tile, x_ptr, w_ptr, y_ptr, M, N, K, stride_xm, stride_xk, stride_wk, stride_wn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    """Write tile number `tile` of y = x @ w."""
    # rm [BLOCK_M] rows and rn [BLOCK_N] columns of y
    rm, rn = tile_position(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
    k_blocks = (K + BLOCK_K - 1) // BLOCK_K
    acc = tile_product(
        x_ptr, w_ptr, rm, rn, 0, k_blocks, M, N, K,
        stride_xm, stride_xk, stride_wk, stride_wn,
        BLOCK_M, BLOCK_N, BLOCK_K, WHOLE_X, WHOLE_W,
    )  # fmt: skip
    y_ptrs = y_ptr + rm[:, None] * N + rn[None, :]  # [BLOCK_M, BLOCK_N]
    in_y = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=in_y)


@triton.jit
def matmul_kernel(
    x_ptr, w_ptr, y_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    multiply_tile(
        tl.program_id(0), x_ptr, w_ptr, y_ptr, M, N, K,
        stride_xm, stride_xk, stride_wk, stride_wn,
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, WHOLE_X, WHOLE_W,
    )  # fmt: skip


def matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = x[M, K] @ w[K, N], in the dtype of x, summed in fp32. Any strides, any sizes >= 1.

    Raises ValueError or TypeError, with the remedy, for tensors it cannot multiply.
    """
    sizes, dtype = experiment.check(x=x, w=w)
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(plan(**sizes, dtype=dtype), x, w, y), x.device)
    return y


plan = products.whole


def launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """The one launch that puts x @ w into y on `plan`."""
    (m, k), n = x.shape, w.shape[1]
    args = (x, w, y, m, n, k, *x.stride(), *w.stride())
    return [Launch(matmul_kernel, (plan.tiles(m, n),), args, plan.options(m, k, n), "matmul")]


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x @ w in float64, by torch."""
    return x.double() @ w.double()


def issued(plan: Plan, **sizes: float) -> cost.Cost:
    """What `plan` issues for this problem."""
    return cost.linear_issued(**sizes, **plan.blocks)


experiment = Experiment(
    name="matmul",
    sizes=("m", "k", "n"),
    axis="m",
    tensors={"x": Tensor("m k"), "w": Tensor("k n"), "y": Tensor("m n", out=True)},
    run=matmul,
    reference=reference,
    cost=cost.linear,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={
        "counted": {"m": [128, 256], "k": 256, "n": 256},
        "timed": {"m": [1024, 2048, 4096, 8192], "k": 8192, "n": 8192},
        "compiled": {"m": 4096, "k": 4096, "n": 4096},
    },
)

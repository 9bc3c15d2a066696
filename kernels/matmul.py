"""y[M, N] = x[M, K] @ w[K, N] in tiles. Confirms chapter 01: the matrix units' own ceiling.

Each program owns one tile of y and walks along K: it loads a piece of x and a piece of w, multiplies
them, and keeps the sum in registers. The larger the tile, the more often each loaded number is used.
`tile_position` and `tile_product` serve `kernels.linear` too.
"""

import torch

from book import cost
from kernels.contract import checks, devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Launch
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
def matmul_kernel(
    x_ptr, w_ptr, y_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    # rm [BLOCK_M] rows and rn [BLOCK_N] columns of y
    rm, rn = tile_position(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    k_blocks = (K + BLOCK_K - 1) // BLOCK_K
    acc = tile_product(
        x_ptr, w_ptr, rm, rn, 0, k_blocks, M, N, K,
        stride_xm, stride_xk, stride_wk, stride_wn,
        BLOCK_M, BLOCK_N, BLOCK_K, WHOLE_X, WHOLE_W,
    )  # fmt: skip
    y_ptrs = y_ptr + rm[:, None] * N + rn[None, :]  # [BLOCK_M, BLOCK_N]
    in_y = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=in_y)


def matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = x[M, K] @ w[K, N], in the dtype of x, summed in fp32. Any strides, any sizes >= 1.

    Raises ValueError or TypeError, with the remedy, for tensors it cannot multiply.
    """
    m, k, n = shapes("matmul", x, w)
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    devices.launch(_launches(products.whole(m, k, n, devices.dtype_name(x.dtype)), x, w, y), x.device)
    return y


def shapes(kernel: str, x: torch.Tensor, w: torch.Tensor) -> tuple[int, int, int]:
    """(M, K, N) of x[M, K] @ w[K, N], once both have been checked."""
    checks.rank(kernel, "x", x, "[M, K]")
    checks.rank(kernel, "w", w, "[K, N]")
    checks.tensors(kernel, x=x, w=w)
    if x.shape[1] != w.shape[0]:
        raise ValueError(
            f"w.shape = {tuple(w.shape)}: its first size must be K = {x.shape[1]}, the last of x; for a "
            "weight that is stored as [N, K] pass w.T."
        )
    return x.shape[0], x.shape[1], w.shape[1]


def _launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    (m, k), n = x.shape, w.shape[1]
    args = (x, w, y, m, n, k, *x.stride(), *w.stride())
    return [Launch(matmul_kernel, (plan.tiles(m, n),), args, plan.options(m, k, n), "matmul")]


# ------------------------------------------------------------------------------- the experiment


def inputs(*, m: int, k: int, n: int, dtype: str = "fp16", device: str = "cpu", seed: int = 0):
    """Random x[m, k] and w[k, n] with entries of variance 1."""
    generator = torch.Generator(device).manual_seed(seed)

    def random(*shape):
        return torch.randn(shape, generator=generator, device=device).to(devices.TORCH_DTYPES[dtype])

    return {"x": random(m, k), "w": random(k, n)}


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x @ w in float64, by torch."""
    return x.double() @ w.double()


def _meta_launches(plan: Plan, *, m: int, k: int, n: int, dtype: str) -> list[Launch]:
    x, w, y = (
        torch.empty(shape, dtype=devices.TORCH_DTYPES[dtype], device="meta")
        for shape in ((m, k), (k, n), (m, n))
    )
    return _launches(plan, x, w, y)


def issued(plan: Plan, *, m: int, k: int, n: int, itemsize: float = 2) -> cost.Cost:
    """What `plan` issues for this problem."""
    return cost.linear_issued(
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


experiment = Experiment(
    name="matmul",
    sizes=("m", "k", "n"),
    axis="m",
    inputs=inputs,
    run=matmul,
    reference=reference,
    cost=cost.linear,
    plan=products.whole,
    tiles=issued,
    launches=_meta_launches,
    sweep={
        "counted": {"m": [128, 256], "k": 256, "n": 256},
        "timed": {"m": [1024, 2048, 4096, 8192], "k": 8192, "n": 8192},
        "compiled": {"m": 4096, "k": 4096, "n": 4096},
    },
)

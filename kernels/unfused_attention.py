"""The attention of `kernels.flash_attention` in three kernels, with its score matrix in memory.

Confirms chapter 08: the same result and the same useful FLOPs, but L * L scores a head are written,
read, written as probabilities and read again. Nothing that the mask hides is saved: the square is
computed and moved whole. It is here to be counted, and to be slow.
"""

import math
from dataclasses import dataclass, replace

import torch

from book import cost
from kernels import flash_attention
from kernels.contract import devices
from kernels.contract.checks import planned
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.matmul import tile_position, tile_product
from kernels.tiling import products
from kernels.tiling.integers import ceil_div, power_of_two


@triton.jit
def scores_kernel(
    q_ptr, k_ptr, scores_ptr, L, H, GROUP, scale,
    stride_qb, stride_ql, stride_qh, stride_kb, stride_kl, stride_kh, D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    tiles_in_square = ((L + BLOCK_M - 1) // BLOCK_M) * ((L + BLOCK_N - 1) // BLOCK_N)
    program = tl.program_id(0)
    plane = (program // tiles_in_square).to(tl.int64)  # which of B * H
    batch, head = plane // H, plane % H
    rm, rn = tile_position(program % tiles_in_square, L, L, BLOCK_M, BLOCK_N, GROUP_M)
    acc = tile_product(
        q_ptr + batch * stride_qb + head * stride_qh,
        k_ptr + batch * stride_kb + head // GROUP * stride_kh,
        rm, rn, 0, (D + BLOCK_K - 1) // BLOCK_K, L, L, D, stride_ql, 1, 1, stride_kl,
        BLOCK_M, BLOCK_N, BLOCK_K, WHOLE_X, WHOLE_W,
    )  # fmt: skip
    scores = tl.where(rm[:, None] >= rn[None, :], acc * scale, float("-inf"))
    scores_ptrs = scores_ptr + (plane * L + rm)[:, None] * L + rn[None, :]  # as scores
    in_square = (rm[:, None] < L) & (rn[None, :] < L)
    tl.store(scores_ptrs, scores.to(scores_ptr.dtype.element_ty), mask=in_square)


@triton.jit
def softmax_kernel(
    scores_ptr, probabilities_ptr, rows, L, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # [ROWS]
    column = tl.arange(0, BLOCK)  # [BLOCK]: a whole row of scores
    offsets = row[:, None] * L + column[None, :]  # [ROWS, BLOCK]
    inside = (row < rows)[:, None] & (column < L)[None, :]
    scores = tl.load(scores_ptr + offsets, mask=inside, other=float("-inf"))
    scores = scores.to(tl.float32)  # [ROWS, BLOCK]
    # A row past the end has no score: minus infinity would be subtracted from itself.
    peak = tl.where(row < rows, tl.max(scores, 1), 0.0)
    weights = tl.exp(scores - peak[:, None])
    total = tl.maximum(tl.sum(weights, 1), 1.0)  # [ROWS]: the peak alone adds one
    probabilities = (weights / total[:, None]).to(probabilities_ptr.dtype.element_ty)
    tl.store(probabilities_ptr + offsets, probabilities, mask=inside)


@triton.jit
def weighted_sum_kernel(
    probabilities_ptr, v_ptr, o_ptr, L, H, GROUP, stride_vb, stride_vl, stride_vh,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    tiles_in_head = ((L + BLOCK_M - 1) // BLOCK_M) * ((D + BLOCK_N - 1) // BLOCK_N)
    program = tl.program_id(0)
    plane = (program // tiles_in_head).to(tl.int64)
    batch, head = plane // H, plane % H
    rm, rn = tile_position(program % tiles_in_head, L, D, BLOCK_M, BLOCK_N, GROUP_M)
    acc = tile_product(
        probabilities_ptr + plane * L * L,
        v_ptr + batch * stride_vb + head // GROUP * stride_vh,
        rm, rn, 0, (L + BLOCK_K - 1) // BLOCK_K, L, D, L, L, 1, stride_vl, 1,
        BLOCK_M, BLOCK_N, BLOCK_K, WHOLE_X, WHOLE_W,
    )  # fmt: skip
    o_rows = (batch * L + rm) * H + head  # [BLOCK_M] of B * L * H
    o_ptrs = o_ptr + o_rows[:, None] * D + rn[None, :]  # [BLOCK_M, BLOCK_N]
    in_o = (rm[:, None] < L) & (rn[None, :] < D)
    tl.store(o_ptrs, acc.to(o_ptr.dtype.element_ty), mask=in_o)


def unfused_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """o[B, L, H, d] as `flash_attention` gives it, by way of two [B, H, L, L] matrices in memory.

    Takes what `flash_attention` takes, up to 32,768 tokens, and raises as it does.
    """
    sizes, dtype = experiment.check(q=q, k=k, v=v)
    o = q.new_empty(q.shape)
    devices.launch(launches(plan(**sizes, dtype=dtype), q, k, v, o), q.device)
    return o


_SOFTMAX_ELEMENTS = 8192  # of the score matrix, for each program of the softmax
CONDITIONS = {
    **flash_attention.CONDITIONS,
    "length <= 32768": "unfused_attention keeps a row of scores in the registers of one program, at most "
    "32,768; use flash_attention",
}


@dataclass(frozen=True)
class Plan:
    """The tiles of both products; the softmax takes `rows` rows of `block` scores at a time."""

    scores: products.Plan
    weighted_sum: products.Plan
    rows: int
    block: int

    def softmax_programs(self, planes: int, length: int) -> int:
        """One for each `rows` of the planes * length rows of scores."""
        return ceil_div(planes * length, self.rows)


@planned(dtypes=flash_attention.DTYPES, conditions=CONDITIONS)
def plan(
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    dtype: str | None = None,
    target: Target | str | None = None,
) -> Plan:
    """The largest tiles of `tiling.products` that are no wider than the products."""
    block = max(power_of_two(length), 16)
    return Plan(
        _no_wider(length, products.candidates(length, head_dim, length, dtype, target)),
        _no_wider(head_dim, products.candidates(length, length, head_dim, dtype, target)),
        max(1, _SOFTMAX_ELEMENTS // block),
        block,
    )


def _no_wider(n: int, candidates: tuple[products.Plan, ...]) -> products.Plan:
    return next((t for t in candidates if t.block_n <= power_of_two(n)), candidates[-1])


def launches(plan: Plan, q, k, v, o) -> list[Launch]:
    """The three launches, in order; both matrices between them are made here."""
    batch, length, heads, head_dim = q.shape
    planes, group = batch * heads, heads // k.shape[2]
    scores, probabilities = (
        torch.empty(batch, heads, length, length, dtype=q.dtype, device=q.device) for _ in range(2)
    )
    args = (q, k, scores, length, heads, group, 1 / math.sqrt(head_dim))
    first = Launch(
        scores_kernel,
        (planes * plan.scores.tiles(length, length),),
        (*args, *q.stride()[:3], *k.stride()[:3]),
        {"D": head_dim, **plan.scores.options(length, head_dim, length)},
        "scores",
    )
    softmax = Launch(
        softmax_kernel,
        (plan.softmax_programs(planes, length),),
        (scores, probabilities, planes * length, length),
        {"ROWS": plan.rows, "BLOCK": plan.block, "num_warps": 8, "num_stages": 1},
        "softmax",
    )
    last = Launch(
        weighted_sum_kernel,
        (planes * plan.weighted_sum.tiles(length, head_dim),),
        (probabilities, v, o, length, heads, group, *v.stride()[:3]),
        {"D": head_dim, **plan.weighted_sum.options(length, length, head_dim)},
        "weighted sum",
    )
    return [first, softmax, last]


def issued(plan: Plan, *, itemsize: float = 2, **sizes: int) -> cost.Cost:
    """What `plan` issues: whole tiles of the whole square, and beside them scaling and softmax."""
    blocks = [
        {"block_m": p.block_m, "block_n": p.block_n, "block_k": p.block_k}
        for p in (plan.scores, plan.weighted_sum)
    ]
    planes, length = sizes["batch"] * sizes["heads"], sizes["length"]
    scaled = planes * plan.scores.tiles(length, length) * plan.scores.block_m * plan.scores.block_n
    # the softmax subtracts the peak from every score of a row and adds them up
    summed = plan.softmax_programs(planes, length) * plan.rows * (2 * plan.block - 1)
    return cost.unfused_attention_issued(
        **sizes, scores=blocks[0], weighted_sum=blocks[1], itemsize=itemsize, alu_flops=scaled + summed
    )


experiment = replace(
    flash_attention.experiment,
    name="unfused_attention",
    run=unfused_attention,
    cost=cost.unfused_attention,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={
        **flash_attention.experiment.sweep,
        # 2,048 tokens already are 1 GB of scores and probabilities
        "timed": {"batch": 1, "length": [512, 1024, 2048], "heads": 32, "kv_heads": 8, "head_dim": 128},
    },
    conditions=CONDITIONS,
)

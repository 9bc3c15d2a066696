"""o = softmax(q k^T / sqrt(d)) v for a whole prompt, causal, scores kept on the chip. Confirms chapter 08.

Each program owns BLOCK_M queries of one head and walks over the keys that they may see, BLOCK_N at
a time. It never knows a whole row of scores: it keeps the largest so far (`peak`), the sum of
exponentials relative to it (`total`), and rescales what it has whenever the peak grows. That is the
online softmax of Milakov and Gimelshein, and FlashAttention is this loop. Blocks above the diagonal
are not visited, blocks below it need no mask: only those that the diagonal crosses are masked.
"""

import math
from dataclasses import dataclass, replace

import torch

from book import cost
from kernels.contract import devices
from kernels.contract.checks import GROUPED, planned
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor
from kernels.tiling.integers import ceil_div, power_of_two


@triton.jit
def attend(
    q, acc, total, peak, k_ptr, v_ptr, k_offsets, v_offsets, stride_kl, stride_vl,
    rq, in_d, first, last, L, scale, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
    WHOLE_D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Let queries q [BLOCK_M, BLOCK_D], at positions rq, look at keys first to last.

    acc [BLOCK_M, BLOCK_D], total and peak [BLOCK_M]: what they have gathered; returned.
    k_ptr, v_ptr: of the head's key 0, with the offsets of a block of keys from there.
    """
    for start in tl.range(first, last, BLOCK_N, num_stages=STAGES):
        rk = start + tl.arange(0, BLOCK_N)  # [BLOCK_N]
        row = tl.cast(start, tl.int64)
        k_ptrs = k_ptr + row * stride_kl + k_offsets  # [BLOCK_D, BLOCK_N]
        v_ptrs = v_ptr + row * stride_vl + v_offsets  # [BLOCK_N, BLOCK_D]
        if MASKED:
            k = tl.load(k_ptrs, mask=in_d[:, None] & (rk < L)[None, :], other=0.0)
            v = tl.load(v_ptrs, mask=(rk < L)[:, None] & in_d[None, :], other=0.0)
        elif WHOLE_D:
            k, v = tl.load(k_ptrs), tl.load(v_ptrs)
        else:
            k = tl.load(k_ptrs, mask=in_d[:, None], other=0.0)
            v = tl.load(v_ptrs, mask=in_d[None, :], other=0.0)
        scores = tl.dot(q, k)  # [BLOCK_M, BLOCK_N]
        if MASKED:
            scores = tl.where(rq[:, None] >= rk[None, :], scores, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, 1) * scale)  # [BLOCK_M]
        weights = tl.exp2(scores * scale - higher[:, None])  # [BLOCK_M, BLOCK_N]
        shrink = tl.exp2(peak - higher)  # [BLOCK_M]: of what the old peak weighed
        total = total * shrink + tl.sum(weights, 1)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        peak = higher
    return acc, total, peak


@triton.jit
def flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, B, L, H, scale, stride_qb, stride_ql, stride_qh,
    stride_kb, stride_kl, stride_kh, stride_vb, stride_vl, stride_vh,
    GROUP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    # Heads lie side by side, so those of a group find the same keys in L2. The last
    # queries see the most keys: they start first, and none is left alone at the end.
    program = tl.program_id(0)
    head = (program % H).to(tl.int64)
    batch = (program // H % B).to(tl.int64)
    first = ((L + BLOCK_M - 1) // BLOCK_M - 1 - program // H // B) * BLOCK_M
    rq = first + tl.arange(0, BLOCK_M)  # [BLOCK_M]
    rk = tl.arange(0, BLOCK_N)  # [BLOCK_N]
    rd = tl.arange(0, BLOCK_D)  # [BLOCK_D]
    rows = rq.to(tl.int64)
    in_d = rd < D
    in_o = (rq < L)[:, None] & in_d[None, :]
    q_ptr += batch * stride_qb + head * stride_qh
    q_ptrs = q_ptr + rows[:, None] * stride_ql + rd[None, :]
    q = tl.load(q_ptrs, mask=in_o, other=0.0)  # [BLOCK_M, BLOCK_D]
    k_ptr += batch * stride_kb + head // GROUP * stride_kh
    v_ptr += batch * stride_vb + head // GROUP * stride_vh
    k_offsets = rd[:, None] + rk[None, :] * stride_kl  # [BLOCK_D, BLOCK_N], transposed
    v_offsets = rk[:, None] * stride_vl + rd[None, :]  # [BLOCK_N, BLOCK_D]

    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    diagonal = first // BLOCK_N * BLOCK_N  # all these queries see all keys before it
    acc, total, peak = attend(
        q, acc, total, peak, k_ptr, v_ptr, k_offsets, v_offsets, stride_kl, stride_vl,
        rq, in_d, 0, diagonal, L, scale, BLOCK_N, False, D == BLOCK_D, STAGES,
    )  # fmt: skip
    acc, total, peak = attend(
        q, acc, total, peak, k_ptr, v_ptr, k_offsets, v_offsets, stride_kl, stride_vl,
        rq, in_d, diagonal, min(first + BLOCK_M, L), L, scale,
        BLOCK_N, True, D == BLOCK_D, 1,
    )  # fmt: skip
    o_rows = (batch * L + rows) * H + head  # [BLOCK_M] of B * L * H
    o_ptrs = o_ptr + o_rows[:, None] * D + rd[None, :]  # [BLOCK_M, BLOCK_D]
    tl.store(o_ptrs, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=in_o)


def flash_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """o[B, L, H, d], causal: query i of each head looks at keys 0 to i. One layer of a prompt.

    q[B, L, H, d]; k, v[B, L, G, d]: query head h uses KV head h // (H / G). fp16 or bf16, softmax
    and sums in fp32, scale 1 / sqrt(d); any L >= 1; strides are free but for the last, which is 1.
    Raises ValueError or TypeError, with the remedy, for tensors that don't fit each other.
    """
    sizes, dtype = experiment.check(q=q, k=k, v=v)
    o = q.new_empty(q.shape)
    devices.launch(launches(plan(**sizes, dtype=dtype), q, k, v, o), q.device)
    return o


@dataclass(frozen=True)
class Plan:
    """block_m queries of a program, block_n keys at a time, head_dim padded to block_dim."""

    block_m: int
    block_n: int
    block_dim: int
    num_warps: int
    num_stages: int

    def programs(self, batch: int, length: int, heads: int) -> int:
        """One for each block of queries of each head."""
        return batch * heads * ceil_div(length, self.block_m)


# block_m, block_n, block_dim, warps, stages: what fits registers and shared memory. For each padded
# head_dim the tile of a long prompt comes first, then one with more programs for a short prompt. A
# tile of block_m rows does block_m FLOP for each byte of K and V that it loads, at two bytes a
# number, so a long prompt takes 128 rows wherever no register is spilled. With head_dim 64 two
# programs share a multiprocessor, and one's softmax hides the other's products; with 128 only one
# fits on Hopper and Blackwell. On Hopper it takes 128 keys at once: half as many waits for each product.
_LARGE_SHARED = (
    Plan(128, 64, 64, 4, 3),
    Plan(64, 64, 64, 4, 3),
    Plan(128, 128, 128, 8, 2),
    Plan(64, 64, 128, 4, 3),
    Plan(128, 32, 256, 8, 2),
)
# On sm_100 two stages leave Triton 3.7 and 3.8 without a fence between the first copy of V and the product
# that reads it (tests/kernels/executed/test_proxy_fences.py); with three they put it there.
_TENSOR_MEMORY = tuple(
    Plan(128, 64, 128, 8, 3) if plan == Plan(128, 128, 128, 8, 2) else plan for plan in _LARGE_SHARED
)
_MEDIUM_SHARED = (
    Plan(128, 64, 64, 4, 3),
    Plan(64, 64, 64, 4, 3),
    Plan(128, 64, 128, 8, 3),
    Plan(64, 64, 128, 8, 2),
    Plan(64, 64, 256, 8, 1),
)
_SMALL_SHARED = (
    Plan(128, 64, 64, 8, 2),
    Plan(64, 64, 64, 4, 2),
    Plan(128, 32, 128, 8, 2),
    Plan(64, 64, 128, 8, 2),
    Plan(64, 32, 256, 8, 1),
)
_CDNA = (
    Plan(128, 64, 64, 4, 1),
    Plan(64, 64, 64, 4, 1),
    Plan(128, 64, 128, 8, 1),
    Plan(64, 64, 128, 8, 1),
    Plan(64, 32, 256, 8, 1),
)
_VECTOR = (Plan(32, 32, 64, 4, 1), Plan(32, 32, 128, 8, 1), Plan(16, 32, 256, 8, 1))
_TABLE = {
    "sm_75": _VECTOR,
    "sm_80": _MEDIUM_SHARED,
    "sm_89": _SMALL_SHARED,
    "sm_90": _LARGE_SHARED,
    "sm_100": _TENSOR_MEMORY,
    "sm_120": _SMALL_SHARED,
    "gfx942": _CDNA,
}


DTYPES = ("bf16", "fp16")
CONDITIONS = {
    **GROUPED,
    "head_dim in (64, 96, 128, 256)": "there are tiles for 64, 96, 128 and 256; pad q, k and v with zeros to "
    "the next of these, and scale q",
}


@planned(dtypes=DTYPES, conditions=CONDITIONS)
def plan(
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    dtype: str | None = None,
    target: Target | str | None = None,
) -> Plan:
    """The tile for this head_dim on `target`: the largest that gives every multiprocessor a program.

    A padded head_dim takes a mask in every load, and the registers for it: the smaller tile.
    """
    padded = max(64, power_of_two(head_dim))
    tiles = [tile for tile in _TABLE[target.name] if tile.block_dim == padded]
    for tile in tiles if padded == head_dim else tiles[-1:]:
        if tile.block_m <= length and tile.programs(batch, length, heads) >= target.sm_count:
            break
    return tile


def launches(plan: Plan, q, k, v, o) -> list[Launch]:
    """The one launch; strides are those of the tensors."""
    batch, length, heads, head_dim = q.shape
    scale = math.log2(math.e) / math.sqrt(head_dim)  # with exp2, which the hardware has
    strides = [s for x in (q, k, v) for s in x.stride()[:3]]
    options = {
        "GROUP": heads // k.shape[2],
        "D": head_dim,
        "BLOCK_M": plan.block_m,
        "BLOCK_N": plan.block_n,
        "BLOCK_D": plan.block_dim,
        "STAGES": plan.num_stages,
        "num_warps": plan.num_warps,
        "num_stages": plan.num_stages,
    }
    args = (q, k, v, o, batch, length, heads, scale, *strides)
    grid = (plan.programs(batch, length, heads),)
    return [Launch(flash_attention_kernel, grid, args, options, "flash attention")]


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T / sqrt(d), causal) v in float64 by torch, 1,024 queries at a time."""
    batch, length, heads, head_dim = q.shape
    group = heads // k.shape[2]
    o = torch.empty(q.shape, dtype=torch.float64, device=q.device)
    positions = torch.arange(length, device=q.device)
    for b in range(batch):
        for h in range(heads):
            keys, values = (x[b, :, h // group].double() for x in (k, v))
            for rows in positions.split(1024):  # their scores are length * 1024 numbers of 8 bytes
                scores = q[b, rows, h].double() @ keys.T / math.sqrt(head_dim)
                scores = scores.masked_fill(positions[None, :] > rows[:, None], -math.inf)
                o[b, rows, h] = scores.softmax(-1) @ values
    return o


def issued(plan: Plan, *, itemsize: float = 2, **sizes: int) -> cost.Cost:
    """What `plan` issues: the tiles of the lower triangle, and beside them the softmax."""
    blocks = {"block_m": plan.block_m, "block_n": plan.block_n, "block_dim": plan.block_dim}
    products = cost.flash_attention_issued(**sizes, **blocks, itemsize=itemsize)
    visits = products.flops // (4 * plan.block_m * plan.block_n * plan.block_dim)
    # For a query, a visit scales its scores, subtracts the peak and adds them up (3 block_n - 1), scales
    # the peak and subtracts it from the last, rescales the total and adds to it (4), rescales o.
    per_visit = plan.block_m * (3 * plan.block_n + 3 + plan.block_dim)
    return replace(products, workspace_flops=visits * per_visit)


# a block of up to 128 tokens is addressed in 31 bits
QUERY = Tensor("batch length heads head_dim", side_by_side=True, within={"length": 2**24})
KEYS = replace(QUERY, shape="batch length kv_heads head_dim")

experiment = Experiment(
    name="flash_attention",
    sizes=("batch", "length", "heads", "kv_heads", "head_dim"),
    axis="length",
    tensors={"q": QUERY, "k": KEYS, "v": KEYS, "o": replace(QUERY, out=True)},
    run=flash_attention,
    reference=reference,
    cost=cost.flash_attention,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={
        "counted": {"batch": 1, "length": [64, 200, 300], "heads": 4, "kv_heads": 1, "head_dim": 64},
        "timed": {
            "batch": 1,
            "length": [512, 1024, 2048, 4096, 8192],
            "heads": 32,
            "kv_heads": 8,
            "head_dim": 128,
        },
        "compiled": {"batch": 1, "length": [512, 8192], "heads": 32, "kv_heads": 8, "head_dim": 128},
    },
    dtypes=DTYPES,
    conditions=CONDITIONS,
    edges=(
        (1, 1, 2, 1, 64),
        (1, 127, 2, 1, 64),
        (1, 300, 2, 1, 64),
        (2, 70, 3, 3, 96),
        (1, 70, 4, 2, 128),
        (1, 70, 3, 1, 256),
    ),
)

"""o = softmax(q k^T) v for one query a sequence, over its whole cache. Confirms chapter 06.

The query heads that share a KV head are the rows of one tile, so K and V are read once, whatever
the number of query heads. Long contexts are split: each program keeps a running maximum and sum
(the online softmax), writes its own result with the logarithm of its sum of exponentials, and a
second kernel weighs the parts by it ("flash-decoding"). That traffic is named.
"""

from dataclasses import replace
from functools import partial

import torch

from book import cost
from kernels.contract import devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Mixed
from kernels.contract.launch import Launch
from kernels.contract.tensors import Tensor
from kernels.tiling import decode
from kernels.tiling.decode import Plan

LOG2_E = 1.4426950408889634  # the kernels use powers of two: exp(x) = exp2(x * LOG2_E)


@triton.jit
def decode_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, partials_ptr, lse_ptr, lengths_ptr,
    scale, context, kv_heads,
    stride_qb, stride_qh,
    stride_kb, stride_kh, stride_ks, stride_vb, stride_vh, stride_vs,
    DIM: tl.constexpr, GROUP: tl.constexpr, PACKED: tl.constexpr, RAGGED: tl.constexpr,
    SPLITS: tl.constexpr, SPLIT_CONTEXT: tl.constexpr,
    BLOCK_HEADS: tl.constexpr, BLOCK_CONTEXT: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    # Programs that read the same piece of the cache are neighbours; splits come next.
    HEAD_TILES: tl.constexpr = (GROUP + PACKED - 1) // PACKED
    program = tl.program_id(0)
    tile = program % HEAD_TILES
    split = program // HEAD_TILES % SPLITS
    sequence = (program // (HEAD_TILES * SPLITS) // kv_heads).to(tl.int64)
    kv_head = (program // (HEAD_TILES * SPLITS) % kv_heads).to(tl.int64)
    length = context
    if RAGGED:
        length = tl.load(lengths_ptr + sequence).to(tl.int64)
        length = tl.minimum(length, context).to(tl.int32)
    start = split * SPLIT_CONTEXT
    if SPLITS > 1:  # noqa: SIM102 - known when compiling, as the next line is not
        if start >= length:
            return
    stop = tl.minimum(start + SPLIT_CONTEXT, length)

    row = tile * PACKED + tl.arange(0, BLOCK_HEADS)  # [BLOCK_HEADS] of the group
    rd = tl.arange(0, BLOCK_DIM)  # [BLOCK_DIM]
    rs = tl.arange(0, BLOCK_CONTEXT)  # [BLOCK_CONTEXT] from `start` on
    # [BLOCK_HEADS]: the others are padding
    in_heads = (tl.arange(0, BLOCK_HEADS) < PACKED) & (row < GROUP)
    head = kv_head * GROUP + row  # [BLOCK_HEADS] of all query heads
    in_q = in_heads[:, None] & (rd < DIM)[None, :]  # [BLOCK_HEADS, BLOCK_DIM]
    q_ptrs = q_ptr + sequence * stride_qb + head[:, None] * stride_qh + rd[None, :]
    q = tl.load(q_ptrs, mask=in_q, other=0.0)  # [BLOCK_HEADS, BLOCK_DIM]
    first = tl.cast(start, tl.int64)
    k_ptr += sequence * stride_kb + kv_head * stride_kh + first * stride_ks
    v_ptr += sequence * stride_vb + kv_head * stride_vh + first * stride_vs
    k_offsets = rs[None, :] * stride_ks + rd[:, None]  # [BLOCK_DIM, BLOCK_CONTEXT]
    v_offsets = rs[:, None] * stride_vs + rd[None, :]  # [BLOCK_CONTEXT, BLOCK_DIM]

    top = tl.full((BLOCK_HEADS,), float("-inf"), tl.float32)  # running maximum score
    # Running sums of 2^(score - top), one for each place in a block: in the loop each
    # thread adds to its own, after the loop they are added up, once.
    totals = tl.zeros((BLOCK_HEADS, BLOCK_CONTEXT), tl.float32)
    acc = tl.zeros((BLOCK_HEADS, BLOCK_DIM), tl.float32)  # the same sum, of v's rows
    for block in range(start, stop, BLOCK_CONTEXT):
        here = block + rs < stop  # [BLOCK_CONTEXT]
        in_k = here[None, :] & (rd < DIM)[:, None]  # [BLOCK_DIM, BLOCK_CONTEXT]
        k = tl.load(k_ptr + k_offsets, mask=in_k, other=0.0)
        in_v = here[:, None] & (rd < DIM)[None, :]  # [BLOCK_CONTEXT, BLOCK_DIM]
        v = tl.load(v_ptr + v_offsets, mask=in_v, other=0.0)
        scores = tl.dot(q, k.to(q.dtype)) * scale  # [BLOCK_HEADS, BLOCK_CONTEXT]
        scores = tl.where(here[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        fade = tl.exp2(top - higher)  # what earlier sums are worth under a new maximum
        p = tl.exp2(scores - higher[:, None])
        totals = totals * fade[:, None] + p
        acc = acc * fade[:, None]
        acc = tl.dot(p.to(q.dtype), v.to(q.dtype), acc)
        top = higher
        k_ptr += BLOCK_CONTEXT * stride_ks
        v_ptr += BLOCK_CONTEXT * stride_vs

    total = tl.sum(totals, 1)  # [BLOCK_HEADS]
    # An empty sequence looks at nothing: zeros.
    o = acc / tl.where(total > 0, total, 1.0)[:, None]
    out_row = sequence * kv_heads * GROUP + head  # [BLOCK_HEADS] of batch * heads rows
    if SPLITS == 1:
        o_ptrs = o_ptr + out_row[:, None] * DIM + rd[None, :]
        tl.store(o_ptrs, o.to(o_ptr.dtype.element_ty), mask=in_q)
    else:
        part = out_row * SPLITS + split  # [BLOCK_HEADS] of the rows of partial results
        tl.store(partials_ptr + part[:, None] * DIM + rd[None, :], o, mask=in_q)
        tl.store(lse_ptr + part, top + tl.log2(total), mask=in_heads)


@triton.jit
def merge_kernel(
    partials_ptr, lse_ptr, lengths_ptr, o_ptr, context, heads,
    DIM: tl.constexpr, DIM_BLOCKS: tl.constexpr, RAGGED: tl.constexpr,
    SPLITS: tl.constexpr, SPLIT_CONTEXT: tl.constexpr,
    BLOCK_SPLITS: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) // DIM_BLOCKS  # one query head of one sequence
    # rd [BLOCK_DIM] of DIM, rp [BLOCK_SPLITS] of the splits
    rd = tl.program_id(0) % DIM_BLOCKS * BLOCK_DIM + tl.arange(0, BLOCK_DIM)
    rp = tl.arange(0, BLOCK_SPLITS)
    length = context
    if RAGGED:
        length = tl.load(lengths_ptr + row // heads).to(tl.int64)
        length = tl.minimum(length, context).to(tl.int32)
    parts = (length + SPLIT_CONTEXT - 1) // SPLIT_CONTEXT  # programs that had tokens
    here = rp < parts
    # Far below any score but finite: with no part, infinities would subtract to NaN.
    lse = tl.load(lse_ptr + row * SPLITS + rp, mask=here, other=-1e38)
    partials_ptrs = partials_ptr + (row * SPLITS + rp)[:, None] * DIM + rd[None, :]
    in_part = here[:, None] & (rd < DIM)[None, :]  # [BLOCK_SPLITS, BLOCK_DIM]
    partials = tl.load(partials_ptrs, mask=in_part, other=0.0)
    # weights [BLOCK_SPLITS], the largest is 1
    weights = tl.where(here, tl.exp2(lse - tl.max(lse, 0)), 0.0)
    total = tl.sum(weights, 0)
    o = tl.sum(weights[:, None] * partials, 0) / tl.where(total > 0, total, 1.0)
    tl.store(o_ptr + row * DIM + rd, o.to(o_ptr.dtype.element_ty), mask=rd < DIM)


def decode_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    lengths: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    packed: bool = True,
) -> torch.Tensor:
    """o[batch, heads, head_dim] = softmax(scale * q k^T) v, each query over its sequence's cache.

    q[batch, heads, head_dim] in fp16 or bf16; k and v[batch, kv_heads, context, head_dim] in the same
    dtype or in torch.float8_e4m3fn, of which only rows of head_dim must lie side by side. Query head
    h reads KV head h // (heads // kv_heads). lengths[batch], int32 or int64: the tokens that count
    in each cache (none gives zeros, more than context counts as context); None: all of them. Pass
    k[:, :, :longest] if the caches are far longer than any sequence. scale: head_dim ** -0.5 by
    default. packed=False gives every query head its own read of K and V: to show what that costs.

    Raises ValueError or TypeError, with the remedy, for tensors it cannot attend to.
    """
    sizes, dtype = experiment.check(q=q, k=k, v=v, lengths=lengths)
    o = q.new_empty(q.shape)
    chosen = plan(**sizes, dtype=dtype, packed=packed)
    devices.launch(launches(chosen, q, k, v, o, lengths, scale), q.device)
    return o


def unpacked(q, k, v, lengths=None, *, scale=None) -> torch.Tensor:
    """`decode_attention` with a program, and a read of K and V, for every query head."""
    return decode_attention(q, k, v, lengths, scale=scale, packed=False)


plan = decode.plan


def launches(plan: Plan, q, k, v, o, lengths=None, scale: float | None = None) -> list[Launch]:
    """What `plan` starts for these tensors; with splits, the workspace is made here."""
    (batch, heads, dim), (_, kv_heads, context, _) = q.shape, k.shape
    partials = lse = o
    if plan.splits > 1:
        rows = batch * heads * plan.splits
        partials = torch.empty(rows, dim, dtype=torch.float32, device=o.device)
        lse = torch.empty(rows, dtype=torch.float32, device=o.device)
    scale = LOG2_E * (dim**-0.5 if scale is None else scale)
    strides = (*q.stride()[:2], *k.stride()[:3], *v.stride()[:3])
    table = q if lengths is None else lengths
    args = (q, k, v, o, partials, lse, table, scale, context, kv_heads, *strides)
    fixed = {"DIM": dim, "RAGGED": lengths is not None}
    options = {**fixed, "GROUP": heads // kv_heads, **plan.options()}
    grid = (plan.programs(batch, heads, kv_heads),)
    main = Launch(decode_attention_kernel, grid, args, options, "decode attention")
    if plan.splits == 1:
        return [main]
    # Two lanes hold each sum and both store it. Fused with an addition, a product isn't rounded, so what one
    # of them adds up would differ in the last bit from the other's (Triton 3.8 fuses so).
    options = {**fixed, **plan.merge_options(), "enable_fp_fusion": False}
    options["DIM_BLOCKS"] = plan.block_dim // options["BLOCK_DIM"]
    args = (partials, lse, table, o, context, heads)
    return [main, Launch(merge_kernel, (batch * heads * options["DIM_BLOCKS"],), args, options, "merge")]


def reference(q, k, v, lengths=None) -> torch.Tensor:
    """Softmax attention in float64, one sequence after the other."""
    group, out = q.shape[1] // k.shape[1], []
    for i in range(q.shape[0]):
        tokens = k.shape[2] if lengths is None else int(lengths[i])
        keys, values = (x[i, :, :tokens].double() for x in (k, v))  # [kv_heads, tokens, head_dim]
        queries = q[i].double().unflatten(0, (-1, group))  # [kv_heads, group, head_dim]
        weights = (queries @ keys.mT * q.shape[-1] ** -0.5).softmax(-1)
        out.append((weights @ values).flatten(0, 1))
    return torch.stack(out)


def ragged_lengths(batch: int, context: int) -> list[int]:
    """A length for each sequence, spread over 1 ... context (by the golden ratio, so none repeat soon)."""
    return [1 + int(context * ((i + 1) * 0.6180339887 % 1)) for i in range(batch)]


QUERY = Tensor("batch heads head_dim", side_by_side=True)
# a block of up to 64 tokens is addressed in 31 bits
CACHE = Tensor("batch kv_heads context head_dim", "kv", side_by_side=True, within={"context": 2**24})
LENGTHS = Tensor("batch", "int32", table=True, optional=True, side_by_side=True)

experiment = Experiment(
    name="decode_attention",
    sizes=("batch", "heads", "kv_heads", "head_dim", "context"),
    axis="context",
    tensors={"q": QUERY, "k": CACHE, "v": CACHE, "o": replace(QUERY, out=True), "lengths": LENGTHS},
    run=decode_attention,
    reference=reference,
    cost=cost.decode_attention,
    plan=plan,
    issued=decode.issued,
    launches=launches,
    sweep={
        "counted": {"batch": 2, "heads": 8, "kv_heads": 2, "head_dim": 64, "context": [128, 256, 512]},
        "timed": {
            "batch": 64,
            "heads": 32,
            "kv_heads": 8,
            "head_dim": 128,
            "context": [512, 2048, 4096, 8192],
        },
        "compiled": {"batch": 128, "heads": 32, "kv_heads": 8, "head_dim": 128, "context": [4096, 8192]},
    },
    dtypes=decode.DTYPES,
    mixed={"fp8": Mixed(("bf16", "fp16"), {"kv": "fp8"})},  # only the cache: products have 16 bits
    conditions=decode.CONDITIONS,
    edges=(
        (2, 6, 2, 96, 131),  # padded dimensions, three heads on 16 rows
        (3, 4, 4, 80, 37),  # no groups, shorter than a block
        (1, 17, 1, 64, 129),  # one head more than the smallest tile
        (1, 71, 1, 32, 200),  # more heads than the largest tile: two tiles
        (1, 4, 2, 256, 77),
        (2, 8, 1, 128, 300),
    ),
)

unpacked_experiment = replace(experiment, variant="unpacked", run=unpacked, plan=partial(plan, packed=False))

# The same, swept over the query heads: K and V are read once however many of them share one.
heads_experiment = replace(
    experiment,
    variant="heads",
    axis="heads",
    edges=(),
    sweep={
        "counted": {"batch": 2, "heads": [2, 4, 16], "kv_heads": 2, "head_dim": 64, "context": 128},
        "timed": {"batch": 64, "heads": [8, 16, 32, 64], "kv_heads": 8, "head_dim": 128, "context": 4096},
        "compiled": {"batch": 64, "heads": 64, "kv_heads": 8, "head_dim": 128, "context": 4096},
    },
)

READ = replace(CACHE, reads="tokens kv_heads head_dim")
ragged_experiment = replace(
    experiment,
    variant="ragged",
    tensors={
        **experiment.tensors,
        "k": READ,
        "v": READ,
        "lengths": replace(
            LENGTHS,
            optional=False,
            fill=lambda generator, shape, sizes: torch.tensor(
                ragged_lengths(sizes["batch"], sizes["context"]), device=generator.device
            ),
        ),
    },
    derived={"tokens": lambda *, batch, context, **_: sum(ragged_lengths(batch, context))},
    run=lambda q, k, v, lengths: decode_attention(q, k, v, lengths),
    cost=lambda *, batch, context, **others: cost.decode_attention(
        batch, tokens=sum(ragged_lengths(batch, context)), **others
    ),
    issued=lambda plan, *, batch, context, **others: decode.issued(
        plan, batch=batch, context=ragged_lengths(batch, context), lengths_itemsize=4, **others
    ),
)

"""What tiled attention kernels issue: padded FLOPs, and the workspace of split-KV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from book.cost.attention import decode_attention, flash_attention, kv_append, unfused_attention
from book.cost.base import FP32_BYTES, Cost, Number, ceil_div
from book.cost.matrix import linear_issued


def decode_attention_issued(
    batch: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    context: int | Sequence[int],
    *,
    block_context: int,
    block_heads: int,
    packed: int | None = None,
    split_context: int | None = None,
    block_dim: int | None = None,
    itemsize: int = 2,
    kv_itemsize: Number | None = None,
    lengths_itemsize: int = 0,
    alu_flops: int = 0,
) -> Cost:
    """What a split-KV decode kernel issues for `decode_attention`.

    context: one length, or one for each sequence. `packed` query heads of a KV head (by default as
    many as fit) share a tile of `block_heads` rows; head_dim is padded to `block_dim` (by default it
    is not). A program takes up to `split_context` tokens of one sequence in blocks of `block_context` and
    stops at the sequence's end. FLOPs are those of whole tiles, 4 a score and dimension.

    With a split_context every program writes its output in fp32 with the log of its sum of
    exponentials ("partials" and "lse"), and a second kernel reads them back: the price of
    occupancy. split_context=None: one program a sequence, no workspace.
    lengths_itemsize: bytes of each entry in a table of lengths ("lengths"), 0 if there is none.
    alu_flops: element-wise FLOPs of softmax and merge, reported in `workspace_flops`.
    """
    lengths = [context] * batch if isinstance(context, int) else [int(s) for s in context]
    if len(lengths) != batch:
        raise ValueError(
            f"context = {len(lengths)} lengths for batch = {batch}; give one length for each sequence."
        )
    if split_context is not None and split_context % block_context:
        raise ValueError(
            f"split_context = {split_context}: must be a multiple of block_context = {block_context}."
        )
    useful = decode_attention(
        batch,
        heads,
        kv_heads,
        head_dim,
        itemsize=itemsize,
        kv_itemsize=kv_itemsize,
        tokens=sum(lengths),
    )
    rows = kv_heads * ceil_div(heads // kv_heads, packed or block_heads) * block_heads
    scores = rows * sum(ceil_div(s, block_context) * block_context for s in lengths)
    extra: dict[str, int] = {}
    if split_context is not None:
        outputs = heads * sum(ceil_div(s, split_context) for s in lengths)
        extra = {"partials": outputs * head_dim * FP32_BYTES, "lse": outputs * FP32_BYTES}
    table = {"lengths": batch * lengths_itemsize} if lengths_itemsize else {}
    return Cost(
        4 * scores * (head_dim if block_dim is None else block_dim),
        {**useful.reads, **extra, **table},
        {**useful.writes, **extra},
        frozenset({*extra, *table}),
        alu_flops,
    )


def kv_append_issued(
    tokens: int,
    kv_heads: int,
    head_dim: int,
    itemsize: int = 2,
    kv_itemsize: Number | None = None,
    *,
    positions_itemsize: int = 4,
) -> Cost:
    """What a kernel issues for `kv_append`: the same, and a table of places in the cache.

    "positions" says where each sequence's new token goes; a cache that all sequences share in step
    would need none, so it is named.
    """
    useful = kv_append(tokens, kv_heads, head_dim, itemsize, kv_itemsize)
    table = {"positions": tokens * positions_itemsize}
    return replace(useful, reads={**useful.reads, **table}, workspace=frozenset(table))


def flash_attention_issued(
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    *,
    block_m: int,
    block_n: int,
    block_dim: int | None = None,
    itemsize: int = 2,
    causal: bool = True,
    alu_flops: int = 0,
) -> Cost:
    """What a tiled forward kernel issues for `flash_attention`: blocks of queries times of keys.

    A block of `block_m` queries looks at every block of `block_n` keys that holds one it may see;
    a block that the diagonal crosses is computed whole. Bytes are those of the formula.
    """
    useful = flash_attention(batch, length, heads, kv_heads, head_dim, itemsize, causal)
    starts = range(0, length, block_m)
    seen = (min(start + block_m, length) if causal else length for start in starts)
    scores = block_m * sum(ceil_div(keys, block_n) * block_n for keys in seen)
    flops = 4 * batch * heads * scores * (head_dim if block_dim is None else block_dim)
    return replace(useful, flops=flops, workspace_flops=alu_flops)


def unfused_attention_issued(
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    *,
    scores: Mapping[str, int],
    weighted_sum: Mapping[str, int],
    itemsize: int = 2,
    causal: bool = True,
    score_itemsize: int | None = None,
    alu_flops: int = 0,
) -> Cost:
    """What two tiled products and a softmax issue for `unfused_attention`: the whole square.

    scores, weighted_sum: the tiles of q k^T and of p v, as `linear_issued` takes them (block_m,
    block_n, block_k). A causal mask shortens neither product, so at least twice the useful FLOPs are
    issued. alu_flops: those of scaling and softmax, reported in `workspace_flops`.
    """
    useful = unfused_attention(
        batch, length, heads, kv_heads, head_dim, itemsize, causal, score_itemsize=score_itemsize
    )
    first = linear_issued(length, head_dim, length, **scores)
    second = linear_issued(length, length, head_dim, **weighted_sum)
    return replace(useful, flops=batch * heads * (first.flops + second.flops), workspace_flops=alu_flops)

"""One layer's decode step (chapter 07): its parts, each from its own module, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from book.cost.attention import decode_attention, kv_append
from book.cost.base import Cost, Number
from book.cost.matrix import linear
from book.cost.mlp import mlp

# What one part of the layer leaves in memory for the next: a row of each for every sequence.
INTERMEDIATES = frozenset({"qkv", "k", "v", "o", "h", "hidden"})


def decode_layer(
    batch: Number,
    d_model: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    d_ff: Number,
    context: Number,
    itemsize: Number = 2,
    kv_itemsize: Number | None = None,
    weight_itemsize: Number | None = None,
    *,
    fused: Literal["all", "none"] = "all",
) -> Cost:
    """One new token for each of `batch` sequences through one layer: projections, cache, MLP.

    The sum of five costs: `linear` (q, k and v in one product, w_qkv[d_model, (H + 2G) d]),
    `kv_append`, `decode_attention` over `context` tokens, `linear` (w_o[H d, d_model]), `mlp`. The
    weights are read once a step, the cache once a sequence. RMSNorm, RoPE and the residual sums are
    left out: element by element on a row of d_model a sequence, which fused kernels never store.
    itemsize: of activations; kv_itemsize: of the cache; weight_itemsize: of the weights; by default
    all the same.

    fused="none": with what the parts hand to each other, written and read ("qkv", of which "k" and
    "v" are views, "o", "h", "hidden"), named as workspace. fused="all": without, the least there is.
    """
    if fused not in ("all", "none"):
        raise ValueError(f"fused = {fused!r}: not known; use all or none.")
    columns = (heads + 2 * kv_heads) * head_dim
    parts = (
        linear(batch, d_model, columns, itemsize, weight_itemsize).renamed(w="w_qkv", y="qkv"),
        kv_append(batch, kv_heads, head_dim, itemsize, kv_itemsize),
        decode_attention(batch, heads, kv_heads, head_dim, context, itemsize, kv_itemsize).renamed(
            q="qkv", k="k_cache", v="v_cache"
        ),
        linear(batch, heads * head_dim, d_model, itemsize, weight_itemsize).renamed(x="o", w="w_o", y="h"),
        mlp(batch, d_model, d_ff, itemsize, weight_itemsize, fused="gate_up").renamed(x="h"),
    )
    total = sum(parts[1:], parts[0])
    if fused == "none":
        return replace(total, workspace=INTERMEDIATES)
    reads, writes = (
        {name: size for name, size in terms.items() if name not in INTERMEDIATES}
        for terms in (total.reads, total.writes)
    )
    return replace(total, reads=reads, writes=writes, workspace=frozenset())

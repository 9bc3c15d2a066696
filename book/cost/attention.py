"""Attention (chapters 05, 06, 08): appending to the cache, reading it, and attending to a prompt.

Symbols: H heads, G kv_heads, d head_dim, S context, L length. FLOPs are those of the two products
q k^T and p v; the softmax between them (a few operations a score, on other units) is left out.
"""

from __future__ import annotations

from book.cost.base import Cost, Number, positive


def kv_append(
    tokens: Number,
    kv_heads: Number,
    head_dim: Number,
    itemsize: Number = 2,
    kv_itemsize: Number | None = None,
) -> Cost:
    """One layer's K and V of `tokens` new tokens, read from the projections, written to the cache.

    What is written, 2 * tokens * kv_heads * head_dim * kv_itemsize bytes, is a layer's share of
    the cache: kappa / N for each token. itemsize: of the new K and V; kv_itemsize: of the cache,
    by default the same.
    """
    kv_itemsize = itemsize if kv_itemsize is None else kv_itemsize
    positive(tokens=tokens, kv_heads=kv_heads, head_dim=head_dim, itemsize=itemsize, kv_itemsize=kv_itemsize)
    new, cached = (tokens * kv_heads * head_dim * s for s in (itemsize, kv_itemsize))
    return Cost(0, {"k": new, "v": new}, {"k_cache": cached, "v_cache": cached})


def decode_attention(
    batch: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    context: Number | None = None,
    itemsize: Number = 2,
    kv_itemsize: Number | None = None,
    *,
    tokens: Number | None = None,
) -> Cost:
    """o[batch, heads, head_dim]: one query for each sequence looks at its whole cache. One layer.

    context: tokens in each sequence's cache. For sequences of different lengths give `tokens`
    instead, the lengths' sum; only that matters. itemsize: of q and o; kv_itemsize: of the cache,
    by default the same.

    4 * H * d FLOPs and 2 * G * d * kv_itemsize bytes for every cached token. The intensity here is
    the full one, with q and o in it; what it tends to in a long context is `kv_intensity`.
    """
    if (context is None) == (tokens is None):
        raise ValueError(
            f"context = {context}, tokens = {tokens}: give one of them, the length of each sequence or "
            "the sum of all."
        )
    tokens = batch * context if tokens is None else tokens
    kv_itemsize = itemsize if kv_itemsize is None else kv_itemsize
    positive(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        tokens=tokens,
        itemsize=itemsize,
        kv_itemsize=kv_itemsize,
    )
    query, cached = batch * heads * head_dim * itemsize, tokens * kv_heads * head_dim * kv_itemsize
    return Cost(4 * heads * head_dim * tokens, {"q": query, "k": cached, "v": cached}, {"o": query})


def kv_intensity(heads: Number, kv_heads: Number, kv_itemsize: Number = 2) -> Number:
    """2 H / (G s), FLOP per byte of cache: decode attention with q and o forgotten (chapter 06).

    No batch, no context and no head_dim in it; at two bytes it is H / G.
    """
    positive(heads=heads, kv_heads=kv_heads, kv_itemsize=kv_itemsize)
    return 2 * heads / (kv_heads * kv_itemsize)


def mla_decode(
    batch: Number,
    heads: Number,
    latent: Number,
    rope: Number,
    context: Number,
    itemsize: Number = 2,
    kv_itemsize: Number | None = None,
) -> Cost:
    """Decode attention over a latent cache (DeepSeek's MLA), with the up-projections absorbed.

    latent: kv_lora_rank; rope: qk_rope_head_dim. The cache holds latent + rope numbers a token,
    shared by all heads and read once: scores use all of them, values the latent part. FLOPs:
    2 * H * (2 * latent + rope) a token.
    """
    kv_itemsize = itemsize if kv_itemsize is None else kv_itemsize
    positive(batch=batch, heads=heads, latent=latent, rope=rope, context=context, kv_itemsize=kv_itemsize)
    return Cost(
        2 * batch * heads * (2 * latent + rope) * context,
        {
            "q": batch * heads * (latent + rope) * itemsize,
            "kv": batch * context * (latent + rope) * kv_itemsize,
        },
        {"o": batch * heads * latent * itemsize},
    )


def flash_attention(
    batch: Number,
    length: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    itemsize: Number = 2,
    causal: bool = True,
) -> Cost:
    """o[batch, length, heads, head_dim] of a prompt; scores never leave the chip. One layer.

    FLOPs: 4 * H * d * L^2 for each sequence, and half of it if causal. That is the field's count;
    the exact triangle has L + 1 scores for every L of it. Bytes: q, k, v and o once.
    """
    positive(batch=batch, length=length, heads=heads, kv_heads=kv_heads, head_dim=head_dim, itemsize=itemsize)
    query = batch * length * heads * head_dim * itemsize
    cached = batch * length * kv_heads * head_dim * itemsize
    flops = (2 if causal else 4) * batch * heads * head_dim * length * length
    return Cost(flops, {"q": query, "k": cached, "v": cached}, {"o": query})


def unfused_attention(
    batch: Number,
    length: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    itemsize: Number = 2,
    causal: bool = True,
    *,
    score_itemsize: Number | None = None,
) -> Cost:
    """The same result by three kernels: q k^T, softmax, p v, with an L x L matrix between them.

    "scores" [batch, heads, L, L] is written by the first and read by the second, "probabilities"
    of the same size by the second and the third: workspace, 4 * H * L^2 * score_itemsize bytes in
    all for each sequence. The whole square, for a mask hides scores and saves no memory. `flops`
    are the useful ones, as in `flash_attention`.
    """
    fused = flash_attention(batch, length, heads, kv_heads, head_dim, itemsize, causal)
    square = batch * heads * length * length * (itemsize if score_itemsize is None else score_itemsize)
    between = {"scores": square, "probabilities": square}
    return Cost(fused.flops, {**fused.reads, **between}, {**fused.writes, **between}, frozenset(between))

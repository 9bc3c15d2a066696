"""The short formulas of chapters 04 to 09, in the letters of the text.

For derivations and sliders: everything is an argument, so symbols go in and the formula comes out.
They hold for models whose layers are all alike; `decode_step`, `prefill` and their neighbours in
this package give the same numbers for those, and look after windows, latents and experts too.
"""

from __future__ import annotations

from book import cost
from book.cost import Cost, Number
from book.cost.base import ceil_div

FRACTION = 0.9  # of a card's memory an engine takes for itself: vLLM's gpu_memory_utilization by default


def kv_per_token(layers: Number, kv_heads: Number, head_dim: Number, kv_itemsize: Number = 2) -> Number:
    """kappa = 2 D G d s, bytes of cache a token."""
    return layers * sum(cost.kv_append(1, kv_heads, head_dim, kv_itemsize).writes.values())


def decode_step(
    parameters: Number,
    weight_bytes: Number,
    layers: Number,
    heads: Number,
    head_dim: Number,
    kv_per_token: Number,
    batch: Number,
    context: Number,
) -> Cost:
    """2 P B + 4 D H d S B FLOPs for W + B S kappa bytes; the intensity is the blended one."""
    attention = cost.decode_attention(batch, heads, heads, head_dim, context).flops
    return Cost(
        cost.weight_flops(parameters, batch) + layers * attention,
        {"weights": weight_bytes, "kv": batch * context * kv_per_token},
    )


def prefill_flops(
    parameters: Number, layers: Number, heads: Number, head_dim: Number, length: Number
) -> Number:
    """2 P L + 2 D H d L^2, of one prompt."""
    attention = cost.flash_attention(1, length, heads, heads, head_dim).flops
    return cost.weight_flops(parameters, length) + layers * attention


def attention_equals_linear(parameters: Number, layers: Number, heads: Number, head_dim: Number) -> Number:
    """L = P / (D H d): the prompt length at which both terms of `prefill_flops` are equal."""
    square = layers * cost.flash_attention(1, 1, heads, heads, head_dim).flops
    return cost.weight_flops(parameters) / square


def crossover_context(weight_bytes: Number, batch: Number, kv_per_token: Number) -> Number:
    """S = W / (B kappa): the context at which a step reads as much cache as weights."""
    return weight_bytes / (batch * kv_per_token)


def throughput_ceiling(bandwidth: Number, context: Number, kv_per_token: Number) -> Number:
    """beta / (S kappa), tokens/s: what memory allows an endless batch."""
    return bandwidth / (context * kv_per_token)


def kv_share(kv_heads: Number, gpus: Number) -> Number:
    """The part of a cache that each of `gpus` cards holds: ceil(G / n) of G heads, copied where n > G."""
    return ceil_div(kv_heads, gpus) / kv_heads


def uneven(heads: Number, kv_heads: Number, gpus: Number) -> Number:
    """0 where tensor parallelism can deal the heads out to `gpus` cards, more where it can't.

    Query heads must come out even; KV heads must too, or each be copied to the same number of cards.
    """
    return heads % gpus + (kv_heads % gpus) * (gpus % kv_heads)


def sequences(
    capacity: Number, weight_bytes: Number, reserve: Number, kv_per_token: Number, context: Number
) -> Number:
    """B_max = (C - W - reserve) / (kappa S), not rounded."""
    return (capacity - weight_bytes - reserve) / (kv_per_token * context)

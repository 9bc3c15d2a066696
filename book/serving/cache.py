"""The KV cache of a model: bytes a token, bytes a sequence, and how many sequences fit."""

from __future__ import annotations

from collections.abc import Callable

from book import cost
from book.catalog import Model
from book.cost import Number
from book.roofline import least, most
from book.serving import short
from book.serving.deployment import Deployment, room
from book.serving.weights import weight_bytes


def kv_bytes_per_token(model: Model, kv_itemsize: Number = 2) -> Number:
    """kappa: bytes that one token leaves in the caches of all layers.

    2 * N * G * d * s; of latent attention N * (latent + rope) * s, for there is one latent and no V.
    """
    return model.layers * _layer_bytes(model, kv_itemsize)


def kv_bytes(model: Model, context: Number, kv_itemsize: Number = 2) -> Number:
    """Bytes of one sequence's cache. A windowed layer keeps a window of tokens and no more."""
    return _layer_bytes(model, kv_itemsize) * sum(
        layers * tokens for layers, tokens in _by_layer(model, context, least) if layers
    )


def contexts(model: Model, context: Number) -> tuple[tuple[int, Number], ...]:
    """(layers, tokens that each of them looks back on) at this context: all layers, or two kinds.

    A sliding window holds the last tokens, never more than its size. A chunked one starts anew at
    every multiple of its size: the last chunk, full or begun.
    """
    chunked = model.attention.window_kind == "chunked"
    return _by_layer(model, context, _in_chunk if chunked else least)


def _by_layer(
    model: Model, context: Number, windowed: Callable[[Number, Number], Number]
) -> tuple[tuple[int, Number], ...]:
    a = model.attention
    if not a.window:
        return ((model.layers, context),)
    return ((a.global_layers, context), (a.window_layers, windowed(context, a.window)))


def _in_chunk(context: Number, chunk: Number) -> Number:
    """Tokens of the last chunk: from 1 to `chunk`."""
    return (context - 1) % chunk + 1


def causal_pairs(model: Model, length: Number) -> tuple[tuple[int, Number], ...]:
    """(layers, pairs of a token with one that it looks back on, as a multiple of those of full causal
    attention over `length`): 1 where a layer has no window. With tokens counted as an area, L^2 / 2.
    """
    a = model.attention
    if not a.window:
        return ((model.layers, 1),)
    if a.window_kind == "chunked":  # whole chunks and the last one, each a square of its own
        last = _in_chunk(length, a.window)
        seen = ((length - last) * a.window + last**2) / length**2
    else:
        share = least(length, a.window) / length
        seen = share * (2 - share)
    return ((a.global_layers, 1), (a.window_layers, seen))


def _layer_bytes(model: Model, kv_itemsize: Number) -> Number:
    a = model.attention
    if a.type == "mla":
        return _latent(model, 1, 1, kv_itemsize).reads["kv"]
    return short.kv_per_token(1, model.kv_heads, model.head_dim, kv_itemsize)


def _latent(model: Model, batch: Number, context: Number, kv_itemsize: Number) -> cost.Cost:
    a = model.attention
    return cost.mla_decode(
        batch, model.heads, a.kv_lora_rank, a.qk_rope_head_dim, context, kv_itemsize=kv_itemsize
    )


def attention_of_a_layer(model: Model, batch: Number, context: Number, kv_itemsize: Number) -> cost.Cost:
    """One layer's attention of a decode step, with the cache as its only traffic: {"kv": bytes}."""
    if model.attention.type == "mla":
        c = _latent(model, batch, context, kv_itemsize)
        return cost.Cost(c.flops, {"kv": c.reads["kv"]})
    c = cost.decode_attention(
        batch, model.heads, model.kv_heads, model.head_dim, context, kv_itemsize=kv_itemsize
    )
    return cost.Cost(c.flops, {"kv": c.reads["k"] + c.reads["v"]})


def kv_share(model: Model, gpus: Number) -> Number:
    """The part of every sequence's cache that each of `gpus` cards holds.

    Whole KV heads are dealt out, and copied where there are more cards than heads. A latent serves
    all heads, so every card holds all of it.
    """
    if model.attention.type == "mla":
        return 1
    return short.kv_share(model.kv_heads, gpus)


def cache_bytes(
    d: Deployment, *, memory: Number | None = None, fraction: Number = short.FRACTION, reserve: Number = 0
) -> Number:
    """Bytes of one card that are left for the cache; 0 if the weights do not fit.

    memory: of a card; by default `Accelerator.usable`, whose docstring has the rule.
    fraction: how much of it the engine may use (vLLM's gpu_memory_utilization is 0.9 by default).
    reserve: bytes for activations and graphs on top of that.

    Raises ValueError for a memory, a fraction or a reserve that can't be.
    """
    memory = d.accelerator.usable if memory is None else memory
    room(memory, fraction, reserve)
    return most(0, memory * fraction - reserve - weight_bytes(d.model, d.weight_itemsize) / d.gpus)


def kv_capacity(d: Deployment, **memory: Number) -> Number:
    """Tokens that the cache can hold, over all sequences. Arguments as for `cache_bytes`.

    For models with sliding windows this is for contexts within the window; see `sequences`.
    """
    per_token = kv_bytes_per_token(d.model, d.kv_itemsize) * kv_share(d.model, d.gpus)
    return cache_bytes(d, **memory) / per_token


def sequences(d: Deployment, context: Number, **memory: Number) -> Number:
    """B_max: whole sequences of `context` tokens that fit at once. Arguments as for `cache_bytes`."""
    return cache_bytes(d, **memory) // _each(d, context)


def mean_sequences(d: Deployment, context: Number, **memory: Number) -> Number:
    """B_max with its fraction, for a mean over sequences that hold `context` tokens on average."""
    return cache_bytes(d, **memory) / _each(d, context)


def _each(d: Deployment, context: Number) -> Number:
    """Bytes of each card that a sequence takes."""
    return kv_bytes(d.model, context, d.kv_itemsize) * kv_share(d.model, d.gpus)

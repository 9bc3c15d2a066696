"""Chapters 05 to 09: the cache, attention over it and over a prompt, what a user waits for."""

from __future__ import annotations

from dataclasses import replace

from book import catalog, cost, serving
from book.claims.registry import expression
from book.serving import deploy


@expression
def kv_bytes_per_token(model: str, bits: float = 16) -> float:
    """Bytes."""
    return serving.kv_bytes_per_token(catalog.model(model), bits / 8)


@expression
def slip_other_kv_heads(model: str, kv_heads: int) -> float:
    """kappa with another number of KV heads; the number of query heads, for one."""
    return serving.kv_bytes_per_token(replace(catalog.model(model), kv_heads=kv_heads))


@expression
def slip_keys_only(model: str) -> float:
    """kappa with V forgotten."""
    return kv_bytes_per_token(model) / 2


@expression
def sharing_saves(model: str) -> float:
    """kappa with a KV head for each query head, over kappa."""
    return slip_other_kv_heads(model, catalog.model(model).heads) / kv_bytes_per_token(model)


@expression
def kv_layer_bytes(model: str) -> float:
    """Bytes that one token's K and V take in one layer, bf16: what `kv_append` writes."""
    m = catalog.model(model)
    return sum(cost.kv_append(1, m.kv_heads, m.head_dim).writes.values())


@expression
def slip_derived_head_dim(model: str) -> float:
    """kappa with head_dim = d_model / heads."""
    m = catalog.model(model)
    return serving.kv_bytes_per_token(replace(m, head_dim=m.d_model // m.heads))


@expression
def kv_bytes(model: str, context: int, batch: int = 1) -> float:
    """Bytes of the cache of `batch` sequences."""
    return batch * serving.kv_bytes(catalog.model(model), context)


@expression
def slip_gib_as_gb(model: str, context: int, batch: int = 1) -> float:
    """The cache in GiB, read as GB."""
    return kv_bytes(model, context, batch) / 2**30 * 1e9


@expression
def kv_seconds(model: str, accelerator: str, context: int, batch: int = 1) -> float:
    """Seconds to stream the cache once."""
    return kv_bytes(model, context, batch) / catalog.accelerator(accelerator).bandwidth


@expression
def slip_gib_over_tb(model: str, accelerator: str, context: int, batch: int = 1) -> float:
    """The cache in GiB divided by a bandwidth in decimal TB/s."""
    return slip_gib_as_gb(model, context, batch) / catalog.accelerator(accelerator).bandwidth


@expression
def kv_tokens(model: str, accelerator: str, weight_bits: float = 16, fraction: float = 0.9) -> float:
    """Tokens of bf16 cache that fit beside the weights in this part of the labelled memory."""
    d = deploy(model, accelerator, weight_itemsize=weight_bits / 8)
    return serving.kv_capacity(d, memory=d.accelerator.capacity, fraction=fraction)


@expression
def sequences(
    model: str, accelerator: str, context: int, weight_bits: float = 16, fraction: float = 0.9
) -> float:
    """Whole sequences that fit beside the weights in this part of the labelled memory."""
    d = deploy(model, accelerator, weight_itemsize=weight_bits / 8)
    return serving.sequences(d, context, memory=d.accelerator.capacity, fraction=fraction)


@expression
def kv_intensity(model: str, kv_bits: float = 16, kv_heads: int | None = None) -> float:
    """FLOP per byte of cache. kv_heads: another number of them than the model has."""
    m = catalog.model(model)
    return cost.kv_intensity(m.heads, kv_heads or m.kv_heads, kv_bits / 8)


@expression
def crossover_context(model: str, accelerator: str, batch: int) -> float:
    """Tokens at which a step reads as much bf16 cache as weights, all parameters counted."""
    return serving.crossover_context(deploy(model, accelerator, count="all"), batch)


@expression
def throughput_ceiling(model: str, accelerator: str, context: int) -> float:
    """Tokens/s that no batch exceeds."""
    return serving.throughput_ceiling(deploy(model, accelerator), context)


@expression
def blended_limit(model: str, accelerator: str, context: int) -> float:
    """Blended intensity of a decode step in an endless batch, FLOP/byte."""
    step = serving.decode_step(deploy(model, accelerator, count="all"), 1, context)
    return step.cost.flops / step.attention.bytes


@expression
def prefill_seconds(model: str, accelerator: str, length: int) -> float:
    """The floor of TTFT, (2 P L + 2 N H d L^2) / F."""
    return serving.ttft(deploy(model, accelerator, count="all"), length)


@expression
def slip_linear_only(model: str, accelerator: str, length: int) -> float:
    """TTFT as 2 P L / F, with attention forgotten."""
    d = deploy(model, accelerator, count="all")
    return serving.prefill(d, length).linear.flops / d.peak


@expression
def prefill_linear_flops(model: str, length: int) -> float:
    """2 P L."""
    return serving.prefill(deploy(model, "h100_sxm", count="all"), length).linear.flops


@expression
def prefill_attention_flops(model: str, length: int) -> float:
    """2 N H d L^2."""
    return serving.prefill_attention_flops(catalog.model(model), length)


@expression
def slip_whole_square(model: str, length: int) -> float:
    """Attention's FLOPs with the causal mask forgotten."""
    return 2 * prefill_attention_flops(model, length)


@expression
def attention_share(model: str, accelerator: str, length: int) -> float:
    """Share of a prompt's FLOPs that is attention."""
    step = serving.prefill(deploy(model, accelerator, count="all"), length)
    return step.attention.flops / step.cost.flops


@expression
def attention_equals_linear(model: str, accelerator: str) -> float:
    """Prompt length, tokens."""
    return serving.attention_equals_linear(deploy(model, accelerator, count="all"))


@expression
def fused_intensity(length: int, heads: int, kv_heads: int) -> float:
    """Causal attention that keeps its scores on the chip, head_dim 128, FLOP/byte."""
    return cost.flash_attention(1, length, heads, kv_heads, 128).intensity


@expression
def unfused_intensity(length: int, heads: int, kv_heads: int) -> float:
    """The same with scores and probabilities in memory."""
    return cost.unfused_attention(1, length, heads, kv_heads, 128).intensity


@expression
def fusion_saves_prefill(length: int, heads: int, kv_heads: int) -> float:
    """Bytes of unfused over bytes of fused attention, for a prompt."""
    return cost.unfused_attention(1, length, heads, kv_heads, 128).bytes / (
        cost.flash_attention(1, length, heads, kv_heads, 128).bytes
    )


@expression
def fusion_saves_decode(context: int, heads: int, kv_heads: int) -> float:
    """The same for one new token: its row of scores and of probabilities is written and read."""
    fused = cost.decode_attention(1, heads, kv_heads, 128, context).bytes
    rows = 4 * heads * context * 2  # two rows of `context` numbers a head, each moved twice
    return (fused + rows) / fused


@expression
def tpot(model: str, accelerator: str, context: int) -> float:
    """Seconds between two tokens of one stream: the floor."""
    return serving.tpot(deploy(model, accelerator), 1, context)


@expression
def slip_total_over_outputs(model: str, accelerator: str, context: int, outputs: int) -> float:
    """TTFT and all steps together, divided by the tokens that came out."""
    d = deploy(model, accelerator)
    steps = (outputs - 1) * serving.tpot(d, 1, context)
    return (serving.ttft(d, context) + steps) / outputs


@expression
def tokens_per_second(seconds: float) -> float:
    """One over the time per token."""
    return 1 / seconds

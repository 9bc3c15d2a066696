"""The two phases: one prefill, one decode step. What a user sees of them is in `latency`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from book import catalog, cost, roofline
from book.catalog import Model
from book.cost import Cost, Number
from book.serving.activations import linear_numbers
from book.serving.cache import attention_of_a_layer, causal_pairs, contexts, kv_bytes, kv_share
from book.serving.deployment import Deployment, possible
from book.serving.weights import active_parameters, weight_bytes_read


@dataclass(frozen=True, eq=False)
class Step:
    """One card's part of one step. All numbers may be arrays.

    linear: the products with weights, bytes those of the weights ("weights") and, in a prefill, what
    the linear layers hand to each other ("activations").
    attention: products with the cache, bytes those of the cache ("kv").
    peak, bandwidth: FLOP/s and bytes/s of the card. A decode step's activations are left
    out, a few MB a sequence, as are all-reduces.
    """

    linear: Cost
    attention: Cost
    peak: float
    bandwidth: float

    @cached_property
    def cost(self) -> Cost:
        """FLOPs and bytes of the step; its intensity is the blended one of chapter 07."""
        return self.linear + self.attention

    @property
    def time(self) -> Number:
        """Seconds: the floor. All arithmetic overlaps with all traffic."""
        return roofline.time(self.cost.flops, self.cost.bytes, self.peak, self.bandwidth)

    @property
    def time_in_turn(self) -> Number:
        """Seconds, if the products with weights and attention come one after the other.

        The sum of two floors: the same while memory binds both, and nearer to real engines where
        a large batch makes the products compute-bound while attention still waits for the cache.
        """
        parts = (self.linear, self.attention)
        return sum(roofline.time(c.flops, c.bytes, self.peak, self.bandwidth) for c in parts)

    @property
    def weight_time(self) -> Number:
        """Seconds to stream the weights."""
        return self.linear.bytes / self.bandwidth

    @property
    def kv_time(self) -> Number:
        """Seconds to stream the cache."""
        return self.attention.bytes / self.bandwidth

    @property
    def compute_time(self) -> Number:
        """Seconds of arithmetic at the dense peak."""
        return self.cost.flops / self.peak

    @property
    def bound(self) -> str | np.ndarray:
        """What sets `time`, "memory" or "compute". An array for arrays."""
        memory = self.weight_time + self.kv_time >= self.compute_time
        named = np.where(memory, "memory", "compute")
        return named if named.ndim else str(named)


def decode_step(d: Deployment, batch: Number, context: Number) -> Step:
    """One token for each of `batch` sequences with `context` tokens in the cache.

    Bytes: W + B * S * kappa. FLOPs: 2 P B + 4 D H d S B. Both per card.
    """
    possible(d.model, batch=batch, context=context)
    m, share = d.model, kv_share(d.model, d.gpus)
    linear = Cost(
        cost.weight_flops(active_parameters(m, d.count), batch) / d.gpus,
        {"weights": weight_bytes_read(m, batch, d.weight_itemsize, d.count) / d.gpus},
    )
    flops, kv = 0, 0
    for layers, seen in contexts(m, context):
        layer = attention_of_a_layer(m, batch, seen, d.kv_itemsize)
        flops, kv = flops + layers * layer.flops, kv + layers * layer.bytes
    return Step(linear, Cost(flops / d.gpus, {"kv": kv * share}), d.peak, d.bandwidth)


def prefill(d: Deployment, length: Number, batch: Number = 1) -> Step:
    """`batch` prompts of `length` tokens, all at once.

    FLOPs: 2 P L + 2 D H d L^2 for each prompt. With count="read" the head is charged once a prompt:
    only the last token's logits are wanted. Bytes: the weights once, the cache written, and what the
    linear layers hand to each other, in the format of the arithmetic: `linear_numbers` a token. Cards
    that share a layer all read its inputs, so an even part of those is the least that one of them moves.
    """
    possible(d.model, batch=batch, length=length)
    m, rows = d.model, batch * length
    flops = cost.weight_flops(active_parameters(m, d.count), rows)
    if d.count == "read":
        flops = flops - cost.weight_flops(m.parameter_parts["head"], batch * (length - 1))
    weights = weight_bytes_read(m, rows, d.weight_itemsize, d.count)
    handed_on = rows * linear_numbers(m) * catalog.itemsize(d.dtype)
    written = batch * kv_bytes(m, length, d.kv_itemsize) * kv_share(m, d.gpus)
    return Step(
        Cost(flops / d.gpus, {"weights": weights / d.gpus, "activations": handed_on / d.gpus}),
        Cost(batch * prefill_attention_flops(m, length) / d.gpus, {}, {"kv": written}),
        d.peak,
        d.bandwidth,
    )


def prefill_attention_flops(model: Model, length: Number) -> Number:
    """2 D H d L^2: causal attention of one prompt in all layers.

    In a layer with a window w < L a token meets at most w others: w (2 L - w) takes the place of
    L^2; in one with chunks, the squares of its chunks do. Latent attention is expanded in prefill,
    its d the mean of the query's and the value's.
    """
    a = model.attention
    total: Number = 0
    head_dim: float = model.head_dim
    if a.type == "mla":
        head_dim = (a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim) / 2
    whole = cost.flash_attention(1, length, model.heads, model.kv_heads, head_dim).flops
    for layers, share in causal_pairs(model, length):
        total = total + layers * whole * share
    return total

"""Where the regimes change, and what no batch can get past."""

from __future__ import annotations

import numpy as np

from book import cost, roofline
from book.cost import Number
from book.roofline import least
from book.serving import short
from book.serving.cache import contexts, kv_bytes, kv_bytes_per_token, kv_share
from book.serving.deployment import Deployment
from book.serving.phases import decode_step, prefill_attention_flops
from book.serving.weights import active_parameters, weight_bytes_read


def critical_rows(peak: Number, bandwidth: Number, weight_itemsize: Number = 2) -> Number:
    """M*_inf = F w / (2 beta): rows at which the weights' traffic takes as long as their arithmetic.

    peak: of the arithmetic's dtype; weight_itemsize: of the stored weight. They need not be the same dtype.
    """
    return roofline.ridge(peak, bandwidth) * weight_itemsize / 2


def utilisation(rows: Number, peak: Number, bandwidth: Number, weight_itemsize: Number = 2) -> Number:
    """min(1, I / I*) with I = 2 rows / s: the share of the peak that `rows` rows can use."""
    return least(1, rows / critical_rows(peak, bandwidth, weight_itemsize))


def crossover_context(d: Deployment, batch: Number) -> Number:
    """S = W / (B kappa): the context at which a decode step reads as much cache as weights.

    Infinite where every layer's window is full before that. A plain number of tokens, also where the
    model doesn't take so many.
    """
    m, a = d.model, d.model.attention
    weights = weight_bytes_read(m, batch, d.weight_itemsize, d.count) / d.gpus
    per_token = kv_bytes_per_token(m, d.kv_itemsize) * kv_share(m, d.gpus)
    within = short.crossover_context(weights, batch, per_token)
    if not a.window:
        return within
    each = weights / (batch * kv_share(m, d.gpus))  # bytes of cache that a sequence may have
    full, windowed = (kv_bytes_per_token(m, d.kv_itemsize) * n / m.layers for n, _ in contexts(m, 1))
    if not full:
        beyond = np.inf
    elif a.window_kind == "chunked":  # a chunk fills up, and its layers start anew: the first crossing
        before = np.maximum(np.ceil((each - windowed * a.window) / (full * a.window)) - 1, 0) * a.window
        beyond = before + (each - full * before) / (full + windowed)
    else:
        beyond = a.window + (each - kv_bytes(m, a.window, d.kv_itemsize)) / full
    found = np.where(within <= a.window, within, beyond)
    return found if found.ndim else float(found)


def throughput_ceiling(d: Deployment, context: Number) -> Number:
    """Tokens per second that no batch exceeds at this context: beta / (S kappa), or arithmetic's.

    Every further sequence adds its own cache to the step, so weights stop mattering and this stays.
    """
    one = decode_step(d, 1, context)
    return least(d.bandwidth / one.attention.bytes, d.peak / one.cost.flops)


def attention_equals_linear(d: Deployment) -> float:
    """The prompt length at which causal attention takes as many FLOPs as the products with weights.

    L = P / (D H d), with 2 P FLOPs a token. With count="read" P is without the head, whose products only a
    prompt's last token needs; that one's are left out. With sliding windows, the root of the quadratic that
    the full layers leave; infinite if there are none and the windows are too narrow. With chunks it is
    exact at whole ones, and a little short in between.
    """
    m, a = d.model, d.model.attention
    read = active_parameters(m, d.count)
    if d.count == "read":  # the head is wanted once a prompt, as in `prefill`: nothing a token
        read = read - m.parameter_parts["head"]
    per_token = cost.weight_flops(read)
    square = prefill_attention_flops(m, 1)  # FLOPs of all layers per L^2, no window being full yet
    plain = per_token / square
    if not a.window or plain <= a.window:
        return plain
    full, windowed = (square * layers / m.layers for layers, _ in contexts(m, 1))
    if a.window_kind == "chunked":  # full L^2 + windowed w L = per_token L, with whole chunks
        return (per_token - windowed * a.window) / full
    # full L^2 + windowed w (2 L - w) = per_token L
    b, c = per_token - 2 * windowed * a.window, windowed * a.window**2
    if not full:
        return np.inf
    return (b + np.sqrt(b * b + 4 * full * c)) / (2 * full)

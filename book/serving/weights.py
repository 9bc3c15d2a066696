"""Parameters: how many are stored, how many a step reads, how many a token is multiplied with."""

from __future__ import annotations

from book.catalog import Model
from book.cost import Number
from book.roofline import least
from book.serving.deployment import Count


def weight_bytes(model: Model, weight_itemsize: Number = 2) -> Number:
    """Bytes that the whole model takes in memory: every parameter, read or not."""
    return model.parameters * weight_itemsize


def experts_touched(n_experts: Number, top_k: Number, rows: Number) -> Number:
    """E (1 - (1 - k/E)^rows): distinct experts that `rows` tokens visit, if routing is even."""
    return n_experts * (1 - (1 - top_k / n_experts) ** rows)


def experts_touched_between(n_experts: Number, top_k: Number, rows: Number) -> tuple[Number, Number, Number]:
    """(low, expected, high): distinct experts that `rows` tokens visit, at least, on average, at most.

    low: all tokens choose the same `top_k`. expected: `experts_touched`, if routing is even. high: no two
    choose the same, while there are experts left: min(top_k rows, E). Only the ends are bounds: an uneven
    router stays below the average for good.
    """
    return (
        least(top_k, n_experts),
        experts_touched(n_experts, top_k, rows),
        least(top_k * rows, n_experts),
    )


def parameters_read(model: Model, rows: Number = 1, count: Count = "read") -> Number:
    """Parameters that a step of `rows` tokens takes from memory, each once.

    Of a mixture of experts those that the tokens are expected to touch.
    """
    if count == "all":
        return model.parameters
    parts, moe = model.parameter_parts, model.experts
    read = parts["blocks"] + parts["head"]
    if moe is None:
        return read
    return read + parts["experts"] * experts_touched(moe.n_experts, moe.top_k, rows) / moe.n_experts


def weight_bytes_read(
    model: Model, rows: Number = 1, weight_itemsize: Number = 2, count: Count = "read"
) -> Number:
    """Bytes of weights that a step of `rows` tokens takes from memory."""
    return parameters_read(model, rows, count) * weight_itemsize


def active_parameters(model: Model, count: Count = "read") -> float:
    """Parameters that one token is multiplied with: two FLOPs each. top_k of the experts.

    count="all" adds the input table, as the short formula 2 P does for a dense model.
    """
    parts, moe = model.parameter_parts, model.experts
    active: float = parts["blocks"] + parts["head"]
    if moe is not None:
        active += parts["experts"] * moe.top_k / moe.n_experts
    return active + parts["input table"] if count == "all" else active

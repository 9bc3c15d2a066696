"""Parameters: how many are stored, how many a step reads, how many a token is multiplied with.

`weight_itemsize`, bytes of a stored number with its scales, is one number for all parameters, or a
mapping over the parts of `Model.parameter_parts`, since a checkpoint seldom keeps all in one format:

    {"experts": 0.53125, "others": 2}          # MXFP4 experts, the rest in bf16

`catalog.storage` has the mappings of published checkpoints. Each value may be a number, an array or
a symbol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from book.catalog import Model
from book.cost import Number
from book.roofline import least
from book.serving.deployment import Count, Itemsize, itemsizes

Routing = Literal["together", "even", "apart"]
ROUTINGS: tuple[Routing, ...] = ("together", "even", "apart")


def weight_bytes(model: Model, weight_itemsize: Itemsize = 2) -> Number:
    """Bytes that the whole model takes in memory: every parameter, read or not."""
    if not isinstance(weight_itemsize, Mapping):
        return model.parameters * weight_itemsize
    return _bytes(dict(model.parameter_parts), model, weight_itemsize)


def _bytes(counts: Mapping[str, Number], model: Model, weight_itemsize: Itemsize) -> Number:
    sizes = itemsizes(model, weight_itemsize)
    return sum(counts[part] * size for part, size in sizes.items() if part in counts)


def experts_touched(n_experts: Number, top_k: Number, rows: Number) -> Number:
    """E (1 - (1 - k/E)^rows): distinct experts that `rows` tokens are expected to visit, routed evenly.

    A mean, and no bound: `experts_bounds` has those.
    """
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


def parts_read(
    model: Model, rows: Number = 1, count: Count = "read", routing: Routing = "even"
) -> dict[str, Number]:
    """Part -> parameters of it that a step of `rows` tokens takes from memory, each once.

    routing: which of a mixture's experts that is. "even": as many as even routing is expected to
    touch; "together": the fewest there can be, all tokens with the same experts, so that no step
    reads less; "apart": the most.
    """
    parts, moe = model.parameter_parts, model.experts
    if routing not in ROUTINGS:
        raise ValueError(f"routing = {routing!r}: not known; use {', '.join(map(repr, ROUTINGS))}.")
    if count == "all":
        return dict(parts)
    read: dict[str, Number] = {"blocks": parts["blocks"], "head": parts["head"]}
    if moe is not None:
        low, expected, high = experts_touched_between(moe.n_experts, moe.top_k, rows)
        touched = {"together": low, "even": expected, "apart": high}[routing]
        read["experts"] = parts["experts"] * touched / moe.n_experts
    return read


def parameters_read(
    model: Model, rows: Number = 1, count: Count = "read", routing: Routing = "even"
) -> Number:
    """Parameters that a step of `rows` tokens takes from memory, each once: the sum of `parts_read`."""
    return sum(parts_read(model, rows, count, routing).values())


def weight_bytes_read(
    model: Model,
    rows: Number = 1,
    weight_itemsize: Itemsize = 2,
    count: Count = "read",
    routing: Routing = "even",
) -> Number:
    """Bytes of weights that a step of `rows` tokens takes from memory. Arguments as for `parts_read`."""
    read = parts_read(model, rows, count, routing)
    if not isinstance(weight_itemsize, Mapping):
        return sum(read.values()) * weight_itemsize
    return _bytes(read, model, weight_itemsize)


def active_parameters(model: Model, count: Count = "read") -> float:
    """Parameters that one token is multiplied with: two FLOPs each. top_k of the experts.

    count="all" adds the input table, as the short formula 2 P does for a dense model.
    """
    parts, moe = model.parameter_parts, model.experts
    active: float = parts["blocks"] + parts["head"]
    if moe is not None:
        active += parts["experts"] * moe.top_k / moe.n_experts
    return active + parts["input table"] if count == "all" else active

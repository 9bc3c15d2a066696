"""The `Capacity` of the chapters' formulas: whole models, weights alone, caches alone, one layer's.

capacity=memory.of_model(batch=p.BATCH.sympy, context=p.CONTEXT.sympy, gpus=p.GPUS)
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from book.formulas import parameters as p
from book.formulas.capacity import CARDS, Capacity, Held
from book.formulas.formula import Parameter
from book.serving import short

_WEIGHTS = p.STORED_PARAMETERS.sympy * p.WEIGHT_ITEMSIZE.sympy
_SPLIT = short.uneven(p.HEADS.sympy, p.KV_HEADS.sympy, CARDS)
_SHARED = p.HEADS.sympy % p.KV_HEADS.sympy  # every KV head serves as many query heads


def of_model(
    batch: sympy.Expr,
    context: sympy.Expr,
    gpus: Parameter | None = None,
    per_token: sympy.Expr = p.KV_PER_TOKEN.expression,
) -> Capacity:
    """All weights of a model, and the caches of `batch` sequences of `context` tokens."""
    return Capacity(
        held="model",
        memory=p.CAPACITY.sympy,
        weights=_WEIGHTS,
        sequence=context * per_token,
        batch=sympy.sympify(batch),
        heads=p.HEADS.sympy,
        kv_heads=p.KV_HEADS.sympy,
        gpus=gpus.symbol if gpus else "",
        alone=p.ALONE.sympy,
        broken=_broken(context, split=gpus is not None),
        parameters=(p.STORED_PARAMETERS, p.HEADS, p.KV_HEADS, p.MAX_CONTEXT, p.CAPACITY, p.ALONE),
    )


def of_weights(
    gpus: Parameter,
    fraction: sympy.Expr | float = short.FRACTION,
    context: sympy.Expr | None = None,
) -> Capacity:
    """All weights of a model, and how many sequences of `context` tokens have room beside them."""
    return Capacity(
        held="weights",
        memory=p.CAPACITY.sympy,
        weights=_WEIGHTS,
        sequence=sympy.S.Zero if context is None else context * p.KV_PER_TOKEN.expression,
        heads=p.HEADS.sympy,
        kv_heads=p.KV_HEADS.sympy,
        gpus=gpus.symbol,
        alone=p.ALONE.sympy,
        fraction=fraction,
        broken=_broken(context, split=True),
        parameters=(
            *(p.STORED_PARAMETERS, p.HEADS, p.KV_HEADS),
            *([] if context is None else [p.MAX_CONTEXT]),
            p.CAPACITY,
            p.ALONE,
        ),
    )


def of_cache(held: Held, per_token: sympy.Expr, sliders: Sequence[Parameter]) -> Capacity:
    """The caches alone, per_token bytes a token, where the sliders decide their shape."""
    shared = {p.HEADS.symbol, p.KV_HEADS.symbol} <= {s.symbol for s in sliders}
    return Capacity(
        held=held,
        memory=p.CAPACITY.sympy,
        sequence=p.CONTEXT.sympy * per_token,
        batch=p.BATCH.sympy,
        broken={**_broken(p.CONTEXT.sympy), **({"uneven_shared": _SHARED} if shared else {})},
        parameters=(p.MAX_CONTEXT, p.CAPACITY),
    )


def _broken(context: sympy.Expr | None, split: bool = False) -> dict[str, sympy.Expr]:
    """What can't be whatever the memory, by the word that says so."""
    made: dict[str, sympy.Expr] = {}
    if context is not None:
        made["over_context"] = context - p.MAX_CONTEXT.sympy
    if split:
        made["uneven_cards"] = _SPLIT
        made["no_link"] = p.ALONE.sympy * (CARDS - 1)
    return made

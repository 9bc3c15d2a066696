"""Chapter 06: attention over the cache."""

from __future__ import annotations

from book import cost
from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Formula, Limit, Parameter, symbol
from book.formulas.views import Curve, Readouts, Roofline
from book.say import say
from book.serving import short

_SHAPE = (
    Parameter("heads", say("query heads"), 32, 1, 128, latex="H"),
    Parameter("kv_heads", say("KV heads"), 8, 1, 128, latex="G"),
    Parameter("head_dim", say("head dimension"), 128, 32, 256, latex="d"),
)

decode_attention = Formula.of_cost(
    "decode_attention",
    say("Attention over the cache"),
    cost.decode_attention,
    (
        *_SHAPE,
        Parameter("context", say("context of each"), 4096, 16, 2**20, "tokens", "S"),
        p.BATCH,
        p.KV_ITEMSIZE,
        Parameter("itemsize", say("bytes of query and output"), 2, latex="e", unit="byte", source="dtype"),
    ),
    limit=Limit(
        "context",
        cost.kv_intensity(symbol("heads"), symbol("kv_heads"), symbol("kv_itemsize")),
        say("cache only"),
    ),
    presets=models.attention_shapes,
    preset_kind="model",
    capacity=memory.of_cache(
        "layer",
        short.kv_per_token(1, p.KV_HEADS.sympy, p.HEAD_DIM.sympy, p.KV_ITEMSIZE.sympy),
        _SHAPE,
    ),
    views=(Roofline(), Curve(), Readouts(say("intensity"))),
)

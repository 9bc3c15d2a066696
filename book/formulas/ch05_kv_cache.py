"""Chapter 05: the KV cache, and how many sequences fit."""

from __future__ import annotations

from dataclasses import replace

import sympy

from book import roofline
from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Formula, Parameter
from book.formulas.views import Bars, Curve, Readouts, Shown
from book.say import say
from book.serving import short

_KV_SHAPE = (
    Parameter("layers", say("layers"), 32, 1, 128, latex="D"),
    Parameter("kv_heads", say("KV heads"), 8, 1, 128, latex="G"),
    Parameter("head_dim", say("head dimension"), 128, 32, 256, latex="d"),
)
_held = p.BATCH.sympy * p.CONTEXT.sympy * p.KV_PER_TOKEN.expression

kv_bytes_per_token = Formula(
    name="kv_bytes_per_token",
    title=say("The KV cache"),
    value="per_token",
    unit="byte/token",
    parameters=(*_KV_SHAPE, p.KV_ITEMSIZE, p.CONTEXT, replace(p.BATCH, default=1), p.BANDWIDTH),
    outputs={
        "per_token": p.KV_PER_TOKEN.expression,
        "sequence": p.CONTEXT.sympy * p.KV_PER_TOKEN.expression,
        "all": _held,
        "time": _held / p.BANDWIDTH.sympy,
    },
    presets=models.kv_shapes,
    preset_kind="model",
    capacity=memory.of_cache("cache", p.KV_PER_TOKEN.expression, _KV_SHAPE),
    views=(
        Curve(),
        Readouts(
            say("cache per token"),
            (
                Shown("sequence", say("one sequence"), "byte"),
                Shown("all", say("the batch"), "byte"),
                Shown("time", say("time to read it"), "s"),
            ),
        ),
    ),
)

_SHARE = Parameter(
    "fraction", say("share that the engine may use"), 0.9, 0.5, 1, latex=r"\mu", scale="linear", integer=False
)
_memory = p.CAPACITY.sympy * _SHARE.sympy * p.GPUS.sympy
_fit = {
    "capacity": _memory,
    "weight_bytes": p.WEIGHT_BYTES.sympy,
    "reserve": 0,
    "kv_per_token": p.KV_PER_TOKEN.sympy,
}

_ROOM = Shown("room", say("room for the cache"), "byte")

kv_capacity = Formula(
    name="kv_capacity",
    title=say("How many sequences fit"),
    value="sequences",
    unit="",
    parameters=(
        Parameter("context", say("context of each"), 5120, 128, 2**20, "tokens", "S"),
        p.WEIGHT_ITEMSIZE,
        p.KV_ITEMSIZE,
        _SHARE,
        p.GPUS,
        p.PARAMETERS,
        p.LAYERS,
        p.KV_HEADS,
        p.HEAD_DIM,
        p.CAPACITY,
    ),
    outputs={
        # whole ones: half a sequence is none
        "sequences": sympy.floor(roofline.most(0, short.sequences(**_fit, context=p.CONTEXT.sympy))),
        "tokens": sympy.floor(roofline.most(0, short.sequences(**_fit, context=1))),
        "weights": p.WEIGHT_BYTES.sympy,
        "room": roofline.most(0, _memory - p.WEIGHT_BYTES.sympy),
        "memory": _memory,
    },
    aliases=(p.WEIGHT_BYTES, p.KV_PER_TOKEN),
    presets=models.dense_models,
    preset=models.START,
    preset_kind="model",
    capacity=memory.of_weights(p.GPUS, _SHARE.sympy, p.CONTEXT.sympy),
    views=(
        Bars(
            parts=(Shown("weights", say("weights"), "byte"), _ROOM),
            beside=(Shown("memory", say("memory to use"), "byte"),),
        ),
        Curve(),
        Readouts(say("sequences that fit"), (Shown("tokens", say("tokens in all"), "tokens"), _ROOM)),
    ),
)

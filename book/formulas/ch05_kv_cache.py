"""Chapter 05: the KV cache, and how many sequences fit."""

from __future__ import annotations

from book import roofline
from book.formulas import models
from book.formulas.formula import Formula, Output, Parameter
from book.formulas.parameters import (
    BANDWIDTH,
    BETA,
    GPUS,
    KAPPA,
    KV_SIZE,
    W_SIZE,
    B,
    D,
    G,
    N,
    P,
    S,
    W,
    kappa,
    w,
)
from book.serving import short

_KV_SHAPE = (
    Parameter("layers", "layers", 32, 1, 128, latex="N"),
    Parameter("kv_heads", "KV heads", 8, 1, 128, latex="G"),
    Parameter("head_dim", "head dimension", 128, 32, 256, latex="d"),
)
_held = B.sympy * S.sympy * KAPPA.expression

kv_bytes_per_token = Formula(
    name="kv_bytes_per_token",
    title="The KV cache",
    value="per_token",
    unit="byte/token",
    value_label="cache per token",
    parameters=(*_KV_SHAPE, KV_SIZE, S, B, BANDWIDTH),
    outputs={
        "per_token": KAPPA.expression,
        "sequence": S.sympy * KAPPA.expression,
        "all": _held,
        "time": _held / BETA,
    },
    described={
        "sequence": Output("one sequence", "byte"),
        "all": Output("the batch", "byte"),
        "time": Output("time to read it", "s"),
    },
    readouts=("sequence", "all", "time"),
    presets=models.kv_shapes,
    preset_kind="model",
)

_CAPACITY = Parameter("capacity", "memory of a card", 80e9, unit="byte", latex="C", source="accelerator")
_SHARE = Parameter(
    "fraction", "share that the engine may use", 0.9, 0.5, 1, latex="u", scale="linear", integer=False
)
_memory = _CAPACITY.sympy * _SHARE.sympy * GPUS.sympy
_fit = {
    "capacity": _memory,
    "weight_bytes": w,
    "reserve": 0,
    "kv_per_token": kappa,
}

kv_capacity = Formula(
    name="kv_capacity",
    title="How many sequences fit",
    value="sequences",
    unit="",
    value_label="sequences that fit",
    parameters=(
        Parameter("context", "context of each", 5120, 128, 2**20, "tokens", "S"),
        W_SIZE,
        KV_SIZE,
        _SHARE,
        GPUS,
        P,
        N,
        G,
        D,
        _CAPACITY,
    ),
    outputs={
        "sequences": roofline.most(0, short.sequences(**_fit, context=S.sympy)),
        "tokens": roofline.most(0, short.sequences(**_fit, context=1)),
        "weights": w,
        "room": roofline.most(0, _memory - w),
        "memory": _memory,
    },
    aliases=(W, KAPPA),
    described={
        "tokens": Output("tokens in all", ""),
        "weights": Output("weights", "byte"),
        "room": Output("room for the cache", "byte"),
        "memory": Output("memory to use", "byte"),
    },
    readouts=("tokens", "room"),
    parts=("weights", "room"),
    beside=("memory",),
    presets=models.dense_models,
    preset=models.START,
    preset_kind="model",
)

"""Part II, two phases: chapters 03 to 06."""

from __future__ import annotations

from book import cost, roofline, serving
from book.cost import Cost
from book.formula import Formula, Limit, Output, Parameter, symbol
from book.formulas import models
from book.formulas.part1 import BANDWIDTH, PEAK, linear
from book.formulas.shared import (
    BETA,
    GPUS,
    KAPPA,
    KV_SIZE,
    W_SIZE,
    WEIGHTS,
    B,
    D,
    F,
    G,
    N,
    P,
    S,
    W,
    kappa,
    step_time,
    w,
)
from book.serving import short

# ------------------------------------------------------------------------- 03 prefill and decode

_ROWS = Parameter("m", "rows in the step", 32, 1, 131072, latex="M")
_STORED = Parameter("itemsize", "bytes per weight", 2, latex="s", integer=False, steps=(0.5, 1, 2))

utilisation = Formula(
    name="utilisation",
    title="The share of the peak",
    value="utilisation",
    unit="%",
    value_label="utilisation",
    # The dropdown decides the arithmetic, the slider how weights are stored: they need not agree.
    parameters=(_ROWS, _STORED, PEAK, BANDWIDTH),
    outputs={
        "utilisation": serving.utilisation(_ROWS.sympy, F, BETA, _STORED.sympy),
        "critical": serving.critical_rows(F, BETA, _STORED.sympy),
        "intensity": linear.limit.expression,
    },
    described={"critical": Output("critical rows, M*", "")},
    readouts=("critical",),
    presets=lambda: {
        "decode": {f"{b} {'user' if b == 1 else 'users'}": {"m": b} for b in (1, 32, 128)},
        "prefill": {f"a prompt of {n:,} tokens": {"m": n} for n in (512, 2048, 8192)},
    },
    preset_kind="phase",
)

# --------------------------------------------------------------------------- 04 the decode floor


def _floor(name: str, value: str, unit: str, value_label: str) -> Formula:
    step = Cost(WEIGHTS.flops, {"weights": w})
    time = step_time(step, GPUS.sympy)
    return Formula(
        name=name,
        title="The decode floor",
        value=value,
        unit=unit,
        value_label=value_label,
        parameters=(B, W_SIZE, GPUS, P, PEAK, BANDWIDTH),
        outputs={
            "time": time,
            "throughput": B.sympy / time,
            "per_user": 1 / time,
            "per_card": w / GPUS.sympy,
            "intensity": step.intensity,
        },
        aliases=(W,),
        described={
            "time": Output("time per token", "s"),
            "throughput": Output("all users", "token/s"),
            "per_user": Output("each user", "token/s"),
            "per_card": Output("weights on a card", "byte"),
        },
        readouts=tuple(n for n in ("time", "throughput", "per_user", "per_card") if n != value),
        presets=models.weights_only,
        preset=f"{models.START} / all parameters",
        preset_kind="model",
    )


decode_floor = _floor("decode_floor", "time", "s", "time per token")
decode_rate = _floor("decode_rate", "throughput", "token/s", "tokens per second")

# ------------------------------------------------------------------------------- 05 the KV cache

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

# --------------------------------------------------------------------- 06 attention over the cache

decode_attention = Formula.of_cost(
    "decode_attention",
    "Attention over the cache",
    cost.decode_attention,
    (
        Parameter("heads", "query heads", 32, 1, 128, latex="H"),
        Parameter("kv_heads", "KV heads", 8, 1, 128, latex="G"),
        Parameter("head_dim", "head dimension", 128, 32, 256, latex="d"),
        Parameter("context", "context of each", 4096, 16, 2**20, "tokens", "S"),
        B,
        KV_SIZE,
        Parameter("itemsize", "bytes of query and output", 2, latex="e", unit="byte", source="dtype"),
    ),
    limit=Limit(
        "context",
        cost.kv_intensity(symbol("heads"), symbol("kv_heads"), symbol("kv_itemsize")),
        "cache only",
    ),
    value_label="intensity",
    presets=models.attention_shapes,
    preset_kind="model",
)

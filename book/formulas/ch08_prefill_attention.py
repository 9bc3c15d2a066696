"""Chapter 08: prefill attention, and the time to the first token."""

from __future__ import annotations

from book.formulas import models
from book.formulas import parameters as p
from book.formulas.formula import Balance, Formula, Output
from book.formulas.steps import LINEAR_FLOPS, PROMPT
from book.serving import short

prefill = Formula(
    name="prefill",
    title="A prefill",
    value="time",
    unit="s",
    value_label="time to first token",
    parameters=(
        p.LENGTH,
        p.WEIGHT_ITEMSIZE,
        p.KV_ITEMSIZE,
        p.PARAMETERS,
        p.LAYERS,
        p.HEADS,
        p.KV_HEADS,
        p.HEAD_DIM,
        p.PEAK,
        p.BANDWIDTH,
    ),
    outputs={
        "time": p.step_time(PROMPT),
        "linear_time": LINEAR_FLOPS / p.PEAK.sympy,
        "attention_time": (PROMPT.flops - LINEAR_FLOPS) / p.PEAK.sympy,
        "memory_time": PROMPT.bytes / p.BANDWIDTH.sympy,
        "crossover": short.attention_equals_linear(
            p.PARAMETERS.sympy, p.LAYERS.sympy, p.HEADS.sympy, p.HEAD_DIM.sympy
        ),
        "intensity": PROMPT.intensity,
        "flops": PROMPT.flops,
        "bytes": PROMPT.bytes,
    },
    aliases=(p.WEIGHT_BYTES, p.KV_PER_TOKEN),
    described={
        "linear_time": Output("linear layers", "s"),
        "attention_time": Output("attention", "s"),
        "memory_time": Output("memory", "s"),
        "flops": Output("operations", "FLOP"),
        "intensity": Output("intensity", "FLOP/byte"),
    },
    readouts=("flops", "intensity"),
    parts=("linear_time", "attention_time"),
    beside=("memory_time",),
    balance=Balance("length", "crossover"),
    presets=models.dense_models,
    preset=models.START,
    preset_kind="model",
)

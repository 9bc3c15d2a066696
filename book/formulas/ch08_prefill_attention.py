"""Chapter 08: prefill attention, and the time to the first token."""

from __future__ import annotations

import sympy

from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Formula
from book.formulas.steps import LINEAR_FLOPS, PROMPT
from book.formulas.views import Balance, Bars, Curve, Readouts, Roofline, Shown
from book.say import say
from book.serving import short

prefill = Formula(
    name="prefill",
    title=say("A prefill"),
    value="time",
    unit="s",
    parameters=(
        *(p.LENGTH, p.WEIGHT_ITEMSIZE, p.KV_ITEMSIZE),
        *(*p.MODEL, p.ACTIVATIONS, p.ACTIVATION_ITEMSIZE, *p.CARD),
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
    presets=models.dense_models,
    preset=models.START,
    preset_kind="model",
    capacity=memory.of_model(sympy.S.One, p.LENGTH.sympy),
    views=(
        Bars(
            parts=(
                Shown("linear_time", say("linear layers"), "s"),
                Shown("attention_time", say("attention"), "s"),
            ),
            beside=(Shown("memory_time", say("memory"), "s"),),
            balance=Balance("length", "crossover"),
        ),
        Roofline(),
        Curve(),
        Readouts(
            say("time to first token"),
            (Shown("flops", say("operations"), "FLOP"), Shown("intensity", say("intensity"), "FLOP/byte")),
        ),
    ),
)

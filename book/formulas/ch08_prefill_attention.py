"""Chapter 08: prefill attention, and the time to the first token."""

from __future__ import annotations

from book.formulas import models
from book.formulas.formula import Balance, Formula, Output
from book.formulas.parameters import (
    BANDWIDTH,
    BETA,
    KAPPA,
    KV_SIZE,
    PEAK,
    W_SIZE,
    D,
    F,
    G,
    H,
    L,
    N,
    P,
    W,
    step_time,
)
from book.formulas.steps import LINEAR_FLOPS, PROMPT
from book.serving import short

prefill = Formula(
    name="prefill",
    title="A prefill",
    value="time",
    unit="s",
    value_label="time to first token",
    parameters=(L, W_SIZE, KV_SIZE, P, N, H, G, D, PEAK, BANDWIDTH),
    outputs={
        "time": step_time(PROMPT),
        "linear_time": LINEAR_FLOPS / F,
        "attention_time": (PROMPT.flops - LINEAR_FLOPS) / F,
        "memory_time": PROMPT.bytes / BETA,
        "crossover": short.attention_equals_linear(P.sympy, N.sympy, H.sympy, D.sympy),
        "intensity": PROMPT.intensity,
        "flops": PROMPT.flops,
        "bytes": PROMPT.bytes,
    },
    aliases=(W, KAPPA),
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

"""Chapter 07: batching pays for weights, not for KV."""

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
    B,
    D,
    F,
    G,
    H,
    N,
    P,
    S,
    W,
    kappa,
    step_time,
    w,
)
from book.formulas.steps import STEP
from book.serving import short

decode_step = Formula(
    name="decode_step",
    title="A decode step",
    value="time",
    unit="s",
    value_label="time per step",
    parameters=(B, S, W_SIZE, KV_SIZE, P, N, H, G, D, PEAK, BANDWIDTH),
    outputs={
        "time": step_time(STEP),
        "weight_time": STEP.reads["weights"] / BETA,
        "kv_time": STEP.reads["kv"] / BETA,
        "compute_time": STEP.flops / F,
        "throughput": B.sympy / step_time(STEP),
        "ceiling": short.throughput_ceiling(BETA, S.sympy, kappa),
        "crossover": short.crossover_context(w, B.sympy, kappa),
        "intensity": STEP.intensity,
        "flops": STEP.flops,
        "bytes": STEP.bytes,
    },
    aliases=(W, KAPPA),
    described={
        "weight_time": Output("weights", "s"),
        "kv_time": Output("KV cache", "s"),
        "compute_time": Output("arithmetic", "s"),
        "throughput": Output("all users", "token/s"),
        "ceiling": Output("ceiling of any batch", "token/s"),
        "intensity": Output("intensity", "FLOP/byte"),
    },
    readouts=("throughput", "ceiling", "intensity"),
    parts=("weight_time", "kv_time"),
    beside=("compute_time",),
    balance=Balance("context", "crossover"),
    presets=models.dense_models,
    preset=models.START,
    preset_kind="model",
)

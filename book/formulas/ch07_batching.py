"""Chapter 07: batching pays for weights, not for KV."""

from __future__ import annotations

from book.formulas import models
from book.formulas import parameters as p
from book.formulas.formula import Balance, Formula, Output
from book.formulas.steps import STEP
from book.serving import short

decode_step = Formula(
    name="decode_step",
    title="A decode step",
    value="time",
    unit="s",
    value_label="time per step",
    parameters=(
        p.BATCH,
        p.CONTEXT,
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
        "time": p.step_time(STEP),
        "weight_time": STEP.reads["weights"] / p.BANDWIDTH.sympy,
        "kv_time": STEP.reads["kv"] / p.BANDWIDTH.sympy,
        "compute_time": STEP.flops / p.PEAK.sympy,
        "throughput": p.BATCH.sympy / p.step_time(STEP),
        "ceiling": short.throughput_ceiling(p.BANDWIDTH.sympy, p.CONTEXT.sympy, p.KV_PER_TOKEN.sympy),
        "crossover": short.crossover_context(p.WEIGHT_BYTES.sympy, p.BATCH.sympy, p.KV_PER_TOKEN.sympy),
        "intensity": STEP.intensity,
        "flops": STEP.flops,
        "bytes": STEP.bytes,
    },
    aliases=(p.WEIGHT_BYTES, p.KV_PER_TOKEN),
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

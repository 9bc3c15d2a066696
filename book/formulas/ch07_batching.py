"""Chapter 07: batching pays for weights, not for KV."""

from __future__ import annotations

from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Formula
from book.formulas.steps import STEP
from book.formulas.views import Balance, Bars, Curve, Readouts, Roofline, Shown
from book.say import say
from book.serving import short

decode_step = Formula(
    name="decode_step",
    title=say("A decode step"),
    value="time",
    unit="s",
    parameters=(p.BATCH, p.CONTEXT, p.WEIGHT_ITEMSIZE, p.KV_ITEMSIZE, *p.MODEL, *p.CARD),
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
    presets=models.read_models,
    preset=models.START,
    preset_kind="model",
    capacity=memory.of_model(p.BATCH.sympy, p.CONTEXT.sympy),
    views=(
        Bars(
            parts=(Shown("weight_time", say("weights"), "s"), Shown("kv_time", say("KV cache"), "s")),
            beside=(Shown("compute_time", say("arithmetic"), "s"),),
            balance=Balance("context", "crossover"),
        ),
        Roofline(),
        Curve(),
        Readouts(
            say("time per step"),
            (
                Shown("throughput", say("all users"), "token/s"),
                Shown("ceiling", say("ceiling of any batch"), "token/s"),
                Shown("intensity", say("intensity"), "FLOP/byte"),
            ),
        ),
    ),
)

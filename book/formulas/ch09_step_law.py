"""Chapter 09: the step law, TTFT against TPOT."""

from __future__ import annotations

from dataclasses import replace

from book.cost import Cost
from book.cost.base import ceil_div
from book.formulas import models
from book.formulas import parameters as p
from book.formulas.formula import Formula, Parameter
from book.formulas.steps import PROMPT, STEP
from book.formulas.views import Curve, Readouts, Shown, Timeline
from book.say import say
from book.serving import short
from book.serving.step_law import StepLaw

_CHUNK = Parameter("chunk", say("tokens of it in a step"), 2**17, 16, 2**17, "tokens", "L_c")
_ETA = Parameter("efficiency", say("efficiency"), 0.96, 0.3, 1, latex=r"\eta", scale="linear", integer=False)
_TAU = Parameter(
    "overhead", say("overhead of a step"), 0.006, 0, 0.02, "s", r"\tau", scale="linear", integer=False
)
_law = StepLaw(1 / _ETA.sympy, _TAU.sympy)
_chunks = ceil_div(p.LENGTH.sympy, _CHUNK.sympy)
# The prompt goes in as equal chunks, one a step, beside the users' tokens: weights are read once.
# What a chunk reads again of the chunks before it is left to chapter 13.
_carrying = Cost(STEP.flops + PROMPT.flops / _chunks, STEP.reads)
_kv_per_token = short.kv_per_token(p.LAYERS.sympy, p.KV_HEADS.sympy, p.HEAD_DIM.sympy)  # 16 bits
_tpot, _mixed = (_law(p.step_time(c, p.GPUS.sympy)) for c in (STEP, _carrying))

step_law = Formula(
    name="step_law",
    title=say("The step law"),
    value="tpot",
    unit="s",
    parameters=(
        replace(p.LENGTH, high=2**17),
        _CHUNK,
        replace(p.BATCH, default=4),
        replace(p.CONTEXT, default=1536),
        p.WEIGHT_ITEMSIZE,
        p.GPUS,
        _ETA,
        _TAU,
        *p.MODEL,
        *p.CARD,
    ),
    outputs={
        "tpot": _tpot,
        "floor": p.step_time(STEP, p.GPUS.sympy),
        "mixed": _mixed,
        "stall": _mixed - _tpot,
        "chunks": _chunks,
        "ttft": _chunks * _mixed,
    },
    aliases=(p.WEIGHT_BYTES, replace(p.KV_PER_TOKEN, expression=_kv_per_token)),
    presets=models.read_models,
    preset=models.START,
    preset_kind="model",
    views=(
        Timeline(step="tpot", mixed="mixed", chunks="chunks"),
        Curve(),
        Readouts(
            say("time per output token"),
            (
                Shown("floor", say("floor of a step"), "s"),
                Shown("mixed", say("step with a chunk"), "s"),
                Shown("stall", say("everybody's stall"), "s"),
                Shown("ttft", say("time to first token"), "s"),
            ),
        ),
    ),
)

"""Chapter 09: the step law, TTFT against TPOT."""

from __future__ import annotations

from dataclasses import replace

from book.cost import Cost
from book.cost.base import ceil_div
from book.formulas import models
from book.formulas.formula import Formula, Output, Parameter, Timeline
from book.formulas.parameters import (
    BANDWIDTH,
    GPUS,
    KAPPA,
    PEAK,
    W_SIZE,
    B,
    D,
    G,
    H,
    L,
    N,
    P,
    S,
    W,
    step_time,
)
from book.formulas.steps import PROMPT, STEP
from book.serving import short
from book.serving.step_law import StepLaw

_CHUNK = Parameter("chunk", "tokens of it in a step", 2**17, 16, 2**17, "tokens", "C")
_ETA = Parameter("efficiency", "efficiency", 0.96, 0.3, 1, latex=r"\eta", scale="linear", integer=False)
_TAU = Parameter(
    "overhead", "overhead of a step", 0.006, 0, 0.02, "s", r"\tau", scale="linear", integer=False
)
_law = StepLaw(1 / _ETA.sympy, _TAU.sympy)
_chunks = ceil_div(L.sympy, _CHUNK.sympy)
# The prompt goes in as equal chunks, one a step, beside the users' tokens: weights are read once.
# What a chunk reads again of the chunks before it is left to chapter 13.
_carrying = Cost(STEP.flops + PROMPT.flops / _chunks, STEP.reads)
_tpot, _mixed = (_law(step_time(c, GPUS.sympy)) for c in (STEP, _carrying))

step_law = Formula(
    name="step_law",
    title="The step law",
    value="tpot",
    unit="s",
    value_label="time per output token",
    parameters=(
        replace(L, high=2**17),
        _CHUNK,
        replace(B, default=4),
        replace(S, default=1536),
        W_SIZE,
        GPUS,
        _ETA,
        _TAU,
        P,
        N,
        H,
        G,
        D,
        PEAK,
        BANDWIDTH,
    ),
    outputs={
        "tpot": _tpot,
        "floor": step_time(STEP, GPUS.sympy),
        "mixed": _mixed,
        "stall": _mixed - _tpot,
        "chunks": _chunks,
        "ttft": _chunks * _mixed,
    },
    aliases=(W, replace(KAPPA, expression=short.kv_per_token(N.sympy, G.sympy, D.sympy))),  # 16 bits
    described={
        "floor": Output("floor of a step", "s"),
        "mixed": Output("step with a chunk", "s"),
        "stall": Output("everybody's stall", "s"),
        "chunks": Output("chunks", ""),
        "ttft": Output("time to first token", "s"),
    },
    readouts=("floor", "mixed", "stall", "ttft"),
    timeline=Timeline(step="tpot", mixed="mixed", chunks="chunks"),
    presets=models.read_models,
    preset=models.START,
    preset_kind="model",
)

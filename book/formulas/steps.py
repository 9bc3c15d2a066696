"""Part II, whole steps: chapters 07 to 09."""

from __future__ import annotations

from dataclasses import replace

from book import cost
from book.cost import Cost
from book.cost.base import ceil_div
from book.formula import Balance, Formula, Output, Parameter, Timeline
from book.formulas import models
from book.formulas.part1 import BANDWIDTH, PEAK
from book.formulas.shared import (
    BETA,
    GPUS,
    KAPPA,
    KV_SIZE,
    W_SIZE,
    B,
    D,
    F,
    G,
    H,
    L,
    N,
    P,
    S,
    W,
    kappa,
    step_time,
    w,
)
from book.serving import short
from book.step_law import StepLaw

# ------------------------------------------------------- 07 batching pays for weights, not for KV

_step = short.decode_step(P.sympy, w, N.sympy, H.sympy, D.sympy, kappa, batch=B.sympy, context=S.sympy)

decode_step = Formula(
    name="decode_step",
    title="A decode step",
    value="time",
    unit="s",
    value_label="time per step",
    parameters=(B, S, W_SIZE, KV_SIZE, P, N, H, G, D, PEAK, BANDWIDTH),
    outputs={
        "time": step_time(_step),
        "weight_time": _step.reads["weights"] / BETA,
        "kv_time": _step.reads["kv"] / BETA,
        "compute_time": _step.flops / F,
        "throughput": B.sympy / step_time(_step),
        "ceiling": short.throughput_ceiling(BETA, S.sympy, kappa),
        "crossover": short.crossover_context(w, B.sympy, kappa),
        "intensity": _step.intensity,
        "flops": _step.flops,
        "bytes": _step.bytes,
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

# ------------------------------------------------------------------ 08 prefill attention and TTFT

_linear_flops = cost.linear(L.sympy, P.sympy, 1).flops
_prompt_flops = short.prefill_flops(P.sympy, N.sympy, H.sympy, D.sympy, L.sympy)
_prompt = Cost(_prompt_flops, {"weights": w}, {"kv": L.sympy * kappa})

prefill = Formula(
    name="prefill",
    title="A prefill",
    value="time",
    unit="s",
    value_label="time to first token",
    parameters=(L, W_SIZE, KV_SIZE, P, N, H, G, D, PEAK, BANDWIDTH),
    outputs={
        "time": step_time(_prompt),
        "linear_time": _linear_flops / F,
        "attention_time": (_prompt_flops - _linear_flops) / F,
        "memory_time": _prompt.bytes / BETA,
        "crossover": short.attention_equals_linear(P.sympy, N.sympy, H.sympy, D.sympy),
        "intensity": _prompt.intensity,
        "flops": _prompt_flops,
        "bytes": _prompt.bytes,
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

# ------------------------------------------------------------------------------- 09 the step law

_CHUNK = Parameter("chunk", "tokens of it in a step", 2**17, 16, 2**17, "tokens", "C")
_ETA = Parameter("efficiency", "efficiency", 0.96, 0.3, 1, latex=r"\eta", scale="linear", integer=False)
_TAU = Parameter(
    "overhead", "overhead of a step", 0.006, 0, 0.02, "s", r"\tau", scale="linear", integer=False
)
_law = StepLaw(1 / _ETA.sympy, _TAU.sympy)
_chunks = ceil_div(L.sympy, _CHUNK.sympy)
# The prompt goes in as equal chunks, one a step, beside the users' tokens: weights are read once.
# What a chunk reads again of the chunks before it is left to chapter 13.
_carrying = Cost(_step.flops + _prompt_flops / _chunks, _step.reads)
_tpot, _mixed = (_law(step_time(c, GPUS.sympy)) for c in (_step, _carrying))

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
        "floor": step_time(_step, GPUS.sympy),
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

"""Chapter 09: a step with somebody's prompt in it, in one piece or in chunks, in turn or at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from book import roofline
from book.cost import Number, weight_flops
from book.cost.base import ceil_div
from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Formula, Parameter
from book.formulas.steps import LINEAR_FLOPS, PROMPT, STEP
from book.formulas.views import Curve, Readouts, Shown, Timeline
from book.say import say
from book.serving import short
from book.serving.step_law import StepLaw

_CHUNK = Parameter("chunk", say("tokens of it in a step"), 2**17, 16, 2**17, "tokens", "L_c")
_SHARE: dict[str, Any] = {"low": 0.3, "high": 1, "scale": "linear", "integer": False}
_ETA = Parameter("efficiency", say("share of the bandwidth"), 0.9, latex=r"\eta", **_SHARE)
_ETA_P = Parameter("eta_p", say("share of the peak, prompts"), 0.57, latex=r"\eta_p", **_SHARE)
_TAU = Parameter(
    "overhead", say("overhead of a step"), 0.005, 0, 0.02, "s", r"\tau", scale="linear", integer=False
)
_HEAD = Parameter("head", say("output head"), latex="P_h", source="model")
_law = StepLaw(1 / _ETA.sympy, _TAU.sympy)
_tpot = _law(p.step_time(STEP, p.GPUS.sympy))
# The prompt goes in as equal chunks, one a step, beside the users' tokens: weights are read once. The last
# chunk is the longest: it looks back on all the others, and reads their cache. And it alone is multiplied by
# the output head, for one token: nobody asks for the logits of the others.
_chunks = ceil_div(p.LENGTH.sympy, _CHUNK.sympy)
_kv_per_token = short.kv_per_token(p.LAYERS.sympy, p.KV_HEADS.sympy, p.HEAD_DIM.sympy)  # 16 bits
_attention = PROMPT.flops - LINEAR_FLOPS
_in_blocks = weight_flops(p.PARAMETERS.sympy - _HEAD.sympy, p.LENGTH.sympy)
_logits = weight_flops(_HEAD.sympy)
_last = _in_blocks / _chunks + _attention * (2 - 1 / _chunks) / _chunks + _logits
_again = p.LENGTH.sympy * (1 - 1 / _chunks) * p.KV_PER_TOKEN.sympy


def _time(flops: Number, bytes_: Number) -> Number:
    """Each at the rate that it reaches; the slower one decides."""
    rates = p.PEAK.sympy * _ETA_P.sympy, p.BANDWIDTH.sympy * _ETA.sympy
    return roofline.time(flops / p.GPUS.sympy, bytes_ / p.GPUS.sympy, *rates)


_stall = _time(_last, _again)
_at_once = _time(STEP.flops + _last, STEP.bytes + _again) + _TAU.sympy

step_law = Formula(
    name="step_law",
    title=say("A step with somebody's prompt in it"),
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
        _ETA_P,
        _TAU,
        *p.MODEL,
        _HEAD,
        *p.CARD,
    ),
    outputs={
        "tpot": _tpot,
        "floor": p.step_time(STEP, p.GPUS.sympy),
        "mixed": _tpot + _stall,
        "stall": _stall,
        "mixed_at_once": _at_once,
        "stall_at_once": roofline.most(_at_once - _tpot, 0),
        "chunks": _chunks,
        "ttft": _time(_in_blocks + _attention + _logits, 0) + _chunks * _tpot,
    },
    aliases=(p.WEIGHT_BYTES, replace(p.KV_PER_TOKEN, expression=_kv_per_token)),
    presets=models.read_models,
    preset=models.START,
    preset_kind="model",
    capacity=memory.of_model(p.BATCH.sympy, p.CONTEXT.sympy, p.GPUS, per_token=_kv_per_token),
    views=(
        Timeline(step="tpot", mixed="mixed", chunks="chunks"),
        Curve(),
        Readouts(
            say("time of an ordinary step"),
            (
                Shown("mixed", say("step with the last chunk, in turn"), "s"),
                Shown("stall", say("stall, in turn"), "s"),
                Shown("stall_at_once", say("stall, if all overlapped"), "s"),
                Shown("ttft", say("the newcomer's first token"), "s"),
            ),
        ),
    ),
)

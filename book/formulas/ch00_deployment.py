"""The front page, and the sentence at the top of every chapter: one decode step of what a reader serves."""

from __future__ import annotations

from book import cost
from book.cost import Cost
from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Alias, Formula
from book.formulas.views import Bars, Readouts, Roofline, Shown, Work
from book.say import say
from book.serving import short

# What one of the cards does in a step: its part of the linear layers, and its part of attention.
_LINEAR = Cost(
    cost.weight_flops(p.PARAMETERS.sympy, p.BATCH.sympy) / p.GPUS.sympy,
    {"weights": p.WEIGHT_BYTES.sympy / p.GPUS.sympy},
)
_ALL_HEADS = cost.decode_attention(
    p.BATCH.sympy, p.HEADS.sympy, p.HEADS.sympy, p.HEAD_DIM.sympy, p.CONTEXT.sympy
)
# Heads are dealt out whole, so of eight KV heads each of sixteen cards holds one, and two hold the same.
KV_ON_A_CARD = Alias(
    "kv_on_a_card",
    say("cache per token on a card"),
    r"\kappa_n",
    p.KV_PER_TOKEN.expression * short.kv_share(p.KV_HEADS.sympy, p.GPUS.sympy),
)
_ATTENTION = Cost(
    p.LAYERS.sympy * _ALL_HEADS.flops / p.GPUS.sympy,
    {"kv": p.BATCH.sympy * p.CONTEXT.sympy * KV_ON_A_CARD.sympy},
)
_STEP = _LINEAR + _ATTENTION
_TIME = p.step_time(_STEP)

deployment = Formula(
    name="deployment",
    title=say("A decode step of yours"),
    value="time",
    unit="s",
    parameters=(p.BATCH, p.CONTEXT, p.WEIGHT_ITEMSIZE, p.KV_ITEMSIZE, p.GPUS, *p.MODEL, *p.CARD),
    outputs={
        "time": _TIME,
        "per_user": 1 / _TIME,
        "throughput": p.BATCH.sympy / _TIME,
        "linear_time": p.step_time(_LINEAR),
        "attention_time": p.step_time(_ATTENTION),
        "linear_intensity": _LINEAR.intensity,
        "attention_intensity": _ATTENTION.intensity,
        "intensity": _STEP.intensity,
    },
    aliases=(p.WEIGHT_BYTES, KV_ON_A_CARD),
    presets=models.read_models,
    preset=models.START,
    preset_kind="model",
    capacity=memory.of_model(p.BATCH.sympy, p.CONTEXT.sympy, p.GPUS),
    views=(
        Roofline(
            parts=(
                Work(say("linear layers"), "linear_intensity", "linear_time"),
                Work(say("attention"), "attention_intensity", "attention_time"),
            )
        ),
        Bars(
            parts=(
                Shown("linear_time", say("linear layers"), "s"),
                Shown("attention_time", say("attention"), "s"),
            )
        ),
        Readouts(
            say("time per step"),
            (
                Shown("per_user", say("each user"), "token/s"),
                Shown("throughput", say("all users"), "token/s"),
            ),
        ),
    ),
)

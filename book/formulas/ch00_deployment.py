"""The front page, and the sentence at the top of every chapter: one decode step of what a reader serves.

The formula holds for every model of the catalog: for layers with windows and layers without, for latent
caches, for mixtures of experts. Its facts of a model are `models.served_models`.
"""

from __future__ import annotations

import sympy

from book import cost, roofline
from book.cost import Cost
from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Alias, Formula, Parameter
from book.formulas.views import Bars, Readouts, Roofline, Shown, Work
from book.say import say
from book.serving import short
from book.serving.weights import experts_touched

ROUTED = Parameter("routed", say("parameters of all routed experts"), latex="P_E", source="model")
EXPERTS = Parameter("experts", say("experts of a layer"), latex="E", source="model")
CHOSEN = Parameter("chosen", say("experts that a token is sent to"), latex="k", source="model")
WINDOWED = Parameter("windowed", say("layers with a window"), latex="D_w", source="model")
WINDOW = Parameter("window", say("tokens that a window reaches back over"), latex="S_w", source="model")
CHUNK = Parameter("chunk", say("tokens of a chunk, for layers that begin anew"), latex="S_c", source="model")
SCORES = Parameter("scores", say("operations of a token of context in a layer"), latex="f_a", source="model")
CACHED = Parameter("cached", say("numbers that a token keeps in a layer"), latex=r"\kappa_1", source="model")

# The parameters of this formula are those that every step reads, and those that it may, which are experts'.
_SHARE = CHOSEN.sympy / EXPERTS.sympy
MET = Alias("met", say("parameters that a token meets"), "P_a", p.PARAMETERS.sympy + ROUTED.sympy * _SHARE)


def _read(rows: sympy.Expr | int) -> sympy.Expr:
    """Bytes of weights that a step of so many tokens reads, if experts are chosen evenly."""
    touched = experts_touched(EXPERTS.sympy, CHOSEN.sympy, rows) / EXPERTS.sympy
    return (p.PARAMETERS.sympy + ROUTED.sympy * touched) * p.WEIGHT_ITEMSIZE.sympy


WEIGHTS_READ = Alias("weight_bytes", say("weights that a step reads"), "W", _read(p.BATCH.sympy))
WEIGHTS_OF_ONE = _read(1)  # what a step reads for one token


def _by_layers(windowed: sympy.Expr, context: sympy.Expr) -> sympy.Expr:
    """The mean over all layers: a windowed one looks back on `windowed` tokens, others on `context`."""
    part = WINDOWED.sympy / p.LAYERS.sympy
    return (1 - part) * context + part * windowed


_IN_CHUNK = (p.CONTEXT.sympy - 1) % CHUNK.sympy + 1
SEEN = Alias(
    "seen",
    say("tokens that attention looks back on, averaged over the layers"),
    "S_a",
    _by_layers(roofline.least(WINDOW.sympy, _IN_CHUNK), p.CONTEXT.sympy),
)


def kept(context: sympy.Expr) -> sympy.Expr:
    """Tokens in the cache, averaged over the layers: of a window no more than the window."""
    reach = roofline.least(WINDOW.sympy, CHUNK.sympy)
    return _by_layers(roofline.least(context, reach), context)


KV_PER_TOKEN = p.LAYERS.sympy * CACHED.sympy * p.KV_ITEMSIZE.sympy  # in all layers, on all cards
# Heads are dealt out whole, so of eight KV heads each of sixteen cards holds one, and two hold the same.
KV_ON_A_CARD = Alias(
    "kv_on_a_card",
    say("cache per token on a card"),
    r"\kappa_n",
    KV_PER_TOKEN * short.kv_share(p.KV_HEADS.sympy, p.GPUS.sympy),
)

# What one of the cards does in a step: its part of the linear layers, and its part of attention.
_LINEAR = Cost(
    cost.weight_flops(MET.sympy, p.BATCH.sympy) / p.GPUS.sympy,
    {"weights": WEIGHTS_READ.sympy / p.GPUS.sympy},
)
_ATTENTION = Cost(
    p.LAYERS.sympy * SCORES.sympy * SEEN.sympy * p.BATCH.sympy / p.GPUS.sympy,
    {"kv": p.BATCH.sympy * SEEN.sympy * KV_ON_A_CARD.sympy},
)
_STEP = _LINEAR + _ATTENTION
_TIME = p.step_time(_STEP)

deployment = Formula(
    name="deployment",
    title=say("A decode step of yours"),
    value="time",
    unit="s",
    parameters=(
        *(p.BATCH, p.CONTEXT, p.WEIGHT_ITEMSIZE, p.KV_ITEMSIZE, p.GPUS),
        *(p.PARAMETERS, ROUTED, EXPERTS, CHOSEN, p.LAYERS, WINDOWED, WINDOW, CHUNK, SCORES, CACHED),
        *(p.KV_HEADS, *p.CARD),
    ),
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
    aliases=(MET, WEIGHTS_READ, SEEN, KV_ON_A_CARD),
    presets=models.served_models,
    preset=models.START,
    preset_kind="model",
    capacity=memory.of_model(
        p.BATCH.sympy,
        p.CONTEXT.sympy,
        p.GPUS,
        per_token=KV_PER_TOKEN * kept(p.CONTEXT.sympy) / p.CONTEXT.sympy,
    ),
    views=(
        Roofline(
            works=(
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

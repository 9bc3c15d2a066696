"""The parameters that several chapters' formulas share: a card's, and a whole model's.

A formulas file says `from book.formulas import parameters as p`, then `p.BATCH` for the slider and
`p.BATCH.sympy` for its symbol.
"""

from __future__ import annotations

from typing import Any

from book import catalog, cost, roofline
from book.cost import Cost, Number
from book.formulas.formula import Alias, Parameter
from book.say import say
from book.serving import short

PEAK = Parameter("peak", say("peak compute"), 989.4e12, unit="FLOP/s", latex="F", source="accelerator")
BANDWIDTH = Parameter(
    "bandwidth", say("memory bandwidth"), 3.35e12, unit="byte/s", latex=r"\beta", source="accelerator"
)
ITEMSIZE = Parameter("itemsize", say("bytes per element"), 2, latex="s", unit="byte", source="dtype")

ACTIVATION_ITEMSIZE = Parameter(
    "itemsize", say("bytes of an activation"), 2, latex="e", unit="byte", source="dtype"
)

PARAMETERS = Parameter("parameters", say("parameters"), latex="P", source="model")
LAYERS = Parameter("layers", say("layers"), latex="D", source="model")
HEADS = Parameter("heads", say("query heads"), latex="H", source="model")
KV_HEADS = Parameter("kv_heads", say("KV heads"), latex="G", source="model")
ACTIVATIONS = Parameter("activations", say("activations of a token"), latex="A", source="model")
HEAD_DIM = Parameter("head_dim", say("head dimension"), latex="d", source="model")
# Of a formula whose P leaves out what a step doesn't read: memory holds it all the same.
STORED_PARAMETERS = Parameter("stored", say("parameters in memory"), source="model")
# The longest context of the chosen model; where sliders make a model of their own, as long as you like.
MAX_CONTEXT = Parameter("max_context", say("longest context"), 2**40, source="model")
CAPACITY = Parameter("capacity", say("memory of a card"), 80e9, unit="byte", latex="C", source="accelerator")
ALONE = Parameter("alone", say("whether nothing joins two such cards"), 0, 0, 1, source="accelerator")
BATCH = Parameter("batch", say("sequences in the batch"), 32, 1, 1024, latex="B")
CONTEXT = Parameter("context", say("context of each"), 4096, 128, 2**20, "tokens", "S")
LENGTH = Parameter("length", say("prompt"), 8192, 16, 2**20, "tokens", "L")
GPUS = Parameter("gpus", say("cards that share it"), 1, latex="n", steps=(1, 2, 4, 8))
# Bytes that a stored number takes with its scales: 4, 4.125, 4.25, 4.5, 8 and 16 bits.
STORED = tuple(map(catalog.effective_itemsize, ("int4", "int4_g128", "mxfp4", "nvfp4", "fp8", "bf16")))
_STORED_IN: dict[str, Any] = {"unit": "byte", "integer": False, "steps": STORED, "shown_in": "bit"}
WEIGHT_ITEMSIZE = Parameter("weight_itemsize", say("size of a weight"), 2, latex="w", **_STORED_IN)
KV_ITEMSIZE = Parameter("kv_itemsize", say("size of a cached number"), 2, latex="s", **_STORED_IN)

CARD = (PEAK, BANDWIDTH)
MODEL = (PARAMETERS, LAYERS, HEADS, KV_HEADS, HEAD_DIM)

# All products of a step with weights, and nothing of its activations: what the text calls W.
WEIGHTS = cost.weights(PARAMETERS.sympy, BATCH.sympy, WEIGHT_ITEMSIZE.sympy)
WEIGHT_BYTES = Alias("weight_bytes", say("weights"), "W", WEIGHTS.bytes)
KV_PER_TOKEN = Alias(
    "kv_per_token",
    say("cache per token"),
    r"\kappa",
    short.kv_per_token(LAYERS.sympy, KV_HEADS.sympy, HEAD_DIM.sympy, KV_ITEMSIZE.sympy),
)


def step_time(c: Cost, cards: Number = 1) -> Number:
    """The floor of a step whose work `cards` cards share evenly."""
    return roofline.time(c.flops / cards, c.bytes / cards, PEAK.sympy, BANDWIDTH.sympy)

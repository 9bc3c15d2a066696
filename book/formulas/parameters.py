"""The parameters and letters that several chapters' formulas share: a card's, and a whole model's."""

from __future__ import annotations

from book import cost, roofline
from book.cost import Cost, Number
from book.formulas.formula import Alias, Parameter, symbol
from book.serving import short

PEAK = Parameter("peak", "peak compute", 989.4e12, unit="FLOP/s", latex="F", source="accelerator")
BANDWIDTH = Parameter(
    "bandwidth", "memory bandwidth", 3.35e12, unit="byte/s", latex=r"\beta", source="accelerator"
)
ITEMSIZE = Parameter("itemsize", "bytes per element", 2, latex="s", unit="byte", source="dtype")

F, BETA = PEAK.sympy, BANDWIDTH.sympy

P = Parameter("parameters", "parameters", latex="P", source="model")
N = Parameter("layers", "layers", latex="N", source="model")
H = Parameter("heads", "query heads", latex="H", source="model")
G = Parameter("kv_heads", "KV heads", latex="G", source="model")
D = Parameter("head_dim", "head dimension", latex="d", source="model")
B = Parameter("batch", "sequences in the batch", 32, 1, 1024, latex="B")
S = Parameter("context", "context of each", 4096, 128, 2**20, "tokens", "S")
L = Parameter("length", "prompt", 8192, 16, 2**20, "tokens", "L")
GPUS = Parameter("gpus", "cards that share it", 1, latex="n", steps=(1, 2, 4, 8))
W_SIZE = Parameter("weight_itemsize", "bytes per weight", 2, latex="w", integer=False, steps=(0.5, 1, 2))
KV_SIZE = Parameter("kv_itemsize", "bytes per cached number", 2, latex="s", integer=False, steps=(0.5, 1, 2))

# What the text calls W and kappa. All weights together are one matrix that every token passes.
WEIGHTS = cost.linear(B.sympy, P.sympy, 1, W_SIZE.sympy)
W = Alias("weight_bytes", "weights", "W", WEIGHTS.reads["w"])
KAPPA = Alias(
    "kv_per_token",
    "cache per token",
    r"\kappa",
    short.kv_per_token(N.sympy, G.sympy, D.sympy, KV_SIZE.sympy),
)
w, kappa = symbol(W.symbol), symbol(KAPPA.symbol)


def step_time(c: Cost, cards: Number = 1) -> Number:
    """The floor of a step whose work `cards` cards share evenly."""
    return roofline.time(c.flops / cards, c.bytes / cards, F, BETA)

"""Whole steps in symbols, as chapters 07 to 09 share them: a decode step, and a prompt."""

from __future__ import annotations

from book import cost
from book.cost import Cost
from book.formulas import parameters as p
from book.serving import short

STEP = short.decode_step(
    p.PARAMETERS.sympy,
    p.WEIGHT_BYTES.sympy,
    p.LAYERS.sympy,
    p.HEADS.sympy,
    p.HEAD_DIM.sympy,
    p.KV_PER_TOKEN.sympy,
    batch=p.BATCH.sympy,
    context=p.CONTEXT.sympy,
)
LINEAR_FLOPS = cost.weight_flops(p.PARAMETERS.sympy, p.LENGTH.sympy)
PROMPT = Cost(
    short.prefill_flops(p.PARAMETERS.sympy, p.LAYERS.sympy, p.HEADS.sympy, p.HEAD_DIM.sympy, p.LENGTH.sympy),
    {
        "weights": p.WEIGHT_BYTES.sympy,
        "activations": p.LENGTH.sympy * p.ACTIVATIONS.sympy * p.ACTIVATION_ITEMSIZE.sympy,
    },
    {"kv": p.LENGTH.sympy * p.KV_PER_TOKEN.sympy},
)

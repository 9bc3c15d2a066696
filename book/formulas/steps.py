"""Whole steps in symbols, as chapters 07 to 09 share them: a decode step, and a prompt."""

from __future__ import annotations

from book import cost
from book.cost import Cost
from book.formulas.parameters import B, D, H, L, N, P, S, kappa, w
from book.serving import short

STEP = short.decode_step(P.sympy, w, N.sympy, H.sympy, D.sympy, kappa, batch=B.sympy, context=S.sympy)
LINEAR_FLOPS = cost.linear(L.sympy, P.sympy, 1).flops
PROMPT = Cost(
    short.prefill_flops(P.sympy, N.sympy, H.sympy, D.sympy, L.sympy), {"weights": w}, {"kv": L.sympy * kappa}
)

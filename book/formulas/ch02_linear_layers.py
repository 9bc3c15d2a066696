"""Chapter 02: the linear layer."""

from __future__ import annotations

from book import catalog, cost
from book.formulas import parameters as p
from book.formulas.formula import Formula, Limit, Parameter, symbol
from book.formulas.views import Curve, Readouts, Roofline
from book.say import say

linear = Formula.of_cost(
    "linear",
    say("A linear layer"),
    cost.linear,
    (
        Parameter("m", say("rows in the step"), 32, 1, 8192, latex="M"),
        Parameter("k", say("inputs"), 4096, 256, 32768, latex="K"),
        Parameter("n", say("outputs"), 14336, 256, 131072, latex="N"),
        p.ITEMSIZE,
    ),
    limit=Limit("m", cost.weight_intensity(symbol("m"), symbol("itemsize")), say("weights only")),
    presets=catalog.linear_layers,
    views=(Roofline(), Curve(), Readouts(say("intensity"))),
)

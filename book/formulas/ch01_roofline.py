"""Chapter 01: the roofline, and the kernel that walks along it."""

from __future__ import annotations

from book import cost, roofline
from book.formulas import parameters as p
from book.formulas.formula import Formula, Parameter, symbol
from book.formulas.views import Curve, Readouts, Roofline
from book.say import say

attainable = Formula(
    name="attainable",
    title=say("The roofline"),
    value="attainable",
    unit="FLOP/s",
    parameters=(
        Parameter("intensity", say("arithmetic intensity"), 16, 0.25, 4096, "FLOP/byte", "I", integer=False),
        p.PEAK,
        p.BANDWIDTH,
    ),
    outputs={
        "attainable": roofline.attainable(symbol("intensity"), symbol("peak"), symbol("bandwidth")),
        "intensity": symbol("intensity"),
    },
    views=(Roofline(), Curve(), Readouts(say("attainable"))),
)

fma_chain = Formula.of_cost(
    "fma_chain",
    say("A chain of fused multiply-adds"),
    cost.fma_chain,
    (
        Parameter("k", say("multiply-adds per element"), 16, 1, 1024, latex="a"),
        Parameter("n", say("elements"), 2**24, 2**10, 2**28, latex="v"),
        p.ITEMSIZE,
    ),
    views=(Roofline(), Curve(), Readouts(say("intensity"))),
)

"""Chapter 01: the roofline, and the kernel that walks along it."""

from __future__ import annotations

from book import cost, roofline
from book.formulas import parameters as p
from book.formulas.formula import Formula, Parameter, symbol
from book.formulas.views import Curve, Readouts, Roofline

attainable = Formula(
    name="attainable",
    title="The roofline",
    value="attainable",
    unit="FLOP/s",
    parameters=(
        Parameter("intensity", "arithmetic intensity", 16, 0.25, 4096, "FLOP/byte", "I", integer=False),
        p.PEAK,
        p.BANDWIDTH,
    ),
    outputs={
        "attainable": roofline.attainable(symbol("intensity"), symbol("peak"), symbol("bandwidth")),
        "intensity": symbol("intensity"),
    },
    views=(Roofline(), Curve(), Readouts("attainable")),
)

fma_chain = Formula.of_cost(
    "fma_chain",
    "A chain of fused multiply-adds",
    cost.fma_chain,
    (
        Parameter("k", "multiply-adds per element", 16, 1, 1024, latex="k"),
        Parameter("n", "elements", 2**24, 2**10, 2**28, latex="n"),
        p.ITEMSIZE,
    ),
    views=(Roofline(), Curve(), Readouts("intensity")),
)

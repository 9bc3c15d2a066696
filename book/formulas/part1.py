"""Part I, the ruler: chapters 01 and 02."""

from __future__ import annotations

from book import catalog, cost, roofline
from book.formula import Formula, Limit, Parameter, symbol

PEAK = Parameter("peak", "peak compute", 989.4e12, unit="FLOP/s", latex="F", source="accelerator")
BANDWIDTH = Parameter(
    "bandwidth", "memory bandwidth", 3.35e12, unit="byte/s", latex=r"\beta", source="accelerator"
)
_ITEMSIZE = Parameter("itemsize", "bytes per element", 2, latex="s", unit="byte", source="dtype")

# ------------------------------------------------------------------------------ 01 the roofline

attainable = Formula(
    name="attainable",
    title="The roofline",
    value="attainable",
    unit="FLOP/s",
    value_label="attainable",
    parameters=(
        Parameter("intensity", "arithmetic intensity", 16, 0.25, 4096, "FLOP/byte", "I", integer=False),
        PEAK,
        BANDWIDTH,
    ),
    outputs={
        "attainable": roofline.attainable(symbol("intensity"), symbol("peak"), symbol("bandwidth")),
        "intensity": symbol("intensity"),
    },
)

fma_chain = Formula.of_cost(
    "fma_chain",
    "A chain of fused multiply-adds",
    cost.fma_chain,
    (
        Parameter("k", "multiply-adds per element", 16, 1, 1024, latex="k"),
        Parameter("n", "elements", 2**24, 2**10, 2**28, latex="n"),
        _ITEMSIZE,
    ),
    value_label="intensity",
)

# ------------------------------------------------------------------------ 02 the linear layer

linear = Formula.of_cost(
    "linear",
    "A linear layer",
    cost.linear,
    (
        Parameter("m", "rows in the step", 32, 1, 8192, latex="M"),
        Parameter("k", "inputs", 4096, 256, 32768, latex="K"),
        Parameter("n", "outputs", 14336, 256, 131072, latex="N"),
        _ITEMSIZE,
    ),
    limit=Limit("m", 2 * symbol("m") / symbol("itemsize"), "weights only"),
    value_label="intensity",
    presets=catalog.linear_layers,
)

PART1: tuple[Formula, ...] = (attainable, fma_chain, linear)

"""Formulas that no chapter has yet, for the tests' page: one beside a simulator's runs, one in a band.

Static batching is chapter 10's formula; the experts that a step touches are chapter 17's.
"""

from __future__ import annotations

from book.formulas.band import Band
from book.formulas.formula import Formula, Parameter, symbol
from book.formulas.views import Curve, Kind, Readouts, Shown, Trace
from book.roofline import least
from book.simulators import scheduler

SEED = 10
B = Parameter("batch", "requests in a batch", 8, 1, 32, latex="B")
MEAN = Parameter("mean", "mean length", 500, 1, 4096, unit="tokens", latex="m")

static_batching = Formula(
    name="static_batching",
    title="Static batching",
    value="efficiency",
    unit="%",
    parameters=(B, MEAN),
    outputs={
        "efficiency": scheduler.static_efficiency(B.sympy),
        "longest": scheduler.expected_longest(B.sympy, MEAN.sympy),
    },
    views=(
        Trace(
            simulate=lambda batch: scheduler.side_by_side(batch, MEAN.default, SEED),
            grid={"batch": (1, 2, 3, 4, 6, 8, 12, 16, 32)},
            compare={
                "efficiency": Shown("efficiency", f"efficiency of {scheduler.BATCHES} batches", "%"),
                "longest": Shown("longest", "a batch takes on average", "iterations"),
            },
            kinds={
                scheduler.USEFUL: Kind("makes a token", "predicted"),
                scheduler.HELD: Kind("waits for its batch"),
            },
            unit="iterations",
        ),
        Curve(),
        Readouts("efficiency", (Shown("longest", "longest of a batch", "iterations"),)),
    ),
)

E, K, ROWS = (symbol(name) for name in ("experts", "chosen", "rows"))

experts_touched = Formula(
    name="experts_touched",
    title="Experts that a step reads",
    value="touched",
    unit="experts",
    parameters=(
        Parameter("rows", "tokens in a step", 32, 1, 4096, latex="B"),
        Parameter("chosen", "experts a token", 8, 1, 8, latex="k"),
        Parameter("experts", "experts", 128, 8, 512, latex="E"),
    ),
    outputs={"touched": Band(low=K, expected=E * (1 - (1 - K / E) ** ROWS), high=least(K * ROWS, E))},
    views=(Readouts("experts touched"),),
)

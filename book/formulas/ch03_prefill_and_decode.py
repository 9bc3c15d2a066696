"""Chapter 03: rows in a step, and the share of the peak that they reach."""

from __future__ import annotations

from book import cost, serving
from book.formulas import parameters as p
from book.formulas.formula import Formula, Parameter
from book.formulas.views import Curve, Readouts, Roofline, Shown, Turn
from book.say import say

_ROWS = Parameter("m", say("rows in the step"), 32, 1, 131072, latex="M")

utilisation = Formula(
    name="utilisation",
    title=say("The share of the peak"),
    value="utilisation",
    unit="%",
    # The dropdown decides the arithmetic, the slider how weights are stored: they need not agree.
    parameters=(_ROWS, p.WEIGHT_ITEMSIZE, p.PEAK, p.BANDWIDTH),
    outputs={
        "utilisation": serving.utilisation(
            _ROWS.sympy, p.PEAK.sympy, p.BANDWIDTH.sympy, p.WEIGHT_ITEMSIZE.sympy
        ),
        "critical": serving.critical_rows(p.PEAK.sympy, p.BANDWIDTH.sympy, p.WEIGHT_ITEMSIZE.sympy),
        "intensity": cost.weight_intensity(_ROWS.sympy, p.WEIGHT_ITEMSIZE.sympy),
    },
    presets=lambda: {
        say("decode"): {say("1 user") if b == 1 else say("{b} users", b=b): {"m": b} for b in (1, 32, 128)},
        say("prefill"): {say("a prompt of {n:,} tokens", n=n): {"m": n} for n in (512, 2048, 8192)},
    },
    preset_kind="phase",
    views=(
        Roofline(),
        Curve(turn=Turn("m", "critical", "M*∞")),
        Readouts(say("utilisation"), (Shown("critical", say("critical rows, M*∞")),)),
    ),
)

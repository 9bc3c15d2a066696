"""Sentences below an explorer's picture that go with the sliders. The page's remarks.js says the same."""

from __future__ import annotations

import math
from collections.abc import Mapping

from book.drawing import number_text
from book.formulas.formula import Formula
from book.formulas.views import Stack
from book.widgets.words import word


def stacked(formula: Formula, at: Mapping[str, float]) -> str:
    """What a stack of terms adds up to beside what was measured; "" for a formula without a stack."""
    view = formula.view("stack")
    if not isinstance(view, Stack):
        return ""
    unit = view.parts[0].unit
    values = {s.label: float(formula.evaluate(s.output, **at)) for s in view.parts}
    known = [v for v in values.values() if not math.isnan(v)]
    unknown = ", ".join(label for label, v in values.items() if math.isnan(v))
    measured = float(formula.evaluate(view.measured, **at)) if view.measured else math.nan
    rest = measured - sum(known)
    said = word(
        "stack_alone" if math.isnan(measured) else "stack_over" if rest < 0 else "stack_under",
        sum=number_text.si(sum(known), unit),
        measured=number_text.si(measured, unit),
        rest=number_text.si(abs(rest), unit),
    )
    return " ".join(filter(None, (said, word("stack_unknown", parts=unknown) if unknown else "")))

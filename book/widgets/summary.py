"""The explorer in one sentence, for those who can't see or move it. The front-end says the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from book import catalog
from book.drawing import number_text
from book.formulas.formula import Parameter
from book.roofline import Roof
from book.widgets.explorer_payload import named, shown_outputs
from book.widgets.position import lacking, position, roofs
from book.widgets.remarks import memory, stacked
from book.widgets.words import word

if TYPE_CHECKING:
    from book.widgets.explorer import Explorer


def summary(explorer: Explorer) -> str:
    """Where the sliders stand and what follows from it, and what is said below the picture."""
    if missing := lacking(explorer):
        card = catalog.accelerator(explorer.accelerator).short_name
        return word("no_fact", accelerator=card, fact=missing[0].label)
    at = position(explorer)
    said = stacked(explorer.formula, at), memory(explorer.formula, at, explorer.preset).sentence
    return " ".join(filter(None, (_meaning(explorer, at), *said)))


def _meaning(explorer: Explorer, at: dict[str, float]) -> str:
    """The position, and what the formula says of it."""
    formula = explorer.formula
    where = ", ".join(f"{named(p)} = {_setting(at[p.symbol], p)}" for p in formula.parameters if not p.source)
    roof = roofs(explorer).get(explorer.accelerator) if formula.view("roofline") else None
    if shown_outputs(formula):
        return _whole(explorer, at, where, roof)
    if roof is None:
        value = f"{formula.readouts.value} {_quantity(float(formula(**at)), formula.unit)}"
        return word("summary_plain", position=where, value=value)
    intensity = float(formula.evaluate("intensity", **at))
    attainable = float(roof.attainable(intensity))
    return word(
        "summary_roof",
        accelerator=roof.name,
        dtype=explorer.dtype,
        position=where,
        intensity=number_text.number(intensity),
        attainable=number_text.si(attainable, "FLOP/s"),
        percent=f"{number_text.number(100 * attainable / roof.peak)} %",
        bound=word("memory" if intensity < roof.ridge else "compute"),
    )


def _setting(value: float, p: Parameter) -> str:
    """A slider's position as it is read beside the slider."""
    shown = value * p.shown_scale
    if p.unit == "s":
        return number_text.si(value, p.unit)
    text = f"{shown:,.0f}" if shown == int(shown) else f"{shown:.4g}"
    return f"{text} {p.shown_in}" if p.shown_in else text


def _quantity(value: float, unit: str) -> str:
    if math.isnan(value):
        return word("no_value")
    if unit == "%":
        return f"{number_text.number(100 * value)} %"
    if not unit and math.isfinite(value) and value == int(value):
        return number_text.number(int(value))  # a count
    return number_text.si(value, unit) if unit else number_text.number(value)


def _whole(explorer: Explorer, at: dict[str, float], where: str, roof: Roof | None) -> str:
    """The sentence of a formula with several outputs: each by its name."""
    formula = explorer.formula
    told = [f"{formula.readouts.value} {_quantity(float(formula(**at)), formula.unit)}"]
    for one in shown_outputs(formula):
        told.append(f"{one.label} {_quantity(float(formula.evaluate(one.output, **at)), one.unit)}")
    if roof is not None:
        memory = float(formula.evaluate("intensity", **at)) < roof.ridge
        told.append(f"{word('bound')} {word('memory' if memory else 'compute')}")
    card = catalog.accelerator(explorer.accelerator).short_name if explorer.accelerator else ""
    rated = any(p.fact == "peak" or p.source == "dtype" for p in formula.parameters)
    about = ", ".join(filter(None, (card, explorer.dtype if rated else "", explorer.preset)))
    values = ", ".join(told)
    if not about:
        return word("summary_plain", position=where, value=values)
    return word("summary_whole", about=about, position=where, values=values)

"""The explorer for those who can't move it: one sentence, and one small picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

from book import catalog
from book.drawing import figures, number_text
from book.roofline import Roof
from book.widgets import explorer_payload, still_views
from book.widgets.words import WORDS

if TYPE_CHECKING:
    from book.widgets.explorer import Explorer

COLOURS = 24  # as many as the picture needs: a palette makes the PNG four times smaller


def _roofs(explorer: Explorer) -> dict[str, Roof]:
    """The roofs in the picture by the card's id."""
    drawn, dtype = {*explorer.shown, explorer.accelerator}, explorer.dtype
    cards = [a for a in explorer.payload["accelerators"] if a["id"] in drawn and dtype in a["peaks"]]
    return {a["id"]: Roof(a["name"], a["peaks"][dtype], a["bandwidth"]) for a in cards}


def position(explorer: Explorer) -> dict[str, float]:
    """Every parameter's value: the sliders', and what the dropdowns decide."""
    formula = explorer.formula
    decided = {"itemsize": catalog.itemsize(explorer.dtype)} if explorer.dtype else {}
    if explorer.preset:
        decided |= formula.preset_values(explorer.preset)
    if explorer.accelerator:
        card = catalog.accelerator(explorer.accelerator)
        decided |= {"peak": card.peak(explorer.dtype), "bandwidth": card.bandwidth}
        decided |= {"capacity": card.driver_bytes or card.capacity}
    sourced = {p.symbol: decided.get(p.symbol, p.default) for p in formula.parameters if p.source}
    return {**explorer.values, **sourced}


def summary(explorer: Explorer) -> str:
    """Where the sliders stand and what follows from it."""
    formula, at = explorer.formula, position(explorer)
    where = ", ".join(
        f"{explorer_payload.letter(p)} = {_setting(at[p.symbol], p.unit)}"
        for p in formula.parameters
        if not p.source
    )
    if formula.readouts or formula.parts:
        return _whole(explorer, at, where)
    roof = _roofs(explorer).get(explorer.accelerator) if formula.on_roofline else None
    if roof is None:
        value = f"{formula.value_label or formula.value} {number_text.si(float(formula(**at)), formula.unit)}"
        return WORDS["summary_plain"].format(position=where, value=value)
    intensity = float(formula.evaluate("intensity", **at))
    attainable = float(roof.attainable(intensity))
    return WORDS["summary_roof"].format(
        accelerator=roof.name,
        dtype=explorer.dtype,
        position=where,
        intensity=number_text.number(intensity),
        attainable=number_text.si(attainable, "FLOP/s"),
        percent=f"{number_text.number(100 * attainable / roof.peak)} %",
        bound=WORDS["memory" if intensity < roof.ridge else "compute"],
    )


def _setting(value: float, unit: str) -> str:
    if unit == "s":
        return number_text.si(value, unit)
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def _quantity(value: float, unit: str) -> str:
    if unit == "%":
        return f"{number_text.number(100 * value)} %"
    return number_text.si(value, unit) if unit else number_text.number(value)


def _whole(explorer: Explorer, at: dict[str, float], where: str) -> str:
    """The sentence of a formula with several outputs: each by its name."""
    formula = explorer.formula
    told = [f"{formula.value_label} {_quantity(float(formula(**at)), formula.unit)}"]
    for name in dict.fromkeys((*formula.parts, *formula.beside, *formula.readouts)):
        output = formula.described[name]
        told.append(f"{output.label} {_quantity(float(formula.evaluate(name, **at)), output.unit)}")
    roof = _roofs(explorer).get(explorer.accelerator) if formula.on_roofline else None
    if roof is not None:
        memory = float(formula.evaluate("intensity", **at)) < roof.ridge
        told.append(f"{WORDS['bound']} {WORDS['memory' if memory else 'compute']}")
    card = catalog.accelerator(explorer.accelerator).short_name if explorer.accelerator else ""
    rated = any(p.symbol in ("peak", "itemsize") and p.source for p in formula.parameters)
    about = ", ".join(filter(None, (card, explorer.dtype if rated else "", explorer.preset)))
    return WORDS["summary_whole"].format(about=about, position=where, values=", ".join(told))


def picture(explorer: Explorer) -> bytes:
    """A PNG of under 10 KB, the same bytes for the same state."""
    at = position(explorer)
    if explorer.view == "roofline":
        roofs = _roofs(explorer)
        intensity = float(explorer.formula.evaluate("intensity", **at))
        figure = figures.roofline(
            list(roofs.values()), highlight=roofs[explorer.accelerator].name, operating=intensity
        )
    elif explorer.view in still_views.DRAW:
        figure = still_views.DRAW[explorer.view](explorer.formula, at)
    else:
        figure = figures.formula(explorer.formula, explorer.against, **at)
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90, facecolor=figures.colour("background"))
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(packed, format="png", optimize=True)
    return packed.getvalue()

"""The explorer for those who can't move it: one sentence, and one small picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

from book import catalog, display, explorer_payload, figures
from book.explorer_words import WORDS
from book.roofline import Roof

if TYPE_CHECKING:
    from book.explorer import Explorer

COLOURS = 24  # as many as the picture needs: a palette makes the PNG four times smaller


def _roofs(explorer: Explorer) -> dict[str, Roof]:
    """The roofs in the picture by the card's id."""
    drawn, dtype = {*explorer.shown, explorer.accelerator}, explorer.dtype
    cards = [a for a in explorer.payload["accelerators"] if a["id"] in drawn and dtype in a["peaks"]]
    return {a["id"]: Roof(a["name"], a["peaks"][dtype], a["bandwidth"]) for a in cards}


def position(explorer: Explorer) -> dict[str, float]:
    """Every parameter's value: the sliders', and what the dropdowns decide."""
    decided = {"itemsize": catalog.itemsize(explorer.dtype)} if explorer.dtype else {}
    if explorer.accelerator:
        card = catalog.accelerator(explorer.accelerator)
        decided |= {"peak": card.peak(explorer.dtype), "bandwidth": card.bandwidth}
    sourced = {p.symbol: decided[p.symbol] for p in explorer.formula.parameters if p.source}
    return {**explorer.values, **sourced}


def summary(explorer: Explorer) -> str:
    """Where the sliders stand and what follows from it."""
    formula, at = explorer.formula, position(explorer)
    where = ", ".join(
        f"{explorer_payload.letter(p)} = {display.number(at[p.symbol])}"
        for p in formula.parameters
        if not p.source
    )
    roof = _roofs(explorer).get(explorer.accelerator) if formula.on_roofline else None
    if roof is None:
        value = f"{formula.value_label or formula.value} {display.si(float(formula(**at)), formula.unit)}"
        return WORDS["summary_plain"].format(position=where, value=value)
    intensity = float(formula.evaluate("intensity", **at))
    attainable = float(roof.attainable(intensity))
    return WORDS["summary_roof"].format(
        accelerator=roof.name,
        dtype=explorer.dtype,
        position=where,
        intensity=display.number(intensity),
        attainable=display.si(attainable, "FLOP/s"),
        percent=f"{display.number(100 * attainable / roof.peak)} %",
        bound=WORDS["memory" if intensity < roof.ridge else "compute"],
    )


def picture(explorer: Explorer) -> bytes:
    """A PNG of under 10 KB, the same bytes for the same state."""
    at = position(explorer)
    if explorer.view == "roofline":
        roofs = _roofs(explorer)
        intensity = float(explorer.formula.evaluate("intensity", **at))
        figure = figures.roofline(
            list(roofs.values()), highlight=roofs[explorer.accelerator].name, operating=intensity
        )
    else:
        figure = figures.formula(explorer.formula, explorer.against, **at)
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90, facecolor=figures.colour("background"))
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(packed, format="png", optimize=True)
    return packed.getvalue()

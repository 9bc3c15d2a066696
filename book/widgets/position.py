"""Where an explorer stands: every parameter's value, the sliders' and what the dropdowns decide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from book import catalog
from book.catalog.facts import ACCELERATOR_FACTS, DTYPE_FACTS
from book.formulas.formula import Parameter
from book.roofline import Roof

if TYPE_CHECKING:
    from book.widgets.explorer import Explorer


def position(explorer: Explorer) -> dict[str, float]:
    """{symbol: value} of every parameter; NaN where the card has no such number."""
    formula = explorer.formula
    chosen = formula.preset_values(explorer.preset) if explorer.preset else {}
    card = catalog.accelerator(explorer.accelerator) if explorer.accelerator else None

    def decided(p: Parameter) -> float | None:
        if p.source == "model":
            return chosen.get(p.symbol, p.default)
        if p.source == "dtype":
            return DTYPE_FACTS[p.fact](explorer.dtype) if explorer.dtype else p.default
        return ACCELERATOR_FACTS[p.fact](card, explorer.dtype) if card else p.default

    sourced = {p.symbol: decided(p) for p in formula.parameters if p.source}
    return {**explorer.values, **{s: math.nan if v is None else v for s, v in sourced.items()}}


def lacking(explorer: Explorer) -> tuple[Parameter, ...]:
    """The parameters that the chosen card has no number for."""
    at = position(explorer)
    return tuple(p for p in explorer.formula.parameters if math.isnan(at[p.symbol]))


def roofs(explorer: Explorer) -> dict[str, Roof]:
    """The roofs in the picture by the card's id."""
    drawn, dtype = {*explorer.shown, explorer.accelerator}, explorer.dtype
    cards = [catalog.accelerator(a["id"]) for a in explorer.payload["accelerators"] if a["id"] in drawn]
    return {a.id: Roof(a.short_name, a.peaks[dtype], a.bandwidth) for a in cards if dtype in a.peaks}

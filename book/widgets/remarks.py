"""Sentences below an explorer's picture that go with the sliders. The page's remarks.js says the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from book.drawing import number_text
from book.formulas.formula import Formula
from book.formulas.views import Stack
from book.say import translated
from book.widgets.words import word


@dataclass(frozen=True)
class Memory:
    """What is said of a position's memory, and whether the position can be.

    state: "fits", "lacks" memory, "broken" whatever the memory, or "" for a formula that holds nothing.
    """

    sentence: str = ""
    state: str = ""


def memory(formula: Formula, at: Mapping[str, float], model: str = "") -> Memory:
    """Whether a card's memory holds what the sliders ask for, and what would. model: the preset's name."""
    if formula.capacity is None:
        return Memory()
    held = formula.held(**at)
    if broken := [name for name in formula.capacity.broken if held[name] > 0]:
        numbers = {p.symbol: f"{at[p.symbol]:,.0f}" for p in formula.parameters}
        name = model.split(" / ")[0]
        said = [word(b, model=name, **numbers) for b in broken]
        if held["needed"] > held["there"]:
            said.append(word(f"lacks_{formula.capacity.held}", **_sizes(held)))
        return Memory(" ".join(said), "broken")
    fits = held["needed"] <= held["there"]
    sizes = _sizes(held)
    said = [word(f"{'fits' if fits else 'lacks'}_{formula.capacity.held}", **sizes)]
    if held["weights"] > held["there"]:
        if formula.capacity.held == "model":
            said.append(word("weights_alone"))
    elif "sequences" in held:
        count = int(held["sequences"])
        said.append(word({0: "holds_none", 1: "holds_one"}.get(count, "holds"), count=f"{count:,}"))
    if not fits and held["heads"]:
        said.append(_cards(formula, at, int(held["heads"])))
    return Memory(" ".join(said), "fits" if fits else "lacks")


def _sizes(held: Mapping[str, float]) -> dict[str, str]:
    return {name: number_text.si(float(held[name]), "byte") for name in ("needed", "there", "memory")}


def _cards(formula: Formula, at: Mapping[str, float], most: int) -> str:
    """The least number of cards that would do, of those that the heads can be dealt out to."""
    for cards in range(1, most + 1):
        held = formula.held(cards, **at)
        if not held["uneven"] and held["needed"] <= held["there"]:
            return word("cards_one" if cards == 1 else "cards", cards=f"{cards:,}")
    return word("cards_none", most=f"{most:,}")


def stacked(formula: Formula, at: Mapping[str, float]) -> str:
    """What a stack of terms adds up to beside what was measured; "" for a formula without a stack."""
    view = formula.view("stack")
    if not isinstance(view, Stack):
        return ""
    unit = view.parts[0].unit
    values = {s.label: float(formula.evaluate(s.output, **at)) for s in view.parts}
    terms = [label for label, v in values.items() if math.isnan(v)]
    if terms:
        others = [s.label for s in formula.readouts.others if math.isnan(formula.evaluate(s.output, **at))]
        want = word("stack_none", parts=", ".join(others or terms))
        return " ".join(filter(None, (want, translated(view.unknown))))
    total = sum(values.values())
    measured = float(formula.evaluate(view.measured, **at)) if view.measured else math.nan
    said = word(
        "stack_alone" if math.isnan(measured) else "stack_over" if measured < total else "stack_under",
        sum=number_text.si(total, unit),
        measured=number_text.si(measured, unit),
        rest=number_text.si(abs(measured - total), unit),
    )
    return " ".join(filter(None, (said, _queue(formula, view, at))))


def _queue(formula: Formula, view: Stack, at: Mapping[str, float]) -> str:
    """How many run at a time where not all can; "" where all do."""
    running = float(formula.evaluate(view.running, **at)) if view.running else math.inf
    asked = at[view.asked] if view.asked else 0
    if running >= asked:
        return ""
    return word("stack_queue", running=number_text.number(running), asked=f"{asked:,.0f}")

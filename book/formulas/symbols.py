"""A symbol of a formula, and how a reader moves it: a slider, or what a dropdown decides."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import sympy

Scale = Literal["linear", "log2"]
Source = Literal["", "accelerator", "dtype", "model"]

# (unit of a parameter, unit that a reader sees): how many of the second make one of the first.
DISPLAY_SCALES: Mapping[tuple[str, str], float] = {("byte", "bit"): 8}

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Parameter:
    """One symbol of a formula, and how a reader moves it.

    symbol: ASCII name, used in Python and in JavaScript. latex: how it is printed.
    low, high, default: the slider's range and start, in `unit`. scale "log2" walks in doublings.
    steps: the only values it can have, if they are few: bytes of a stored number, cards in a group.
    source: what decides the value in the place of a slider: the "accelerator", "dtype" or "model"
    dropdown. The model's values come from the formula's presets, and need no default here.
    fact: which of the source's numbers it is (`book.catalog.facts`), if not the one of its own name;
    a dtype decides the "itemsize", if nothing else is said.
    shown_in: the unit in which a reader sees and types what the formula has in `unit`: 0.5 byte of a
    parameter that is shown in "bit" is 4 bit.
    """

    symbol: str
    label: str
    default: float = math.nan
    low: float = 1
    high: float = 1
    unit: str = ""
    latex: str = ""
    scale: Scale = "log2"
    integer: bool = True
    source: Source = ""
    steps: tuple[float, ...] = ()
    fact: str = ""
    shown_in: str = ""

    def __post_init__(self) -> None:
        if not _NAME.match(self.symbol):
            raise ValueError(f"parameter symbol {self.symbol!r}: use letters, digits and _ only.")
        if self.steps:
            object.__setattr__(self, "low", min(self.steps))
            object.__setattr__(self, "high", max(self.steps))
            if self.default not in self.steps:
                raise ValueError(
                    f"parameter {self.symbol}: default {self.default} is none of its steps {self.steps}."
                )
        if self.shown_in and (self.unit, self.shown_in) not in DISPLAY_SCALES:
            known = ", ".join(f"{unit} in {shown}" for unit, shown in DISPLAY_SCALES)
            raise ValueError(
                f"parameter {self.symbol}: {self.unit!r} is never shown in {self.shown_in!r}, only {known}."
            )
        if self.source and not self.fact:
            object.__setattr__(self, "fact", "itemsize" if self.source == "dtype" else self.symbol)
        if not self.source and not self.low <= self.default <= self.high:
            raise ValueError(
                f"parameter {self.symbol}: default {self.default} lies outside {self.low} to {self.high}."
            )

    @property
    def shown_scale(self) -> float:
        """How many of the unit that is shown make one of `unit`."""
        return DISPLAY_SCALES[self.unit, self.shown_in] if self.shown_in else 1

    @property
    def sympy(self) -> sympy.Symbol:
        """The positive SymPy symbol; equal symbols compare equal everywhere in the book."""
        return symbol(self.symbol)


def plain_letter(name: str, latex: str = "") -> str:
    r"""What a symbol is called in plain text: "M" for M, "β" for \beta; its name where neither is one."""
    if not latex.startswith("\\"):
        return latex or name
    letter, _, index = latex[1:].partition("_")
    try:
        greek = unicodedata.lookup(f"GREEK SMALL LETTER {letter.upper()}")
    except KeyError:
        return name
    return f"{greek}_{index.strip('{}')}" if index else greek


def symbol(name: str) -> sympy.Symbol:
    """A positive SymPy symbol, as every quantity in this book is."""
    return sympy.Symbol(name, positive=True)

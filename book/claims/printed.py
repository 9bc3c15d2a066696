"""A number as people print it, "about 6.7 TFLOP/s", read back into SI units."""

from __future__ import annotations

import re
from dataclasses import dataclass

from book.drawing.number_text import PREFIXES

_NUMBER = re.compile(r"(?P<number>\d[\d,]*(?:\.\d+)?)(?:\s+(?P<unit>\S+))?\Z")
_SCALE = {letter: 10.0**exponent for exponent, letter in PREFIXES.items()}
_SCALED = re.compile(rf"(?P<prefix>[{''.join(_SCALE)}]?)(?P<unit>s|B|B/s|FLOP|FLOP/s)\Z")


@dataclass(frozen=True)
class Quantity:
    """number: in SI units, a share of one for "%"; None if the text holds none.

    unit: "" for a bare number, "byte" for bytes that were printed to the last one.
    above: the text says "more than".
    """

    number: float | None
    unit: str
    above: bool


def last_digit(text: str) -> float:
    """What one in the last digit printed is worth, relative to the number: 0.1 for "1.0 MB", 1 for "1 MB".

    0 for a text without a number. A number of 0 has no relative size: 0, too.
    """
    found = _NUMBER.search(text)
    digits = found["number"].replace(",", "") if found else "0"
    value = float(digits)
    return 10.0 ** -len(digits.partition(".")[2]) / value if value else 0.0


def quantity(text: str) -> Quantity:
    """What a printed text says: "42.1 ms" is 0.0421 "s", "8 times" 8 "", "more than 100 %" above 1 "%"."""
    above = text.startswith("more than ")
    found = _NUMBER.search(text)
    if not found:
        return Quantity(None, "", above)
    number, unit = float(found["number"].replace(",", "")), found["unit"] or ""
    if unit == "%":
        return Quantity(float(f"{number / 100:.12g}"), unit, above)  # 88.6 % is 0.886
    if unit in ("", "times"):
        return Quantity(number, "", above)
    scaled = _SCALED.match(unit)
    if not scaled:
        return Quantity(number, unit, above)
    if unit == "B":
        return Quantity(number, "byte", above)
    return Quantity(float(f"{number * _SCALE[scaled['prefix']]:.12g}"), scaled["unit"], above)

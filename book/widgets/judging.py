"""The rule by which an answer with a number is judged.

`book/site/frontend/src/judge.js` follows the same one, step for step, and a test in a real browser
compares the two. Whatever needs the catalog, a table or a language is worked out before, and stands
in the check's payload.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from book.widgets.check_words import Verdict, fill

_POWERS = range(1, 16)
_SPLIT = re.compile(r"([+-]?[0-9.,]*(?:e[+-]?[0-9]+)?(?:/[0-9][0-9.,]*)?)(.*)\Z", re.S)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\Z")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?(e[+-]?[0-9]+)?\Z")
_UNIT = re.compile(r"[a-zµ%×/-]+\Z")


def judge(payload: Mapping[str, Any], answer: str | float) -> Verdict:
    """The verdict on an answer, as typed or as a number in the question's unit; `payload` is a check's.

    In this order: the right answer, unless it is a whole one too many; a known mistake, or the right
    digits in the wrong place, whichever is nearer; a known mistake with another prefix; a whole number
    rounded the wrong way; a usual slip; what is only close; the reciprocal; what is close but for a prefix;
    anything else. Who typed a
    unit has said which prefix was meant, so that no hint takes the number for one with another.
    """
    read = _read(payload, answer) if isinstance(answer, str) else (float(answer), False)
    if isinstance(read, Verdict):
        return read
    value, with_unit = read
    words, target, tolerance = payload["words"], payload["answer"], payload["tolerance"]
    badly_rounded = _badly_rounded(payload, value)
    if _within(value, target, tolerance) and not (badly_rounded and float(value).is_integer()):
        return Verdict("right", words["right"], payload["right"])
    known = _known(payload, value, with_unit)
    if known:
        return known
    if badly_rounded:
        return Verdict("rounding", words["wrong"], words[payload["rounding"]])
    slip = min(
        (s for s in payload["slips"] if _within(value, s["value"], payload["slip_tolerance"])),
        key=lambda s: _off(value, s["value"]),
        default=None,
    )
    if slip:
        return Verdict("slip", words["wrong"], fill(words[slip["word"]], **slip.get("names", {})))
    if _within(value, target, payload["near"] * tolerance):
        return Verdict("near", words["wrong"], fill(words["near"], tolerance=payload["tolerance_text"]))
    upside_down = 1 / target
    if _within(value, upside_down, tolerance) or _shift(value, upside_down, tolerance):
        return Verdict("slip", words["wrong"], words["upside_down"])
    shift = _shift(value, target, payload["near"] * tolerance)
    if payload["prefixed"] and _is_prefix(shift):
        message = words["about_high" if shift > 0 else "about_low"]
        return Verdict("scale", words["wrong"], fill(message, factor=f"{10 ** abs(shift):,}"))
    return Verdict("generic", words["wrong"], payload["hint"])


def _known(payload: Mapping[str, Any], value: float, with_unit: bool) -> Verdict | None:
    """A listed mistake, or the right digits in the wrong place: the nearer one, the mistake on a tie."""
    words, target, tolerance = payload["words"], payload["answer"], payload["tolerance"]
    mistakes = payload["mistakes"]
    if with_unit:  # "Right number, in milliseconds" is for who typed the number alone
        mistakes = [m for m in mistakes if not _is_prefix(_shift(m["value"], target, tolerance))]
    listed = [m for m in mistakes if _within(value, m["value"], tolerance)]
    shift = _shift(value, target, tolerance)
    if listed and (not shift or _off(value, listed[0]["value"]) <= _off(value, target * 10.0**shift)):
        return Verdict("mistake", words["wrong"], listed[0]["hint"])
    if shift:
        if payload["unit"] == "%" and shift == -2:
            return Verdict("scale", words["wrong"], words["percent"])
        prefixed = "" if payload["prefixed"] else "point_"
        message = words[f"{prefixed}{'high' if shift > 0 else 'low'}"]
        return Verdict("scale", words["wrong"], fill(message, factor=f"{10 ** abs(shift):,}"))
    for mistake in () if with_unit else mistakes:
        if _is_prefix(_shift(value, mistake["value"], tolerance)):
            return Verdict("mistake", words["wrong"], mistake["hint"])
    return None


def _is_prefix(shift: int) -> bool:
    """Whether so many powers of ten are one prefix in the place of another."""
    return shift != 0 and shift % 3 == 0


def _badly_rounded(payload: Mapping[str, Any], value: float) -> bool:
    """Whether it is the whole number that is asked for, not rounded, or rounded the other way."""
    beyond = value - payload["answer"]
    ways = {"down": 0 < beyond <= 1, "up": -1 <= beyond < 0, "whole": 0 < abs(beyond) < 1, "": False}
    return ways[payload["rounding"]]


def _read(payload: Mapping[str, Any], text: str) -> tuple[float, bool] | Verdict:
    """The number that a reader typed, in the question's unit, and whether a unit stood behind it.

    Or what to say if it can't be told. A fraction, "4/3", is a number too.
    """
    words, said = payload["words"], {"text": f"“{text.strip()}”", "unit": payload["unit"]}
    plain = re.sub(r"\s+per\s+", "/", text.strip())
    plain = re.sub(r"\s+", "", plain).replace("−", "-").replace("μ", "µ").lower()
    match = _SPLIT.match(plain)
    assert match is not None  # both groups may be empty
    number, unit = match.groups()
    factor = _worth(payload["units"], unit) if unit else 1.0
    if not number and (not unit or factor):
        return Verdict("unreadable", "", words["empty"])
    terms = number.split("/")
    if any("," in term and not _THOUSANDS.match(term) for term in terms):
        return Verdict("unreadable", "", fill(words["comma"], **said))
    terms = [term.replace(",", "") for term in terms]
    value = _quotient(terms) if all(_NUMBER.match(term) for term in terms) else math.nan
    if not math.isfinite(value) or not (factor or _UNIT.match(unit)):
        return Verdict("unreadable", "", fill(words["unreadable"], **said))
    if not factor:
        return Verdict("unreadable", "", fill(words["unit" if payload["unit"] else "no_unit"], **said))
    return value * factor, bool(unit)


def _quotient(terms: list[str]) -> float:
    """The number, or the first over the second; nan over nothing."""
    over = float(terms[1]) if len(terms) > 1 else 1.0
    return float(terms[0]) / over if over else math.nan


def _worth(units: Mapping[str, Any], typed: str) -> float:
    """What a typed unit is worth in the question's; 0 if it doesn't measure the same."""
    if typed in units["whole"]:
        return float(units["whole"][typed])
    parts = typed.split("/")
    if len(parts) != len(units["parts"]):
        return 0.0
    worth = 1.0
    for i, (part, table) in enumerate(zip(parts, units["parts"], strict=True)):
        if part not in table:
            return 0.0
        worth = worth * table[part] if i == 0 else worth / table[part]
    return worth


def _within(value: float, target: float, tolerance: float) -> bool:
    return abs(value - target) <= tolerance * abs(target)


def _off(value: float, target: float) -> float:
    return abs(value / target - 1)


def _shift(value: float, target: float, tolerance: float) -> int:
    """How many powers of ten `value` is above `target`, the digits being the same; 0 if they aren't."""
    for power in _POWERS:
        factor = float(f"1e{power}")
        if _within(value / factor, target, tolerance):
            return power
        if _within(value * factor, target, tolerance):
            return -power
    return 0

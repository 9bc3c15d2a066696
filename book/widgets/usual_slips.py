"""Mistakes that any question invites, told by what the answer is off by, each with a hint of its class.

A question lists its own mistakes; these are for the rest. A factor of two is a count, eight are bits
for bytes, 1.0737 is a GiB for a GB. A hint names the class and what to look at, not the answer.
Another card is told only where a question says how its answer follows from a card: a factor alone
doesn't tell which wall the answer leans on.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any, Literal

from book import catalog
from book.catalog.hardware import Accelerator, UnsupportedDtype
from book.widgets.typed_units import Kind, byte_scale

Rounding = Literal["down", "up"]
OnCard = Callable[[Accelerator], float]  # an answer as it follows from a card
ROUNDED = ("down", "up", "whole")  # the hints for a whole number that isn't, or is the other one

# Cards that people mix up, the one that a bare family name means first. Of all cards the catalog has, one
# would be near any wrong answer.
CARDS = (
    "h100_sxm",
    "h100_pcie",
    "h200_sxm",
    "b200",
    "a100_80gb_sxm",
    "a100_40gb_sxm",
    "l4",
    "t4",
    "rtx4090",
    "mi300x",
)
# A prefix in powers of two over the one in powers of ten; what has no prefix is thought of in GB.
_BINARY = {1e3: 1.024, 1e6: 1.024**2, 1e12: 1.024**4}
_MOVED: tuple[Kind, ...] = ("bytes", "time", "rate", "share", "count")


def slips(
    kind: Kind, unit: str, answer: float, tolerance: float, on: OnCard | None = None
) -> list[dict[str, Any]]:
    """What an answer may be by a usual slip: {"value", "word": the hint's name, "names": its braces}.

    kind, unit, answer: the question's. tolerance: relative; a slip that is no further than that from the
    answer can't be told from it. on: how the answer follows from a card, if it does.
    """
    found = [(answer * factor, f"two_{kind}", "") for factor in (2, 1 / 2)]
    found += [(answer * factor, "four", "") for factor in (4, 1 / 4)]
    if kind in _MOVED:
        bits = kind in ("bytes", "time") or (kind == "rate" and byte_scale(unit) > 0)
        found += [(answer * factor, "bits" if bits else "eight", "") for factor in (8, 1 / 8)]
        if "FLOP" not in unit:
            binary = _BINARY.get(byte_scale(unit), 1.024**3)
            found += [(answer * factor, "binary", "") for factor in (binary, 1 / binary)]
    if kind == "share":
        whole = 100 if unit == "%" else 1
        found.append((whole - answer, "rest", ""))
    if kind == "ratio":
        found.append((answer - 1, "added", ""))
    found += _other_cards(on) if on else []
    apart = [one for one in found if one[0] and abs(one[0] - answer) > 2 * tolerance * abs(answer)]
    return [
        {"value": value, "word": word} | ({"names": {"card": name}} if name else {})
        for value, word, name in apart
    ]


def _other_cards(on: OnCard) -> list[tuple[float, str, str]]:
    """(what the answer would be, hint, name) for each card that has the rates it takes."""
    found = []
    for card in map(catalog.accelerator, CARDS):
        with contextlib.suppress(UnsupportedDtype):
            found.append((float(on(card)), "card", card.short_name))
    return found


def card_in(question: str) -> str | None:
    """The id of the one card that a question names, or None; a bare "H100" is the SXM part."""
    cards = [catalog.accelerator(one) for one in CARDS]
    families = {_family(card.short_name): "" for card in cards}
    named = [family for family in families if re.search(rf"\b{re.escape(family)}s?\b", question)]
    if len(named) != 1:
        return None
    mine = [card for card in cards if _family(card.short_name) == named[0]]
    for card in mine:
        size = re.search(r"(\d+) ?GB", card.short_name)
        form = card.short_name.split()[-1]
        if (size and re.search(rf"\b{size[1]} ?GB", question)) or (form != "SXM" and form in question):
            return card.id
    return mine[0].id


def _family(short_name: str) -> str:
    """The name without the memory's size and the form: A100 of "A100 SXM 40GB"."""
    return re.sub(r" (\d+ ?GB|SXM|PCIe|NVL)\b.*", "", short_name)

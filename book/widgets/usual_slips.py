"""Mistakes that any question invites, told by what the answer is off by, each with a hint of its class.

A question lists its own mistakes; these are for the rest. A factor of two is a count, eight are bits
for bytes, 1.0737 is a GiB for a GB, the ratio of two cards' bandwidths is another card. A hint names
the class and what to look at, not the answer.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from book import catalog
from book.widgets.typed_units import Kind, byte_scale

Rounding = Literal["down", "up"]
ROUNDED = ("down", "up", "whole")  # the hints for a whole number that isn't, or is the other one

# Cards that people mix up, the one that a bare family name means first. Of all cards the catalog has, some
# ratio would be near any wrong answer.
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


def slips(kind: Kind, unit: str, answer: float, card: str | None, tolerance: float) -> list[dict[str, Any]]:
    """What an answer may be by a usual slip: {"value", "word": the hint's name, "names": its braces}.

    kind, unit, answer: the question's. card: the id of the card that it is about, if it is about one.
    tolerance: relative; a slip that is no further than that from the answer can't be told from it.
    """
    found = [(answer * factor, f"two_{kind}", "") for factor in (2, 1 / 2)]
    found += [(answer * factor, "four", "") for factor in (4, 1 / 4)]
    if kind in _MOVED:
        found += [(answer * factor, "bits", "") for factor in (8, 1 / 8)]
        if "FLOP" not in unit:
            binary = _BINARY.get(byte_scale(unit), 1.024**3)
            found += [(answer * factor, "binary", "") for factor in (binary, 1 / binary)]
    if kind == "share":
        whole = 100 if unit == "%" else 1
        found.append((whole - answer, "rest", ""))
    if kind == "ratio":
        found.append((answer - 1, "added", ""))
    if card:
        found += [(answer * factor, word, name) for factor, word, name in _other_cards(kind, card)]
    apart = [one for one in found if one[0] and abs(one[0] - answer) > 2 * tolerance * abs(answer)]
    return [
        {"value": value, "word": word} | ({"names": {"card": name}} if name else {})
        for value, word, name in apart
    ]


def _other_cards(kind: Kind, id: str) -> list[tuple[float, str, str]]:
    """(factor, hint, name) for each other card, by what the answer is made of."""
    mine = catalog.accelerator(id)
    found = []
    for other in (catalog.accelerator(one) for one in CARDS if one != id):
        bandwidth = other.bandwidth / mine.bandwidth
        peak = None
        if "bf16" in mine.peaks and "bf16" in other.peaks:
            peak = other.peaks["bf16"] / mine.peaks["bf16"]
        if kind in ("time", "share"):
            found.append((1 / bandwidth, "bandwidth", other.short_name))
            found += [(1 / peak, "peak", other.short_name)] if peak else []
        elif kind == "rate":
            found.append((bandwidth, "bandwidth", other.short_name))
            found += [(peak, "peak", other.short_name)] if peak else []
        elif kind in ("intensity", "count") and peak:
            found.append((peak / bandwidth, "ridge", other.short_name))
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

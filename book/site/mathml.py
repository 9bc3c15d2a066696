"""Formulas set when the site is built: TeX in, MathML out, which browsers lay out without a script.

Temml does it, run by node. The page's font for it is cut down to `CHARACTERS` (`book.site.vendor`).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

from book.site.node import NodeProgram

_RANGES = (
    (0x20, 0x7E),
    (0x391, 0x3C9),  # Greek
    (0x1D400, 0x1D467),  # letters, bold and italic
    (0x1D6E2, 0x1D71B),  # Greek italic
    (0x1D7CE, 0x1D7D7),  # digits, bold
)
_SINGLE = "\u00a0°±²³µ·×÷ϑϕϵℎℓ′−∓∗√∝∞∑∏∫∂∇∈∉∩∪⊂∀∃∧∨∼≈≠≡≤≥≪≫→←↔⇒⇔↦⟨⟩⌈⌉⌊⌋‖…⋯⋮⋅¯^~˙⏞⏟"
_INVISIBLE = "\u2061\u2062\u2063"  # function application, times, comma
CHARACTERS = frozenset(
    {c for low, high in _RANGES for c in map(chr, range(low, high + 1)) if unicodedata.name(c, "")}
    | {*_SINGLE, *_INVISIBLE}
)


class Typesetter(NodeProgram):
    """`with Typesetter() as typesetter: typesetter.set("t = f / F")`."""

    script = "mathml.mjs"

    def __init__(self) -> None:
        self._set = cache(lambda tex, display: self.ask({"tex": tex, "display": display})["html"])

    def set(self, tex: str, display: bool = False) -> str:
        """A formula as a MathML element. Raises NodeFailed with what is wrong in it."""
        return self._set(tex, display)


def italic(letter: str) -> str:
    """The character that a browser shows for a letter alone in an <mi>: mathematical italic."""
    if letter == "h":
        return "ℎ"
    for first, last, to in (
        ("A", "Z", 0x1D434),
        ("a", "z", 0x1D44E),
        ("Α", "Ω", 0x1D6E2),
        ("α", "ω", 0x1D6FC),
    ):
        if first <= letter <= last:
            return chr(to + ord(letter) - ord(first))
    return letter


def shown(element: Any) -> set[str]:
    """All characters that a parsed <math> element shows, as a font must have them."""
    found = set()
    for token in element.find_all(["mi", "mo", "mn", "mtext", "ms"]):
        text = token.get_text()
        alone = token.name == "mi" and len(text) == 1 and token.get("mathvariant") != "normal"
        found |= {italic(text)} if alone else set(text)
    return found

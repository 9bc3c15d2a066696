"""Makes text that a submission had a hand in fit for a terminal, a spreadsheet and a page."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 500  # characters of a comment
FORMULA = ("=", "+", "-", "@")  # a spreadsheet takes a cell that begins so for a formula


def tidy(text: str, longest: int = LONGEST) -> str:
    """One line of plain text, cut at `longest` characters: no control characters, tags or Markdown links.

    It comes from error messages and names that the submission chose.
    """
    text = str(text)[: 20 * longest]
    # Cc control, Cf invisible (also: right to left), Cs half a character, Co and Cn nobody's.
    shown = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text)
    shown = " ".join(shown.split())
    shown = re.sub(r"<(?=[A-Za-z/!?])", "‹", shown)  # a page takes it for text, as do people
    shown = shown.replace("](", "] (")
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def cell(text: str) -> str:
    """Text as it may stand in a spreadsheet: a leading = + - @ is no formula there."""
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def sentence(text: str) -> str:
    """Text with a full stop, so that another sentence may follow."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def several(names: list[str]) -> str:
    """["a", "b", "c"] -> "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

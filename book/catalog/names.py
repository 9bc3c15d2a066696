"""Looking a name up, and saying something useful when it isn't there."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


class UnknownName(KeyError):
    """A name that the catalog doesn't have. The message lists the nearest ones."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, quotes and all; a sentence should read as one.
        return str(self.args[0]) if self.args else ""


def nearest(name: str, names: list[str], count: int = 3) -> list[str]:
    """The `count` names most like `name`, best first."""

    def plain(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    def likeness(candidate: str) -> tuple[bool, float]:
        a, b = plain(name), plain(candidate)
        contained = bool(a) and (a in b or b in a)
        return contained, difflib.SequenceMatcher(None, a, b).ratio()

    return sorted(names, key=likeness, reverse=True)[:count]


def look_up(kind: str, name: str, rows: Mapping[str, T], aliases: Mapping[str, str] | None = None) -> T:
    """`rows[name]`, where `aliases` may turn a display name into a key.

    Raises UnknownName, which says what `kind` of thing was asked for and what was near it.
    """
    aliases = aliases or {}
    if isinstance(name, str):
        if name in rows:
            return rows[name]
        if name in aliases:
            return rows[aliases[name]]
    close = nearest(str(name), list(dict.fromkeys([*rows, *aliases])))
    raise UnknownName(f"There is no {kind} {name!r} in the catalog. The nearest: {', '.join(close)}.")

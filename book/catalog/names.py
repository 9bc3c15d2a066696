"""Looking a name up, and saying something useful when it isn't there."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")


class UnknownName(KeyError):
    """A name that the catalog doesn't have. The message lists the nearest ones."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, quotes and all; a sentence should read as one.
        return str(self.args[0]) if self.args else ""


def plain(name: str) -> str:
    """A name as people vary it: no case, no organisation before a slash, no space, dash or underscore.

    The point stays, since "3.1" is not "31".
    """
    return "".join(c for c in name.rsplit("/", 1)[-1].lower() if c.isalnum() or c == ".")


def nearest(name: str, names: list[str], count: int = 3) -> list[str]:
    """The `count` names most like `name`, best first."""

    def likeness(candidate: str) -> tuple[bool, float]:
        a, b = (plain(text).replace(".", "") for text in (name, candidate))
        contained = bool(a) and (a in b or b in a)
        return contained, difflib.SequenceMatcher(None, a, b).ratio()

    return sorted(names, key=likeness, reverse=True)[:count]


def by_plain_name(kind: str, names: Mapping[str, str]) -> Mapping[str, str]:
    """`plain` name -> key, of name -> key. Raises ValueError if one plain name would mean two keys."""
    made: dict[str, str] = {}
    for name, key in names.items():
        if made.setdefault(plain(name), key) != key:
            raise ValueError(
                f"{kind} {key!r}: its name {name!r} already means {made[plain(name)]!r}, for case, spaces "
                "and dashes don't count; take it out of one of the two."
            )
    return MappingProxyType(made)


def look_up(kind: str, name: str, rows: Mapping[str, T], aliases: Mapping[str, str] | None = None) -> T:
    """`rows[name]`, where `aliases` may turn another name into a key, however it is written (`plain`).

    Raises UnknownName, which says what `kind` of thing was asked for and what was near it.
    """
    aliases = aliases or {}
    if isinstance(name, str):
        if name in rows:
            return rows[name]
        if key := aliases.get(plain(name)):
            return rows[key]
    close = nearest(str(name), list(rows))
    raise UnknownName(f"There is no {kind} {name!r} in the catalog. The nearest: {', '.join(close)}.")

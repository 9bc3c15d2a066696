"""What people write behind a number: which spellings a question's unit has, and what each is worth.

`spellings` is the one table. A check carries its part of it, so that Python and the page read alike:
"0.1175 GB" where MB are asked, "117 MB", "4.8 milliseconds", "1.2 GiB", "30 %".
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["bytes", "operations", "time", "rate", "intensity", "share", "ratio", "count"]
KINDS: tuple[Kind, ...] = ("bytes", "operations", "time", "rate", "intensity", "share", "ratio", "count")

_SI = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_SI_WORDS = {"kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_BINARY_WORDS = {"kibi": 2.0**10, "mebi": 2.0**20, "gibi": 2.0**30, "tebi": 2.0**40}
_SMALL = {"": 1.0, "m": 1e-3, "µ": 1e-6, "u": 1e-6, "n": 1e-9}
_SMALL_WORDS = {"": 1.0, "milli": 1e-3, "micro": 1e-6, "nano": 1e-9}


def _of(prefixes: dict[str, float], *names: str) -> dict[str, float]:
    return {f"{prefix}{name}": factor for prefix, factor in prefixes.items() for name in names}


# What each spelling, in lower case and without spaces, is worth in the base unit. Nobody writes
# megaseconds or millibytes, so that lower case is enough to tell "MB" from "ms".
_BASES: dict[str, dict[str, float]] = {
    "byte": {
        **_of({**_SI, **_BINARY}, "b", "byte", "bytes"),
        **_of({**_SI_WORDS, **_BINARY_WORDS}, "byte", "bytes"),
        **{name: factor / 8 for name, factor in _of(_SI, "bit", "bits").items()},
    },
    "FLOP": _of(_SI, "flop", "flops", "op", "ops", "operation", "operations"),
    "s": {
        **_of(_SMALL, "s", "sec"),
        **_of(_SMALL_WORDS, "second", "seconds"),
        **dict.fromkeys(("min", "minute", "minutes"), 60.0),
        **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    },
    "%": {"%": 1.0, "percent": 1.0},
    "times": {"times": 1.0, "x": 1.0, "×": 1.0, "-fold": 1.0, "fold": 1.0},
}
_TOKENS = ("token", "tokens", "tok")  # the one counted thing that has a short form
# One row of a decode step is one token of one user's sequence: each is said for the others.
_ROWS = (
    *_TOKENS,
    *(f"{one}{s}" for one in ("row", "user", "sequence", "prompt", "request") for s in ("", "s")),
)


def kind_of(unit: str) -> Kind:
    """What is asked for, as its unit tells: "ms" a time, "GB" bytes, "tokens/s" a rate, "rows" a count."""
    bases = [_base(part)[0] for part in unit.split("/")]
    if len(bases) == 2:
        return "intensity" if bases == ["FLOP", "byte"] else "rate" if bases[1] == "s" else "count"
    alone: dict[str, Kind] = {"byte": "bytes", "FLOP": "operations", "s": "time", "%": "share"}
    return alone.get(bases[0], "ratio" if unit in ("", "times") else "count")


def byte_scale(unit: str) -> float:
    """The prefix of a unit of bytes, as a factor: 1e9 of "GB" and "GB/s"; 0 if it counts no bytes."""
    base, factor = _base(unit.split("/")[0])
    return factor if base == "byte" else 0.0


def spellings(unit: str) -> dict[str, object]:
    """How the unit of an answer may be typed.

    unit: the question's, as "MB", "tokens/s", "FLOP/byte". Returns {"parts": one table for each part
    between slashes, "whole": what stands for all of them together}; a table's values are the worth of
    a spelling in that part of the question's unit, so that a typed "1 GB" is 1000 where MB are asked.
    """
    parts, own = [], 1.0
    for i, part in enumerate(unit.split("/")):
        base, factor = _base(part)
        parts.append({name: worth / factor for name, worth in _table(part, base).items()})
        own = factor if i == 0 else own / factor
    whole: dict[str, float] = {}
    bases = [_base(part)[0] for part in unit.split("/")]
    if bases == ["FLOP", "s"]:  # a card's "TFLOPS" are per second
        whole = {name: worth / own for name, worth in _of(_SI, "flops", "ops").items()}
    if bases[-1] == "s" and bases[0] in _TOKENS:
        whole = {"tps": 1 / own}
    if len(parts) == 1 and kind_of(unit) == "count":
        whole = {"k": 1e3, "thousand": 1e3, "million": 1e6}
    if unit == "":
        parts = [_BASES["times"]]
    return {"parts": parts, "whole": whole}


def _base(part: str) -> tuple[str, float]:
    """The base unit of a part of a question's unit, and its factor: ("byte", 1e9) of "GB"."""
    plain = part.replace(" ", "").lower()
    for base, table in _BASES.items():
        if plain in table:
            return base, table[plain]
    return ("token" if plain in _TOKENS else part), 1.0


def _table(part: str, base: str) -> dict[str, float]:
    if base in _BASES:
        return _BASES[base]
    plain = part.replace(" ", "").lower()
    if plain in _ROWS:
        return {name: 1.0 for name in _ROWS}
    one = plain.removesuffix("s")
    return {name: 1.0 for name in (plain, one, f"{one}s") if name}

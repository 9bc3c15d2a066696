"""Reading the measured rows: each a mapping of names to numbers and words, SI units throughout."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from book.catalog.rows import CatalogError

MeasuredRow = Mapping[str, Any]


@lru_cache(maxsize=64)
def read(path: Path) -> tuple[MeasuredRow, ...]:
    """The rows of one file, those of its header's constants added.

    Digits become numbers, an empty field None. Columns that end in `_s`, and `seconds`, are seconds.
    Raises CatalogError naming file, row and field: for a row of another length, a file without its
    source, a time that is no positive number.
    """
    header, lines = _header(path)
    constants = {
        name: _value(text) for name, text in header.items() if name not in ("source", "how", "about")
    }
    found = []
    table = csv.reader(lines)
    names = next(table, [])
    times = tuple(_times(names))
    for number, fields in enumerate(table, start=1):
        where = f"{path.parent.name}/{path.name}, row {number}"
        if len(fields) != len(names):
            raise CatalogError(
                f"{where}: {len(fields)} fields for {len(names)} columns ({', '.join(names)})."
            )
        row = {**constants, **dict(zip(names, map(_value, fields), strict=True))}
        for name in times:
            if not isinstance(row[name], int | float) or not row[name] > 0:
                raise CatalogError(f"{where}: {name} = {row[name]!r}: must be seconds, a number above zero.")
        found.append(MappingProxyType(row))
    return tuple(found)


def folder(path: Path) -> tuple[MeasuredRow, ...]:
    """The rows of all files of a table, in the order of their names. Raises CatalogError, as `read`."""
    files = sorted(path.glob("*.csv"))
    if not files:
        raise CatalogError(f"{path.name}: no CSV file in this folder; a table needs at least one.")
    return tuple(row for file in files for row in read(file))


def source(path: Path) -> str:
    """Where a file's rows come from, with their licence: the line that a page prints beside them."""
    return _header(path)[0]["source"]


def how(path: Path) -> str:
    """How a file's rows were measured, by their source's own code."""
    return _header(path)[0]["how"]


@lru_cache(maxsize=64)
def _header(path: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    text = path.read_text(encoding="utf-8").splitlines()
    header: dict[str, str] = {}
    for line in text:
        if not line.startswith("#"):
            break
        words = line[1:].strip()
        name, colon, value = words.partition(": ")
        if colon and name in ("source", "how"):
            header[name] = value
        elif " = " in words and header.keys() >= {"source", "how"}:
            name, _, value = words.partition(" = ")
            header[name] = value
        else:
            header["about"] = words
    for name in ("source", "how"):
        if name not in header:
            raise CatalogError(
                f"{path.name}: no line '# {name}: ...'; measured rows say where they come from."
            )
    return header, tuple(line for line in text if not line.startswith("#"))


def _times(names: list[str]) -> Iterator[str]:
    return (name for name in names if name == "seconds" or name.endswith("_s"))


def _value(text: str) -> Any:
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

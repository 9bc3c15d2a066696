"""A reader's own table of times: one CSV file, one row a measurement."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from book import catalog
from book.against import operations
from book.against.operations import NotAnswerable, Row

# Names of the column of times, and how many seconds its unit has.
TIMES = {"seconds": 1.0, "s": 1.0, "milliseconds": 1e-3, "ms": 1e-3, "microseconds": 1e-6, "us": 1e-6}


class BadTable(ValueError):
    """The file can't be read as a table of measurements."""


def read(
    path: Path, operation: str | None = None, accelerator: str | None = None
) -> Iterator[tuple[str, str, Row]]:
    """(file and line, operation, row) for each line, times in seconds, cards by the catalog's ids.

    operation, accelerator: for tables that have no such column. Raises BadTable naming the line, the column,
    its value and the remedy.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadTable(f"{path}: can't be read ({error}); give a CSV file in UTF-8.") from error
    lines = csv.DictReader(text.splitlines())
    names = [name.strip() for name in lines.fieldnames or ()]
    if len(set(names)) < len(names):
        raise BadTable(f"{path.name}: two columns of one name in {', '.join(names)}; rename one.")
    lines.fieldnames = names
    unit = _time_column(path, names)
    for name, given in (("operation", operation), ("accelerator", accelerator)):
        if name not in names and given is None:
            raise BadTable(f"{path.name}: no column {name}; add one, or give --{name} for all rows.")
    for fields in lines:
        where = f"{path.name}, line {lines.line_num}"
        if None in fields or None in fields.values():
            raise BadTable(f"{where}: not as many fields as the heading's {len(names)}.")
        row = {name: _value(text) for name, text in fields.items()}
        try:
            seconds = _seconds(row.pop(unit), unit)
            kind = operations.operation(str(row.pop("operation", None) or operation)).name
            card = catalog.accelerator(str(row.pop("accelerator", None) or accelerator)).id
        except (NotAnswerable, catalog.UnknownName) as error:
            raise BadTable(f"{where}: {error}") from error
        yield where, kind, {"accelerator": card, **row, "seconds": seconds}


def _time_column(path: Path, names: list[str]) -> str:
    found = [name for name in names if name in TIMES]
    if len(found) != 1:
        raise BadTable(
            f"{path.name}: {len(found)} columns of times in {', '.join(names) or 'an empty heading'}; "
            f"have one, "
            f"called {', '.join(TIMES)}."
        )
    return found[0]


def _seconds(value: Any, unit: str) -> float:
    if isinstance(value, str) or value is None or not 0 < value < float("inf"):
        raise NotAnswerable(f"{unit} = {value!r}: must be a time above zero.")
    return value * TIMES[unit]


def _value(text: str | None) -> Any:
    plain = (text or "").strip()
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            continue
    return plain or None

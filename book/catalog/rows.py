"""Reading one row of a catalog file: every field is checked as it is taken.

An error names the file, the row, the field, the value and the remedy, because the person who
reads it has just edited a YAML file by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeVar, overload

from book.catalog.dtypes import RATES
from book.catalog.names import nearest

C = TypeVar("C", bound=str)  # of the choices


class CatalogError(ValueError):
    """A catalog file holds something that can't be right."""


@dataclass(frozen=True)
class Source:
    """Where a number was read: `key` within its file, and the `text` to print."""

    key: str
    text: str


def read(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises CatalogError if it is missing, broken or of another version.

    JSON is YAML: a file that was converted for a notebook to carry begins with a brace, and is read
    without PyYAML, which need not be there.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogError(
            f"{path}: can't be read ({error.strerror}); restore it from the repository."
        ) from error
    document = _parsed_json(path, text) if text.startswith("{") else _parsed_yaml(path, text)
    if not isinstance(document, dict) or document.get("schema_version") != 1:
        found = document.get("schema_version") if isinstance(document, dict) else None
        raise CatalogError(f"{path.name}: schema_version = {found!r}; write schema_version: 1 at the top.")
    return document


def _parsed_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise CatalogError(f"{path.name}: not valid JSON: {error}. Restore the file.") from error


def _parsed_yaml(path: Path, text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise CatalogError(
            f"{path.name}: PyYAML reads it, and is not installed here: `python3 -m pip install pyyaml`."
        ) from None
    try:
        # The C loader reads the same as safe_load, ten times faster.
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise CatalogError(f"{path.name}: not valid YAML: {error}. Mend the line it names.") from error


def scaled(value: float, exponent: int) -> float:
    """value * 10**exponent as one would type it: 51.64 and -6 give 51.64e-6 to the last bit."""
    return float(Decimal(repr(value)).scaleb(exponent))


@dataclass
class Row:
    """One mapping of a catalog file, taken field by field.

    where: "file, row id" for messages. Whatever is left when `finish` is called is a misspelling.
    """

    where: str
    data: Mapping[str, Any]
    sources: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.data, Mapping):
            raise CatalogError(f"{self.where}: {self.data!r} is not a mapping; write field: value pairs.")
        self._taken: set[str] = set()

    def refuse(self, name: str, value: Any, remedy: str) -> NoReturn:
        """Raise CatalogError for a field."""
        raise CatalogError(f"{self.where}: {self.prefix}{name} = {value!r}: {remedy}")

    def take(self, name: str, *, optional: bool = False) -> Any:
        """The raw value of a field; None for an optional field that is absent."""
        self._taken.add(name)
        if name not in self.data:
            if optional:
                return None
            raise CatalogError(
                f"{self.where}: {self.prefix}{name} is missing (value: none); add {name} with its source."
            )
        value = self.data[name]
        if value is None and not optional:
            self.refuse(name, value, "a value is needed here; look it up and cite it, or drop the row.")
        return value

    def number(self, name: str, *, optional: bool = False, integer: bool = False, zero: bool = False) -> Any:
        """A finite number above zero (or from zero if `zero`); None if optional and absent."""
        value = self.take(name, optional=optional)
        return value if value is None else self.check_number(name, value, integer=integer, zero=zero)

    def check_number(self, name: str, value: Any, *, integer: bool = False, zero: bool = False) -> Any:
        """`value`, if it is such a number; CatalogError otherwise."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            self.refuse(name, value, "not a number; write digits, without quotes and without 1e9 notation.")
        if integer and value != int(value):
            self.refuse(name, value, "must be a whole number.")
        if value < 0 or (value == 0 and not zero):
            self.refuse(
                name, value, f"must be {'zero or more' if zero else 'positive'}; check the sign and the unit."
            )
        return int(value) if integer else value

    def text(self, name: str, *, optional: bool = False) -> str:
        """A string; empty if optional and absent."""
        value = self.take(name, optional=optional)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.refuse(name, value, "must be text; put it in quotes.")
        return value

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """true or false."""
        value = self.take(name, optional=default is not None)
        if value is None:
            return bool(default)
        if not isinstance(value, bool):
            self.refuse(name, value, "must be true or false.")
        return value

    @overload
    def choice(self, name: str, choices: tuple[C, ...], *, optional: Literal[False] = False) -> C: ...
    @overload
    def choice(self, name: str, choices: tuple[C, ...], *, optional: bool) -> C | None: ...
    def choice(self, name: str, choices: tuple[C, ...], *, optional: bool = False) -> C | None:
        """One of `choices`."""
        value = self.take(name, optional=optional)
        if value is None:
            return None
        if value not in choices:
            close = nearest(str(value), list(choices))
            self.refuse(
                name, value, f"not known; use one of {', '.join(close if len(choices) > 8 else choices)}."
            )
        return value

    def items(self, name: str, *, optional: bool = False) -> tuple[Any, ...]:
        """A list, as a tuple."""
        value = self.take(name, optional=optional)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.refuse(name, value, "must be a list; write [a, b].")
        return tuple(value)

    @overload
    def row(self, name: str, *, optional: Literal[False] = False) -> Row: ...
    @overload
    def row(self, name: str, *, optional: bool) -> Row | None: ...
    def row(self, name: str, *, optional: bool = False) -> Row | None:
        """A nested mapping, to be taken field by field in turn."""
        value = self.take(name, optional=optional)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.refuse(name, value, "must be a mapping; write {field: value}.")
        return Row(self.where, value, self.sources, f"{self.prefix}{name}.")

    def rates(self, name: str, exponent: int, *, optional: bool = False) -> Mapping[str, float]:
        """dtype -> number * 10**exponent; a dtype written as null is absent."""
        inner = self.row(name, optional=optional)
        if inner is None:
            return MappingProxyType({})
        for dtype in inner.data:
            if dtype not in RATES:
                close = nearest(str(dtype), list(RATES))
                self.refuse(
                    f"{name}.{dtype}", inner.data[dtype], f"unknown dtype; the nearest: {', '.join(close)}."
                )
        numbers = {dtype: inner.number(dtype, optional=True) for dtype in inner.data}
        return MappingProxyType({dtype: scaled(v, exponent) for dtype, v in numbers.items() if v is not None})

    def cited(self, name: str = "source") -> tuple[Source, ...]:
        """The row's sources, each of which the file's own `sources` must define."""
        keys = self.items(name)
        if not keys:
            self.refuse(
                name, list(keys), "no row without a source; name at least one of this file's sources."
            )
        for key in keys:
            if key not in self.sources:
                close = nearest(str(key), list(self.sources))
                self.refuse(name, key, f"unknown source; add it under sources:, or use {', '.join(close)}.")
        return tuple(Source(key, self.sources[key]) for key in keys)

    def finish(self) -> None:
        """Refuse fields that nobody asked for: misspellings, mostly."""
        for name in self.data:
            if name not in self._taken:
                close = nearest(str(name), sorted(self._taken), 1)
                self.refuse(str(name), self.data[name], f"unknown field; did you mean {close[0]}?")


def rows(document: dict[str, Any], key: str, path: Path) -> list[Row]:
    """The rows under `key`, each with a unique id."""
    entries = document.get(key)
    if not isinstance(entries, list) or not entries:
        raise CatalogError(f"{path.name}: {key} = {entries!r}: must be a list of rows.")
    sources = document.get("sources") or {}
    found: list[Row] = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        id_ = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(id_, str):
            raise CatalogError(
                f"{path.name}, {key}[{index}]: id = {id_!r}: every row needs an id; add a short text."
            )
        if id_ in seen:
            raise CatalogError(f"{path.name}, {id_}: id = {id_!r}: used twice; rename one of the rows.")
        seen.add(id_)
        found.append(Row(f"{path.name}, {id_}", entry, sources))
    return found

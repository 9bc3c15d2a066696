"""Measurements that other people published, each with who, where and on what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from book.catalog.dtypes import DTYPES
from book.catalog.names import nearest
from book.catalog.rows import CatalogError, Row, Source, read, scaled

PATH = Path(__file__).with_name("published.yaml")

# A column's last word is its unit: (word in the file, word after loading, power of ten).
UNITS = (
    ("microseconds", "seconds", -6),
    ("milliseconds", "seconds", -3),
    ("gigabytes_per_second", "bytes_per_s", 9),
    ("teraflops_per_second", "flops_per_s", 12),
)
WORDS = ("weights", "decoding")  # columns that hold text
WAY = ("who", "how", "engine", "kernel", "precision")  # what every series says of how it came about


@dataclass(frozen=True)
class Series:
    """One table of a published source.

    accelerator, model: ids in this catalog, or None. dtype: of the operands, None if mixed or unsaid.
    fixed: what is the same at all points. columns: names of a point's values, in SI units.
    points: one mapping a row, column -> value. about: what was done. table: where in the source.
    who, how, engine, kernel, precision: who measured and in what way (warm-ups, runs, graph or not),
    with which engine and version, which kernel by the source's own label, and in which formats. Each
    is a phrase to print; "not said" where the source is silent.
    """

    kind: str
    about: str
    accelerator: str | None
    model: str | None
    dtype: str | None
    fixed: Mapping[str, Any]
    columns: tuple[str, ...]
    points: tuple[Mapping[str, Any], ...]
    table: str
    sources: tuple[Source, ...]
    who: str
    how: str
    engine: str
    kernel: str
    precision: str

    @property
    def source(self) -> str:
        """Sources and table as one line."""
        return f"{'; '.join(s.text for s in self.sources)}: {self.table}"


def load_published(
    path: Path = PATH, *, accelerators: Iterable[str], models: Iterable[str]
) -> Mapping[str, tuple[Series, ...]]:
    """kind -> its series, checked against the known ids. Raises CatalogError."""
    document = read(path)
    sources = document.get("sources") or {}
    known = {"accelerator": list(accelerators), "model": list(models)}
    ways = {name: _way(path.name, name, body) for name, body in (document.get("ways") or {}).items()}
    kinds = {k: v for k, v in document.items() if k not in ("schema_version", "sources", "ways")}
    return MappingProxyType(
        {kind: _kind(path.name, kind, body, sources, known, ways) for kind, body in kinds.items()}
    )


def _way(file: str, name: str, body: Any) -> Mapping[str, str]:
    """How several series were measured: a phrase for each word of WAY."""
    row = Row(f"{file}, ways.{name}", body)
    made = {word: row.text(word) for word in WAY}
    row.finish()
    return MappingProxyType(made)


def _kind(
    file: str,
    kind: str,
    body: Any,
    sources: Mapping[str, str],
    known: dict,
    ways: Mapping[str, Mapping[str, str]],
) -> tuple[Series, ...]:
    group = Row(f"{file}, {kind}", body, sources)
    about, columns, entries = group.text("about"), group.items("columns"), group.items("series")
    group.finish()
    if not entries:
        raise CatalogError(
            f"{file}, {kind}: series = []: nothing published here; add a series or drop the kind."
        )
    return tuple(
        _series(Row(f"{file}, {kind}[{i}]", entry, sources), kind, about, columns, known, ways)
        for i, entry in enumerate(entries)
    )


def _series(
    row: Row,
    kind: str,
    about: str,
    columns: tuple[str, ...],
    known: dict,
    ways: Mapping[str, Mapping[str, str]],
) -> Series:
    references = {name: row.text(name, optional=True) or None for name in known}
    for name, value in references.items():
        if value is not None and value not in known[name]:
            close = nearest(value, known[name])
            row.refuse(name, value, f"no such row in the catalog; the nearest: {', '.join(close)}.")
    columns = row.items("columns", optional=True) or columns
    fixed = row.row("fixed", optional=True)
    points = row.items("points")
    if not points:
        row.refuse("points", [], "a series needs at least one point.")
    si = [_si(column) for column in columns]
    made = Series(
        kind=kind,
        about=about,
        accelerator=references["accelerator"],
        model=references["model"],
        dtype=row.choice("dtype", tuple(DTYPES), optional=True),
        fixed=MappingProxyType(_fixed(fixed) if fixed else {}),
        columns=tuple(name for name, _ in si),
        points=tuple(_point(row, i, point, columns, si) for i, point in enumerate(points)),
        table=row.text("table"),
        sources=row.cited(),
        **ways[row.choice("way", tuple(ways))],
    )
    row.finish()
    return made


def _fixed(row: Row) -> dict[str, Any]:
    return {k: v if isinstance(v, str) else row.check_number(k, v) for k, v in row.data.items()}


def _si(column: str) -> tuple[str, int]:
    for word, si, exponent in UNITS:
        if column == word or column.endswith("_" + word):
            return column[: -len(word)] + si, exponent
    return column, 0


def _point(
    row: Row, index: int, point: Any, columns: tuple[str, ...], si: list[tuple[str, int]]
) -> Mapping[str, Any]:
    where = f"points[{index}]"
    if not isinstance(point, list) or len(point) != len(columns):
        row.refuse(where, point, f"must hold {len(columns)} values: {', '.join(columns)}.")
    values: dict[str, Any] = {}
    for column, (name, exponent), value in zip(columns, si, point, strict=True):
        if column in WORDS:
            values[name] = str(value)
            continue
        row.check_number(f"{where}.{column}", value)
        values[name] = scaled(value, exponent) if exponent else value
    return MappingProxyType(values)

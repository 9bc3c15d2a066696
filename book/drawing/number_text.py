"""Numbers as people read them: scaled units, GB that are not GiB, and small tables.

Code keeps SI base units everywhere; only the functions here scale, and what they return is text.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from book.say import say, translated

PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_SYMBOL = {"byte": "B", "bytes": "B", "byte/s": "B/s", "bytes/s": "B/s"}
# Units that take a prefix, and the exponents allowed. Nobody says kiloseconds or millibytes.
_RANGE = {
    "s": (-12, 0),
    "Hz": (0, 18),
    "W": (-3, 18),
    "B": (0, 18),
    "B/s": (0, 18),
    "FLOP": (0, 18),
    "FLOP/s": (0, 18),
    "": (0, 18),
}


def _exponent(value: float, digits: int) -> int:
    """The decimal exponent that `value` has after rounding to `digits` significant digits."""
    return int(f"{value:.{digits - 1}e}".split("e")[1])


def _fixed(value: Decimal, exponent: int, digits: int) -> str:
    return f"{value:,.{max(0, digits - 1 - exponent)}f}".replace("-", "−")


def number(value: float, digits: int = 3) -> str:
    """`value` with at least `digits` significant digits, thousands separated, no powers of ten.

    The digits before the point are never blanked out, and ints are exact:
    2730.67 -> "2,731", 0.33856 -> "0.339", 117440512 -> "117,440,512".
    """
    if isinstance(value, int) or (hasattr(value, "dtype") and value.dtype.kind in "iu"):
        return f"{int(value):,}".replace("-", "−")
    value = float(value)
    if math.isnan(value):
        return say("not a number")
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return "0" if value == 0 else _fixed(Decimal(value), _exponent(value, digits), digits)


def si(value: float, unit: str, digits: int = 3) -> str:
    """Text for a quantity in SI base units, scaled by a prefix: 3.35e12 "B/s" is "3.35 TB/s".

    unit: "B", "B/s", "FLOP", "FLOP/s", "s", "Hz", "W" take a prefix ("byte" is read as "B"), and so
    does "" (a bare count: "1.00 k"). Any other unit, "FLOP/byte" for one, keeps its number as it is.
    Rounds first and picks the prefix after, so 999.96 is "1.00 k" and never "1000". Ints below a
    thousand are exact and keep no decimals.
    """
    unit = _SYMBOL.get(unit, unit)
    if unit not in _RANGE or not math.isfinite(value) or value == 0:
        return f"{number(value, digits)} {unit}".rstrip()
    if isinstance(value, int) and abs(value) < 1000:
        return f"{number(value)} {unit}".rstrip()
    exponent = _exponent(float(value), digits)
    low, high = _RANGE[unit]
    scale = min(max(3 * (exponent // 3), low), high)
    text = _fixed(Decimal(float(value)).scaleb(-scale), exponent - scale, digits)
    return f"{text} {PREFIXES[scale]}{unit}".rstrip()


def gigabytes(bytes: float, digits: int = 3) -> str:
    """Decimal gigabytes, 1e9 bytes, as bandwidths are counted: 80 * 2**30 bytes are "85.9 GB"."""
    return f"{number(float(bytes / 1e9), digits)} GB"


def gibibytes(bytes: float, digits: int = 3) -> str:
    """Binary gibibytes, 2**30 bytes, as memory is made: 80 * 2**30 bytes are "80.0 GiB"."""
    return f"{number(float(bytes / 2**30), digits)} GiB"


# ------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Column:
    """One column of a table.

    key: what to take from a row (a mapping's key, or an index). label: its heading.
    show: turns a value into text; numbers get three significant digits if it is left out.
    align: "left" or "right"; left out, columns of numbers go right and words go left.
    """

    key: Any
    label: str
    show: Callable[[Any], str] | None = None
    align: Literal["left", "right", ""] = ""


# Colours fall back to the page's own, so that a table is also readable where no palette is loaded.
_T = ".rl-table.rl-table"  # twice, to outweigh JupyterLab's rules for the tables of outputs
_CSS = (
    ".rl-table{overflow-x:auto;margin:1em 0;max-width:100%;font-family:var(--book-sans,inherit)}"
    ".rl-table:focus-visible{outline:2px solid var(--rl-predicted,currentColor);outline-offset:2px}"
    f"{_T} table{{border-collapse:collapse;margin:0;width:auto;font-size:.9em;color:inherit}}"
    f"{_T} caption{{caption-side:top;text-align:left;padding:.2em 0 .5em;color:var(--rl-dim,inherit)}}"
    f"{_T} th,{_T} td{{padding:.35em .8em;white-space:nowrap;text-align:left;vertical-align:top;"
    "border:0;border-bottom:1px solid var(--rl-line,#8886);background:none;color:inherit}"
    f"{_T} th{{font-weight:600}}{_T} tbody th{{font-weight:400}}"
    f"{_T} .rl-n{{text-align:right;font-variant-numeric:tabular-nums}}"
)

_LOOKS_NUMERIC = re.compile(r"[−+-]?\d[\d,.]*( ?\S{1,9})?\Z")


@dataclass(frozen=True)
class Table:
    """Rows of text under headings. Notebooks show it as HTML, everything else as aligned text."""

    labels: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    caption: str = ""

    def _repr_html_(self) -> str:
        def cell(tag: str, text: str, i: int, scope: str = "") -> str:
            attributes = (f' scope="{scope}"' if scope else "") + (' class="rl-n"' if self.right[i] else "")
            return f"<{tag}{attributes}>{html.escape(text)}</{tag}>"

        head = "".join(cell("th", label, i, "col") for i, label in enumerate(self.labels))
        body = "".join(
            "<tr>"
            + cell("th", row[0], 0, "row")
            + "".join(cell("td", text, i) for i, text in enumerate(row[1:], start=1))
            + "</tr>"
            for row in self.cells
        )
        caption = html.escape(self.caption)
        # Focusable and named, so that a keyboard can scroll it on a narrow screen.
        name = f'role="group" tabindex="0" aria-label="{caption or html.escape(", ".join(self.labels))}"'
        return (
            f'<div class="rl-table" {name}><style>{_CSS}</style><table>'
            + (f"<caption>{caption}</caption>" if caption else "")
            + f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        grid = [self.labels, *self.cells]
        widths = [max(len(row[i]) for row in grid) for i in range(len(self.labels))]
        lines = [
            "  ".join(
                text.rjust(w) if right else text.ljust(w)
                for text, w, right in zip(row, widths, self.right, strict=True)
            ).rstrip()
            for row in grid
        ]
        lines.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join([self.caption, *lines] if self.caption else lines)


def _text(value: Any, show: Callable[[Any], str] | None) -> str:
    if value is None:
        return ""
    if show is not None:
        return show(value)
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    return value if isinstance(value, str) else number(value)


def table(
    rows: Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]],
    columns: Sequence[str | Column],
    caption: str = "",
) -> Table:
    """A small table: a caption, headings, right-aligned numbers; the first column names the row.

    rows: mappings or sequences, all alike. columns: headings, or `Column`s where a key, a format or
    an alignment is to be given; a plain heading takes the value of that key or at that place.
    None is an empty cell. Headings and caption are looked up in the reader's language.
    Raises ValueError for a row that lacks a column.
    """
    if not columns:
        raise ValueError("table: columns is empty; name at least one.")
    cells: list[tuple[str, ...]] = []
    for number_, row in enumerate(rows):
        line = []
        for i, column in enumerate(columns):
            plain = isinstance(column, str)
            key = (column if isinstance(row, Mapping) else i) if plain else column.key
            try:
                value = row[key]
            except (KeyError, IndexError):
                has = list(row) if isinstance(row, Mapping) else f"{len(row)} cells"
                raise ValueError(
                    f"table: row {number_} has no {key!r}; it has {has}. Give every row the same keys."
                ) from None
            line.append(_text(value, None if plain else column.show))
        cells.append(tuple(line))

    def right(i: int) -> bool:
        if not isinstance(columns[i], str) and columns[i].align:
            return columns[i].align == "right"
        filled = [row[i] for row in cells if row[i]]
        return bool(filled) and all(_LOOKS_NUMERIC.match(text) for text in filled)

    labels = tuple(translated(c if isinstance(c, str) else c.label) for c in columns)
    return Table(labels, tuple(cells), tuple(right(i) for i in range(len(columns))), translated(caption))

"""Tables as pages and notebooks show them: small ones of text, and long ones that sort.

`table` makes rows of text, right-aligned numbers, and aligned columns in a terminal. `sortable` makes
a plain HTML table, whole without a script; `static/sortable.js` turns its headings into buttons.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from book.drawing.number_text import number
from book.say import say, translated


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


# ------------------------------------------------------------------------------- tables that sort

EMPTY = "\N{EN DASH}"  # for "not supported, or not published"


@dataclass(frozen=True)
class Html:
    """A piece of HTML that notebooks and pages display as it is. `alt` is what a terminal shows."""

    html: str
    alt: str = ""

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.alt or re.sub(r"<[^>]+>", "", self.html)


@dataclass(frozen=True)
class Cell:
    """One cell: `html` to show, and `key` to sort by. None sorts last, whichever way."""

    html: str
    key: float | str | None = None


@dataclass(frozen=True)
class Heading:
    """One column. Numbers go right and sort downwards first. `title` explains the heading.

    first: where rows are cards, this comes before the other columns.
    """

    label: str
    unit: str = ""
    numeric: bool = True
    title: str = ""
    first: bool = False


_SORTABLE_CSS = """
.rl-sortable{container-type:inline-size;overflow-x:auto;max-width:100%;
margin:1em 0;font-size:.8em;color:var(--rl-text,inherit)}
.rl-sortable:focus-visible{outline:2px solid var(--rl-predicted,currentColor);outline-offset:2px}
.rl-sortable table{border-collapse:separate;border-spacing:0;width:auto;margin:0}
.rl-sortable caption{caption-side:top;text-align:left;color:var(--rl-dim,inherit)}
.rl-sortable caption span{display:inline-block;position:sticky;left:0}
.rl-sortable caption small{font-size:inherit}
.rl-sortable th,.rl-sortable td{padding:.3em .4em;text-align:left;vertical-align:top;white-space:nowrap;
border:0;border-bottom:1px solid var(--rl-line,#8886);background:none}
.rl-sortable tbody th,.rl-sortable thead th:first-child{background:var(--rl-background,transparent)}
.rl-sortable thead th{vertical-align:bottom;font-weight:600}
.rl-sortable :is(thead,tbody) th{white-space:normal}
.rl-sortable thead small{display:block;font-weight:400;font-size:.9em;color:var(--rl-dim,inherit)}
.rl-sortable .n{text-align:right;font-variant-numeric:tabular-nums}
.rl-sortable tbody th{font-weight:600;position:sticky;left:0;z-index:1}
.rl-sortable thead th:first-child{position:sticky;left:0;z-index:2}
.rl-sortable button{all:unset;cursor:pointer;display:inline-block;min-height:1.6em}
.rl-sortable button:focus-visible{outline:2px solid var(--rl-predicted,currentColor);outline-offset:2px}
.rl-sortable button{text-decoration:underline dotted var(--rl-dim,currentColor);text-underline-offset:.2em}
.rl-sortable [aria-sort=ascending] button::before{content:"\\2191"}
.rl-sortable [aria-sort=descending] button::before{content:"\\2193"}
.rl-sortable td.n small{display:block}
.rl-sortable .trap{color:var(--rl-wrong,inherit)}
""".strip()

_FILTERED_CSS = """
.rl-filtered code{display:block;white-space:normal;max-width:18em;font-size:.85em;
color:var(--rl-dim,inherit);background:none;border:0;padding:0;overflow-wrap:anywhere}
.rl-filter button{font:inherit;padding:.35em .7em;border:1px solid var(--rl-dim,#8888);border-radius:4px;
background:var(--rl-background,transparent);color:inherit;cursor:pointer;min-height:2.2em}
.rl-filter button[aria-pressed=true]{background:var(--rl-text,CanvasText);color:var(--rl-background,Canvas)}
.rl-filter button:focus-visible{outline:2px solid var(--rl-predicted,currentColor);outline-offset:2px}
.rl-filtered tbody small{display:block;font-weight:400;color:var(--rl-dim,inherit);white-space:nowrap}
.rl-filtered tr:target{outline:2px solid var(--rl-predicted,currentColor);outline-offset:-2px}
.rl-filter{display:flex;gap:.6em;align-items:center;margin:.6em 0;font-size:1.1em;flex-wrap:wrap}
.rl-filter input{font:inherit;padding:.35em .6em;border:1px solid var(--rl-dim,#8888);border-radius:4px;
background:var(--rl-background,transparent);color:inherit;min-width:12em}
""".strip()

# Where a long table has no room, on a phone or on paper, each row is a card: the cells below its name, each
# with its heading. Words take a line of their own, numbers stand side by side, the leading ones first.
_CARDS = """
.rl-sortable table,.rl-sortable tbody,.rl-sortable td,.rl-sortable tbody th,
.rl-sortable caption{display:block}
.rl-sortable caption small{display:none}
.rl-sortable thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.rl-sortable tbody tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.5em,1fr));gap:.15em .8em;
border:1px solid var(--rl-line,#8886);border-radius:6px;padding:.4em .6em;margin:0 0 .8em;break-inside:avoid}
.rl-sortable tbody tr[hidden]{display:none}
.rl-sortable tbody th,.rl-sortable tbody td,.rl-sortable tbody td.n{white-space:normal;border:0;
padding:.15em 0;text-align:left;position:static;background:none}
.rl-sortable tbody th,.rl-filtered td{grid-column:1/-1}
.rl-sortable tbody th{order:-2}.rl-sortable td.first{order:-1;font-weight:600}
.rl-sortable td::before{content:attr(data-name) ": ";color:var(--rl-dim,inherit);font-weight:400}
.rl-sortable td[data-unit]:not(.none)::after{content:"\\a0" attr(data-unit);font-weight:400}
.rl-sortable td small{display:inline!important}
.rl-sortable td>div{display:inline;min-width:0!important}
""".strip()
_NARROW = "".join(f"@{where}{{{_CARDS}}}" for where in ("container (max-width:880px)", "media print"))


def sortable(
    headings: Sequence[Heading],
    rows: Iterable[Sequence[Cell]],
    caption: str,
    *,
    ids: Sequence[str] = (),
    filtered: bool = False,
    kinds: Sequence[str] = (),
) -> Html:
    """A table whose columns sort at a press of their heading; the first column names the row.

    ids: of the rows, for links to one of them. filtered: a field above the table keeps the rows that hold
    what is typed into it; kinds: what the first cell may begin with, a button each beside the field.
    On a narrow screen and on paper each row is a card.
    Raises ValueError if a row has another number of cells than there are headings, or ids than rows.
    """
    body = []
    rows = list(rows)
    if ids and len(ids) != len(rows):
        raise ValueError(f"sortable: {len(ids)} ids for {len(rows)} rows; give each row one.")
    for number_, row in enumerate(rows):
        if len(row) != len(headings):
            raise ValueError(
                f"sortable: a row has {len(row)} cells for {len(headings)} headings; make them equal."
            )
        cells = []
        for i, (heading, cell) in enumerate(zip(headings, row, strict=True)):
            tag = "th" if i == 0 else "td"
            scope = ' scope="row"' if i == 0 else ""
            classes = ("n" * heading.numeric, "first" * heading.first, "none" * (cell.html == EMPTY))
            shown = f' class="{" ".join(filter(None, classes))}"' if any(classes) else ""
            key = "" if cell.key is None else html.escape(str(cell.key))
            name = f' data-name="{html.escape(heading.label)}"'
            name += f' data-unit="{html.escape(heading.unit)}"' if heading.unit else ""
            cells.append(f'<{tag}{scope}{shown}{name} data-key="{key}">{cell.html}</{tag}>')
        own = f' id="{html.escape(ids[number_])}"' if ids else ""
        body.append(f"<tr{own}>{''.join(cells)}</tr>")
    head = "".join(
        f'<th scope="col" data-sort="{"number" if h.numeric else "text"}"'
        + (' class="n"' if h.numeric else "")
        + (f' title="{html.escape(h.title)}"' if h.title else "")
        + f">{html.escape(h.label)}{f'<small>{html.escape(h.unit)}</small>' if h.unit else ''}</th>"
        for h in headings
    )
    words, hint = html.escape(caption), say("Press a heading to sort by it.")
    kind = "rl-sortable rl-filtered" if filtered else "rl-sortable"
    field = f' data-filter="{html.escape(say("Show rows with"))}"' if filtered else ""
    if kinds:
        field += f' data-kinds="{html.escape("|".join([say("all"), *kinds]))}"'
    css = _SORTABLE_CSS + (_FILTERED_CSS if filtered else "") + _NARROW
    tools = '<div class="rl-filter"></div>' if filtered else ""  # the script fills it
    return Html(
        f'{tools}<div class="{kind}" role="group" tabindex="0" aria-label="{words}">'
        f"<style>{css}</style>"
        f'<table data-hint="{html.escape(hint)}"{field}><caption><span>{words}</span></caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>",
        alt=say("{caption} ({count} rows)", caption=caption, count=len(body)),
    )

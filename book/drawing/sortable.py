"""A table whose columns sort at a press of their heading.

What Python writes is a plain HTML table, whole without a script; `static/sortable.js` turns
its headings into buttons.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from book.say import say

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
    """One column. Numbers go right and sort downwards first. `title` explains the heading."""

    label: str
    unit: str = ""
    numeric: bool = True
    title: str = ""


_CSS = """
.rl-sortable{overflow-x:auto;max-width:100%;margin:1em 0;font-size:.82em;color:var(--rl-text,inherit)}
.rl-sortable:focus-visible{outline:2px solid var(--rl-predicted,currentColor);outline-offset:2px}
.rl-sortable table{border-collapse:separate;border-spacing:0;width:auto;margin:0}
.rl-sortable caption{caption-side:top;text-align:left;color:var(--rl-dim,inherit)}
.rl-sortable caption span{display:inline-block;position:sticky;left:0}
.rl-sortable th,.rl-sortable td{padding:.3em .55em;text-align:left;vertical-align:top;white-space:nowrap;
border:0;border-bottom:1px solid var(--rl-line,#8886);background:var(--rl-background,transparent)}
.rl-sortable thead th{vertical-align:bottom;font-weight:600}
.rl-sortable thead small{display:block;font-weight:400;font-size:.9em;color:var(--rl-dim,inherit)}
.rl-sortable .n{text-align:right;font-variant-numeric:tabular-nums}
.rl-sortable tbody th{font-weight:600;position:sticky;left:0;z-index:1}
.rl-sortable thead th:first-child{position:sticky;left:0;z-index:2}
.rl-sortable button{all:unset;cursor:pointer;display:inline-block;min-height:1.6em}
.rl-sortable button:focus-visible{outline:2px solid var(--rl-predicted,currentColor);outline-offset:2px}
.rl-sortable button::before{content:"\\2195\\a0";color:var(--rl-dim,inherit);font-weight:400}
.rl-sortable [aria-sort=ascending] button::before{content:"\\2191\\a0";color:inherit;font-weight:600}
.rl-sortable [aria-sort=descending] button::before{content:"\\2193\\a0";color:inherit;font-weight:600}
.rl-sortable .trap{color:var(--rl-wrong,inherit)}
""".strip()


def sortable(headings: Sequence[Heading], rows: Iterable[Sequence[Cell]], caption: str) -> Html:
    """A table whose columns sort at a press of their heading; the first column names the row.

    Raises ValueError if a row has another number of cells than there are headings.
    """
    body = []
    for row in rows:
        if len(row) != len(headings):
            raise ValueError(
                f"sortable: a row has {len(row)} cells for {len(headings)} headings; make them equal."
            )
        cells = []
        for i, (heading, cell) in enumerate(zip(headings, row, strict=True)):
            tag = "th" if i == 0 else "td"
            scope = ' scope="row"' if i == 0 else ""
            shown = ' class="n"' if heading.numeric else ""
            key = "" if cell.key is None else html.escape(str(cell.key))
            cells.append(f'<{tag}{scope}{shown} data-key="{key}">{cell.html}</{tag}>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(
        f'<th scope="col" data-sort="{"number" if h.numeric else "text"}"'
        + (' class="n"' if h.numeric else "")
        + (f' title="{html.escape(h.title)}"' if h.title else "")
        + f">{html.escape(h.label)}{f'<small>{html.escape(h.unit)}</small>' if h.unit else ''}</th>"
        for h in headings
    )
    words, hint = html.escape(caption), say("Press a heading to sort by it.")
    return Html(
        f'<div class="rl-sortable" role="group" tabindex="0" aria-label="{words}"><style>{_CSS}</style>'
        f'<table data-hint="{html.escape(hint)}"><caption><span>{words}</span></caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>",
        alt=say("{caption} ({count} rows)", caption=caption, count=len(body)),
    )

"""A number or two, set large: what a chapter begins with."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

# Colours and letters fall back to the page's own, as in `tables`.
_CSS = (
    ".rl-headline{display:flex;flex-wrap:wrap;gap:.6em 2.4em;margin:1em 0;padding:0;list-style:none}"
    ".rl-headline li{margin:0;max-width:22em}"
    ".rl-headline b{display:block;font:600 2.3em/1.15 var(--book-serif,Georgia,serif);"
    "color:var(--rl-text,inherit);white-space:nowrap;font-variant-numeric:lining-nums}"
    ".rl-headline b small{font-size:.55em;font-weight:500;color:var(--rl-dim,inherit)}"
    ".rl-headline span{font:.95em/1.4 var(--book-sans,inherit);color:var(--rl-dim,inherit)}"
    "@media (max-width:480px){.rl-headline{display:grid;grid-template-columns:1fr 1fr;gap:.5em 1em}"
    ".rl-headline b{font-size:1.55em}.rl-headline span{font-size:.85em}}"
)


@dataclass(frozen=True)
class Headline:
    """Values and what each of them is. Notebooks show it as HTML, everything else as lines of text."""

    values: tuple[tuple[str, str], ...]

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li><b>{_with_small_unit(value)}</b> <span>{html.escape(of)}</span></li>"
            for value, of in self.values
        )
        return f'<style>{_CSS}</style><ul class="rl-headline">{items}</ul>'

    def __repr__(self) -> str:
        widest = max(len(value) for value, _ in self.values)
        return "\n".join(f"{value:>{widest}}  {of}" for value, of in self.values)


def _with_small_unit(value: str) -> str:
    """'<b>207 µs</b>', its unit smaller than its digits."""
    found = re.fullmatch(r"(.*\d)(\s+)(\D+)", value)
    if not found:
        return html.escape(value)
    return f"{html.escape(found[1])}{found[2]}<small>{html.escape(found[3])}</small>"


def headline(*values: tuple[str, str]) -> Headline:
    """Numbers set large, each with what it is: `headline(("207 µs", "one row"), ("181 µs", "128 rows"))`.

    Both are text: a number comes from a cell's calculation through `si` or a format, in SI units.
    Raises ValueError for none, and for more than four, which is a table.
    """
    if not 1 <= len(values) <= 4:
        raise ValueError(f"headline: {len(values)} values; give one to four, or make it a table(...).")
    return Headline(tuple(values))

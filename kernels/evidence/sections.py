"""Evidence as a reader meets it: rung by rung, its sentence first, then the table of what it found."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

from book.drawing.tables import Table
from kernels.evidence.tables import RUNGS

# A rung's heading stands apart, its tables close to it; what has no table is a line in a list. Headings of
# columns and sentences may wrap, so that the numbers fit a narrow page.
_E = ".rl-evidence.rl-evidence"  # twice, to outweigh the tables' own rules
_CSS = (
    ".rl-evidence .rl-rung{margin:1.4em 0 .4em;text-align:left}"
    ".rl-evidence .rl-rung+.rl-rung{margin-top:.4em}"
    ".rl-evidence .rl-table{margin:.4em 0}"
    f"{_E} .rl-table th,{_E} .rl-table td{{padding:.3em .33em}}"
    ".rl-evidence .rl-table{container-type:inline-size}"
    ".rl-evidence .rl-table caption{position:sticky;left:0;max-width:100cqw;white-space:normal}"
    ".rl-evidence .rl-table thead th{white-space:normal;vertical-align:bottom}"
    ".rl-evidence .rl-table tbody :only-child{white-space:normal;text-align:left;font-weight:inherit}"
    ".rl-evidence summary{cursor:pointer;color:var(--rl-dim,inherit);font-size:.9em}"
)


@dataclass(frozen=True)
class Section:
    """One rung: its name in code, how it stands in words, what it found; `folded` is for those who ask."""

    rung: str
    words: str
    shown: Sequence[Table] = ()
    folded: Sequence[Table] = ()

    def _repr_html_(self) -> str:
        head = f"<strong>{html.escape(RUNGS[self.rung])}</strong>: {html.escape(self.words)}"
        more = "".join(
            f"<details><summary>{html.escape(one.caption)}</summary>"
            f"{replace(one, caption='')._repr_html_()}</details>"
            for one in self.folded
        )
        return f'<p class="rl-rung">{head}</p>' + "".join(one._repr_html_() for one in self.shown) + more

    def __repr__(self) -> str:
        blocks = [f"{RUNGS[self.rung]}: {self.words}", *map(repr, self.shown), *map(repr, self.folded)]
        return "\n\n".join(blocks)


def page(sections: Sequence[Section]) -> str:
    """All rungs as HTML."""
    inner = "".join(section._repr_html_() for section in sections)
    return f'<div class="rl-evidence"><style>{_CSS}</style>{inner}</div>'

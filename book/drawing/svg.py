"""The style of the book's figures, and how a figure gets onto a page, light or dark."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import re
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from book.drawing import captions
from book.drawing.palette import PALETTE, css
from book.say import translated

# Wide enough for a page, narrow enough that text stays readable when a phone halves it.
SIZE = (5.2, 3.7)  # inches


def colour(role: str) -> str:
    """The light shade of a role; `show` swaps in the dark one. Raises KeyError with the roles."""
    if role not in PALETTE:
        raise KeyError(f"no colour is called {role!r}; the palette has {', '.join(PALETTE)}.")
    return PALETTE[role][0]


def style() -> dict[str, Any]:
    """The rcParams of the book, for `matplotlib.rc_context`: quiet axes, no title, no background."""
    return {
        "figure.figsize": SIZE,
        "figure.dpi": 100,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "figure.constrained_layout.use": True,
        "font.family": "DejaVu Sans",
        "font.size": 10.5,
        "axes.labelsize": 10.5,
        "axes.labelcolor": colour("dim"),
        "axes.edgecolor": colour("dim"),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": colour("line"),
        "grid.linewidth": 0.6,
        "text.color": colour("text"),
        "xtick.color": colour("dim"),
        "ytick.color": colour("dim"),
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "lines.linewidth": 2,
        "legend.frameon": False,
        "legend.fontsize": 9.5,
        "svg.fonttype": "none",
        "svg.hashsalt": "inference-roofline",
    }


_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_ROLE = {pair[0]: role for role, pair in reversed(PALETTE.items())}
_CSS = (
    ".rl-figure{margin:1em 0;max-width:36rem}"
    ".rl-figure svg{display:block;width:100%;height:auto;stroke-linejoin:round}"
    ".rl-figure svg text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif!important}"
    ".rl-figure figcaption{font-size:.9em;font-weight:400;margin-top:.4em;"
    "font-family:var(--book-sans,inherit);text-align:left;color:var(--rl-dim,inherit)}"
)


def _variable(found: re.Match[str]) -> str:
    role = _ROLE.get(found[0])
    return f"var(--rl-{role},{found[0]})" if role else found[0]


def _svg(figure: Figure, alt: str) -> str:
    """The figure as an SVG element whose colours are the palette's variables: one copy for light and dark."""
    buffer = io.StringIO()
    with matplotlib.rc_context(style()):
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", text, flags=re.S)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)  # matplotlib's figure_1, axes_1: no use, and not unique
    # Clip paths and markers are found by id, and ids are the page's: make them this picture's own.
    mine = hashlib.sha256(text.encode()).hexdigest()[:8]
    text = re.sub(r'(id="|#)([pm][0-9a-f]{10})\b', rf"\1rl-{mine}-\2", text)
    text = re.sub(r"#[0-9a-f]{6}\b", _variable, text)
    text = re.sub(r"(\d+\.\d{2})\d+", r"\1", text)  # a hundredth of a point is enough
    text = re.sub(r">\s+<", "><", text).strip()
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(alt)}"', 1)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    with matplotlib.rc_context(style()):
        figure.savefig(
            buffer, format="png", dpi=110, facecolor=colour("background"), metadata={"Software": None}
        )
    return buffer.getvalue()


@dataclass(frozen=True)
class Shown:
    """A figure ready for the page: HTML that follows the theme, PNG for other front ends, words.

    alt: its finding; below: its number and caption, "" without one.
    """

    html: str
    png: bytes
    alt: str
    below: str = ""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        png = base64.b64encode(self.png).decode()
        return {"text/html": self.html, "image/png": png, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"{self.below}\n\n{self.alt}" if self.below else f"Figure: {self.alt}"


def show(figure: Figure, alt: str = "", caption: str = "", number: str = "") -> Shown:
    """A figure as a display object. alt: its finding, in words, for those who can't see it.

    caption: one or two sentences below it: what was drawn, and what to look at. number: "2.1" for the
    first figure of chapter 2; prose that says "Figure 2.1" then leads here. The SVG is drawn once and
    takes its colours from the palette's CSS variables, so it follows the page between light and dark.
    Raises ValueError if neither `alt` nor the figure says what it shows, or for a number without a caption.
    """
    alt = translated(alt) or figure.get_label()
    if not alt:
        raise ValueError("show: alt is empty; say in one sentence what the figure shows.")
    caption = translated(caption) or getattr(figure, "caption", "")
    captioned = captions.below(caption, number or getattr(figure, "number", ""))
    opened = f'<figure class="rl-figure"{captioned.attribute}><style>{css()}{_CSS}</style>'
    page = f"{opened}{_svg(figure, alt)}{captioned.html}</figure>"
    return Shown(page, _png(figure), alt, captioned.text)


class PageFigure(Figure):
    """A matplotlib figure that a notebook shows as `show` does, with no pyplot and no magic command.

    It needs its alt text, as its label or from the function that drew it; `captions.put` gives it a
    caption and a number.
    """

    caption = ""
    number = ""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return show(self)._repr_mimebundle_()

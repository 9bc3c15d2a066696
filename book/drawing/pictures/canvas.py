"""What every explanatory picture is drawn with: text, rectangles, lines, arrows, and the finished SVG.

A canvas is 704 units wide, one unit a pixel on a desktop. There is one layout and there are two sizes
of type, 15 units and on phones 23: lines of text step in `em`, so one set of coordinates serves both,
and is laid out for the larger. A picture that is narrower than 560 pixels takes the large type.

Colours are the palette's, with a fallback for either theme, so that the SVG also stands alone.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from book.drawing import captions
from book.drawing.palette import PALETTE, css

WIDTH = 704
PHONE = 560  # pixels; below them the large type
TYPE, PHONE_TYPE = 15, 23  # units
_LEADING = 1.25  # em from one line to the next

# A letter for each role, as the SVG's own variables: --w is the colour of weights.
_LETTERS = {
    "background": "b",
    "text": "i",
    "dim": "d",
    "line": "l",
    "roof": "r",
    "memory": "m",
    "compute": "c",
    "weights": "w",
    "cache": "k",
    "predicted": "p",
    "published": "u",
}


def _variables(shade: int) -> str:
    return "".join(f"--{v}:var(--rl-{role},{PALETTE[role][shade]});" for role, v in _LETTERS.items())


def _fills() -> str:
    return "".join(f".rl-pic .f{v}{{fill:var(--{v})}}.rl-pic .t{v}{{fill:var(--{v})}}" for v in "wkrdbmcpu")


STYLE = (
    f".rl-pic{{{_variables(0)}display:block;width:100%;height:auto;background:var(--b);"
    f'font:{TYPE}px/1 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}}'
    f"@media(prefers-color-scheme:dark){{.rl-pic{{{_variables(1)}}}}}"
    # On a phone the drawing shrinks to half: lines keep their width on the screen.
    ".rl-pic :is(path,rect,circle){vector-effect:non-scaling-stroke}"
    ".rl-pic text{fill:var(--i);stroke:none}"
    f"{_fills()}"
    ".rl-pic .b{font-weight:650}.rl-pic .q{fill:var(--d)}.rl-pic .on{fill:var(--b)}.rl-pic "
    ".e{text-anchor:end}.rl-pic .m{text-anchor:middle}.rl-pic "
    ".s{fill:none;stroke:var(--d);stroke-width:1.5}.rl-pic .s1{stroke:var(--r);stroke-width:1}.rl-pic "
    ".sb{fill:none;stroke:var(--b);stroke-width:1}.rl-pic "
    ".si{fill:none;stroke:var(--i);stroke-width:2}.rl-pic "
    ".sk{fill:none;stroke:var(--k);stroke-width:1.5}.rl-pic .half{opacity:.5}"
    ".rl-pic .sm{fill:none;stroke:var(--r);vector-effect:none}"
    ".rl-pic .dots{fill:none;stroke:var(--i);stroke-linecap:round;vector-effect:none}"
    f"@media(max-width:{PHONE - 1}px){{.rl-pic{{font-size:{PHONE_TYPE}px}}.rl-pic .wide{{display:none}}}}"
)


@dataclass(frozen=True)
class Picture:
    """A finished drawing. title: its finding as a sentence; description: the drawing in words.

    `svg` stands alone as a file, and is what a notebook and a page show, with `caption` below it and
    the figure's `number`, as `book.drawing.captions` has them.
    """

    name: str
    title: str
    description: str
    svg: str
    caption: str = ""
    number: str = ""

    def captioned(self, caption: str, number: str = "") -> Picture:
        """The same with a line of text below, and a number. Raises ValueError for a number that is none."""
        captions.below(caption, number)
        return replace(self, caption=caption, number=number)

    def _repr_html_(self) -> str:
        below = captions.below(self.caption, self.number)
        frame = (
            ".rl-drawing{margin:1em 0;padding:0;max-width:44rem}"
            ".rl-drawing figcaption{font-size:.9em;font-weight:400;margin-top:.4em;"
            "font-family:var(--book-sans,inherit);"
            "text-align:left;color:var(--rl-dim,inherit)}"
        )
        style = f"<style>{css()}{frame}</style>"
        return f'<figure class="rl-drawing"{below.attribute}>{style}{self.svg}{below.html}</figure>'

    def __repr__(self) -> str:
        return f"Picture: {self.title}"


def number(value: float) -> str:
    """A coordinate, to a hundredth of a unit."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _attributes(classes: str, extra: str = "") -> str:
    return (f' class="{classes}"' if classes else "") + (f" {extra}" if extra else "")


def text(x: float, y: float, words: str, classes: str = "", at: str = "middle", *, halo: str = "") -> str:
    r"""Words at (x, y), a line for each "\n" in them. at: what of them is at y, "top", "middle", "bottom".

    classes: b bold, q dim, m centred on x, e ending at x, on for words on a fill, tw and tk in the
    colour of weights and of the cache, wide for what phones go without. halo: the colour's letter of
    a rim around the letters, for words that a line runs behind.
    """
    lines = words.split("\n")
    above = {
        "top": 0.95,
        "middle": 0.35 - (len(lines) - 1) * _LEADING / 2,
        "bottom": -(len(lines) - 1) * _LEADING,
    }
    rim = f'style="stroke:var(--{halo});stroke-width:7;paint-order:stroke"' if halo else ""
    first = number(above[at])
    if len(lines) == 1:
        shift = f' dy="{first}em"' if above[at] else ""
        place = f'x="{number(x)}" y="{number(y)}"{shift}'
        return f"<text {place}{_attributes(classes, rim)}>{html.escape(words)}</text>"
    spans = "".join(
        f'<tspan x="{number(x)}" dy="{first if i == 0 else _LEADING}em">{html.escape(line)}</tspan>'
        for i, line in enumerate(lines)
    )
    return f'<text y="{number(y)}"{_attributes(classes, rim)}>{spans}</text>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    classes: str = "",
    *,
    measures: str = "",
    round: float = 0,
) -> str:
    """A box. measures: what its size stands for, so that a test can read it back from the drawing."""
    extra = " ".join(
        filter(None, (f'rx="{number(round)}"' if round else "", f'data-is="{measures}"' if measures else ""))
    )
    sides = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f"<rect {sides}{_attributes(classes, extra)}/>"


def path(d: str | Iterable[str], classes: str = "s", extra: str = "") -> str:
    """A line or an area from SVG's path commands."""
    return f'<path d="{d if isinstance(d, str) else "".join(d)}"{_attributes(classes, extra)}/>'


def box(x: float, y: float, width: float, height: float) -> str:
    """Path commands of a box: many of them make one path."""
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"


def line(x: float, y: float, x1: float, y1: float) -> str:
    """Path commands of a straight line."""
    if x == x1:
        return f"M{number(x)} {number(y)}V{number(y1)}"
    if y == y1:
        return f"M{number(x)} {number(y)}H{number(x1)}"
    return f"M{number(x)} {number(y)}L{number(x1)} {number(y1)}"


def arrow(*points: tuple[float, float]) -> str:
    """Path commands of a line through the points, with an open head at the last one."""
    (ax, ay), (x, y) = points[-2:]
    length = ((x - ax) ** 2 + (y - ay) ** 2) ** 0.5
    ux, uy = (x - ax) / length, (y - ay) / length
    head = [(x - 7 * ux + s * 4 * uy, y - 7 * uy - s * 4 * ux) for s in (1, -1)]
    (lx, ly), (rx, ry) = head
    shaft = "".join(line(*a, *b) for a, b in zip(points, points[1:], strict=False))
    return f"{shaft}M{number(lx)} {number(ly)}L{number(x)} {number(y)}L{number(rx)} {number(ry)}"


def dots(first: float, last: float, y: float, pitch: float, size: float) -> str:
    """A row of dots, `pitch` apart: one line, dashed into points."""
    drawn = f'stroke-width="{number(size)}" stroke-dasharray="0 {number(pitch)}"'
    return path(line(first, y, last + 1, y), "dots", drawn)


def finished(name: str, height: float, title: str, description: str, *parts: str) -> Picture:
    """The SVG of `parts`, from back to front. Its ids are its own, so that several fit on a page.

    A part may use `#ID` for the beginning of an id of its own (patterns).
    """
    body = "\n".join(filter(None, parts))
    mine = f"pic-{name}-{hashlib.sha256((title + description + body).encode()).hexdigest()[:6]}"
    body = body.replace("#ID", mine)
    svg = (
        f'<svg class="rl-pic" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(height)}" '
        f'role="img" aria-labelledby="{mine}-t" aria-describedby="{mine}-d">'
        f'<title id="{mine}-t">{html.escape(title)}</title>'
        f'<desc id="{mine}-d">{html.escape(description)}</desc>'
        f"<style>{STYLE}</style>{body}</svg>"
    )
    return Picture(name, title, description, re.sub(r">\n+<", "><", svg))

"""What is written on a roofline: the names of roofs, the ridges, and what binds left and right of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from book.drawing.label_placement import Labels, Place, spread
from book.drawing.number_text import number
from book.drawing.svg import colour
from book.roofline import Roof
from book.say import say

WORDS = {"memory": say("waits for memory"), "compute": say("computes")}
LINE = 15  # pixels that a line of text needs


def names(labels: Labels, roofs: Sequence[Roof], strong: Roof | None, xlim: tuple[float, float]) -> None:
    """Each roof's name along its flat part, or in the margin where roofs are too near each other.

    strong: the one that is drawn so, if one is.
    """
    if _crowded(labels, roofs):
        _outside(labels, roofs, strong)
        labels.axes.figure.draw_without_rendering()  # the margin has moved the axes
        return
    left = sorted(roofs, key=lambda r: (r is not strong, -r.peak))
    while left:
        roof = left[0]
        same = [r for r in left if math.isclose(r.peak, roof.peak, rel_tol=0.02)]
        left = [r for r in left if r not in same]
        start, end = math.log(max(roof.ridge, xlim[0])), math.log(xlim[1])
        places = [
            Place(math.exp(start + (end - start) * t), roof.peak, -4, 3 * side, "right", va)
            for side, va in ((1, "bottom"), (-1, "top"))
            for t in (1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
        ]
        labels.place(", ".join(r.name for r in same), places, **_style(strong in same))


def ridges(
    labels: Labels, marked: Sequence[float], xlim: tuple[float, float], ylim: tuple[float, float]
) -> None:
    """The intensity of each ridge, beside its line; where there are several, along it."""
    several = len(marked) > 1
    for ridge in marked:
        if not xlim[0] < ridge < xlim[1]:
            continue
        words = say("ridge {at}", at=number(ridge))
        heights = [ylim[0] * (ylim[1] / ylim[0]) ** share for share in (0, 0.06, 0.12, 0.2, 0.3)]
        sides = ((-2, "right"), (3, "left")) if several else ((5, "left"), (-5, "right"))
        places = [Place(ridge, y, dx, 5, ha, "bottom") for y in heights for dx, ha in sides]
        labels.place(words, places, colour=colour("dim"), fontsize=9.5, rotation=90 if several else 0)


def regions(labels: Labels, xlim: tuple[float, float], ylim: tuple[float, float]) -> None:
    """What the tints mean, in the corners, if there is room."""
    for word, x, sign, ha in (("memory", xlim[0], 1, "left"), ("compute", xlim[1], -1, "right")):
        rows = ((ylim[1], -4, "top"), (ylim[0], 5, "bottom"), (ylim[0], 20, "bottom"))
        corners = [Place(x, y, 6 * sign, dy, ha, va) for y, dy, va in rows]
        labels.place(WORDS[word], corners, colour=colour("dim"), fontsize=9.5, limit=0)


def _style(strong: bool) -> dict[str, object]:
    shade, weight = ("text", "bold") if strong else ("roof", "normal")
    return {"colour": colour(shade), "fontsize": 9.5, "fontweight": weight}


def _crowded(labels: Labels, roofs: Sequence[Roof]) -> bool:
    """Are two roofs so near in height that a name doesn't fit between them?"""
    heights = sorted(labels.axes.transData.transform((1, roof.peak))[1] for roof in roofs)
    gaps = np.diff(heights)
    return bool(np.any((gaps > 1) & (gaps < LINE)))


def _outside(labels: Labels, roofs: Sequence[Roof], strong: Roof | None) -> None:
    """Names in the margin, apart from each other, each tied to its roof by a thin line."""
    axes = labels.axes
    rising = sorted(roofs, key=lambda r: (r.peak, r.bandwidth))
    heights = [axes.transData.transform((1, roof.peak))[1] for roof in rising]
    points = 72 / axes.figure.dpi
    for roof, height, place in zip(rising, heights, spread(heights, LINE), strict=True):
        style = _style(roof is strong)
        axes.annotate(
            roof.name,
            (1, roof.peak),
            (14, (place - height) * points),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center_baseline",
            color=style["colour"],
            fontsize=style["fontsize"],
            fontweight=style["fontweight"],
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour("roof"),
                "lw": 0.7,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )

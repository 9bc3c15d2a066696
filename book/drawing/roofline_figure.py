"""The roofline: attainable FLOP/s against FLOP/byte, with the evidence where it was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from book.drawing import roof_labels
from book.drawing.axes import (
    Marks,
    draw_series,
    log_axis,
    new,
    plain,
    rung_of,
    si_tick,
    told_apart,
    write_labels,
)
from book.drawing.label_placement import Labels, Place, around
from book.drawing.number_text import number
from book.drawing.svg import colour
from book.roofline import Roof
from book.say import say, translated

LANE = 0.06  # of the axes' height: how far apart series without a time stand, from the axis down
WORDS = {"intensity": say("arithmetic intensity (FLOP/byte)"), "flops": "FLOP/s"}


@dataclass(frozen=True)
class OnAxis:
    """A series that has no time: where it stands on the intensity axis, and nothing of its height.

    reach: (without, with) the traffic that the formula leaves out, of the points that have some.
    """

    rung: str
    label: str
    x: Sequence[float]
    reach: Sequence[tuple[float, float]]
    variant: int


def roofline(
    roofs: Sequence[Roof],
    points: Iterable[Mapping[str, Any]] = (),
    *,
    highlight: str | None = None,
    operating: float | tuple[float, str] | None = None,
    xlim: tuple[float, float] | None = None,
    alt: str = "",
    roofs_drawn: bool = True,
) -> Figure:
    """Roofs, the evidence under them, and the operating point: attainable FLOP/s against FLOP/byte.

    points: series {"rung", "label", "points": [{"intensity": FLOP/byte, "flops_per_s": FLOP/s or
    None}]}; a point without FLOP/s was counted, not timed, and stands on the intensity axis, a series
    below the other. Where it has an "intensity_of_all", with the traffic that the formula leaves out,
    a line leads there.
    highlight: the name of the roof that is drawn strong, whose two regions are tinted and on which
    the operating point sits. Without it that is the first, unless several roofs have ridges of their
    own: then each ridge is marked, and only what binds under all of them is tinted. operating: an
    intensity, or (intensity, label). alt: the finding in words; `show` uses it. roofs_drawn: False
    leaves the roofs out, with their ridges and regions, where the evidence denies them. Raises
    ValueError for no roof, or one unknown.
    """
    if not roofs:
        raise ValueError("roofline: roofs is empty; give at least one book.roofline.Roof.")
    chosen = next((r for r in roofs if r.name == (highlight or roofs[0].name)), None)
    if chosen is None:
        raise ValueError(f"roofline: highlight {highlight!r} is none of {[r.name for r in roofs]}.")
    marks, counted = _told_apart(points, chosen)
    spot = _at(operating)
    ridges = _ridges(roofs, chosen, alone=highlight is not None or spot is not None)
    shown = roofs if roofs_drawn else ()

    every_x = [v for one in (*marks, *counted) for v in one.x] + ([spot[0]] if spot else [])
    every_x += [with_all for one in counted for _, with_all in one.reach]
    if xlim is None:
        low, high = min([*every_x, 1]), max([*every_x, *(r.ridge for r in roofs)])
        xlim = (low / 2, max(high * 2.5, chosen.ridge * 12))
    every_y = [v for one in marks for v in one.y] + [r.attainable(xlim[0]) for r in roofs]
    ylim = (min(every_y) / (4 if counted else 1.5), max([*every_y, *(r.peak for r in roofs)]) * 4)

    figure, axes = new()
    log_axis(axes.xaxis, xlim, plain)
    log_axis(axes.yaxis, ylim, si_tick(""))
    axes.set_xlabel(WORDS["intensity"])
    axes.set_title(WORDS["flops"], loc="left", x=0, color=colour("dim"), fontsize=10.5)
    inside = [min(max(ridge, xlim[0]), xlim[1]) for ridge in ridges] if shown else []
    if shown:
        axes.axvspan(xlim[0], inside[0], color=colour("memory"), lw=0, zorder=0)
        axes.axvspan(inside[-1], xlim[1], color=colour("compute"), lw=0, zorder=0)
    for ridge in inside:
        axes.axvline(ridge, color=colour("roof"), lw=1, ls=(0, (1, 2)), zorder=1)
    strong = chosen if len(ridges) == 1 else None
    for roof in shown:
        x, y = _line(roof, xlim)
        style = {"color": colour("text"), "lw": 2.4} if roof is strong else {"color": colour("roof"), "lw": 1}
        if strong is None:
            style["lw"] = 1.8
        alpha = 1 if strong in (roof, None) else 0.6
        axes.plot(x, y, alpha=alpha, zorder=2.5 if roof is strong else 2, solid_joinstyle="round", **style)
    for one in marks:
        draw_series(axes, one.rung, one.x, one.y, one.variant)
    for lane, one in enumerate(counted):
        _draw_on_axis(axes, one, 0 - LANE * lane)
    if len(counted) > 1:  # numbers of the axis below the lowest series
        axes.tick_params(axis="x", pad=4 + LANE * (len(counted) - 1) * axes.bbox.height * 72 / figure.dpi)
    if spot:
        axes.plot(
            *(spot[0], chosen.attainable(spot[0])),
            marker="o",
            markersize=9,
            color=colour("predicted"),
            markeredgecolor=colour("background"),
            markeredgewidth=1.4,
            zorder=6,
        )

    def write(labels: Labels) -> None:
        for roof in shown:
            labels.avoid_line(*_line(roof, xlim), 2 if roof is strong else 1)
        for ridge in inside:
            labels.avoid_line([ridge, ridge], ylim)
        if spot:
            labels.avoid_points([spot[0]], [chosen.attainable(spot[0])], 20)
        for one in counted[:1]:  # what stands on the axis reaches into it
            labels.avoid_points(one.x, [ylim[0]] * len(one.x))
        for lane, one in enumerate(counted):
            first = one is next((other for other in counted if other.reach), None)
            _name_on_axis(labels, one, 0 - LANE * lane, xlim, ylim, explained=first)
        if shown:
            roof_labels.names(labels, roofs, strong, xlim)
            roof_labels.ridges(labels, ridges, xlim, ylim)
        if spot:
            y = chosen.attainable(spot[0])
            labels.place(spot[1], around(spot[0], y, 8), colour=colour("predicted"), fontweight="bold")
        if shown:
            roof_labels.regions(labels, xlim, ylim)

    write_labels(figure, axes, marks, write)
    figure.set_label(translated(alt))  # where `show` looks for it
    return figure


def _at(operating: float | tuple[float, str] | None) -> tuple[float, str] | None:
    if operating is None or isinstance(operating, tuple):
        return operating
    return float(operating), f"{number(float(operating))} FLOP/byte"


def _ridges(roofs: Sequence[Roof], chosen: Roof, alone: bool) -> list[float]:
    """The ridges that are marked, rising: that of the chosen roof, or those of all."""
    every = sorted({roof.ridge for roof in roofs})
    distinct = [r for i, r in enumerate(every) if not i or not math.isclose(r, every[i - 1], rel_tol=0.02)]
    return [chosen.ridge] if alone or len(distinct) < 2 else distinct


def _line(roof: Roof, xlim: tuple[float, float]) -> tuple[list[float], list[float]]:
    """The roof's three corners."""
    x = [xlim[0], min(max(roof.ridge, xlim[0]), xlim[1]), xlim[1]]
    return x, [roof.attainable(v) for v in x]


def _told_apart(points: Iterable[Mapping[str, Any]], roof: Roof) -> tuple[list[Marks], list[OnAxis]]:
    """Series that were timed, at their FLOP/s, and series without a time. A prediction is the roof's own."""
    timed, without = [], []
    for series in points:
        rung, label = rung_of(series), series.get("label", "")
        known = [p for p in series["points"] if p.get("intensity")]
        if rung == "predicted":
            known = [{**p, "flops_per_s": roof.attainable(p["intensity"])} for p in known]
        fast = [p for p in known if p.get("flops_per_s")]
        if fast:
            timed.append(
                Marks(
                    rung,
                    label,
                    [float(p["intensity"]) for p in fast],
                    [float(p["flops_per_s"]) for p in fast],
                )
            )
        else:
            without.append((rung, label, known))
    seen: dict[str, int] = {}
    counted = []
    for rung, label, known in without:
        reach = [
            (float(p["intensity"]), float(p["intensity_of_all"])) for p in known if "intensity_of_all" in p
        ]
        counted.append(
            OnAxis(rung, label, [float(p["intensity"]) for p in known], reach, seen.setdefault(rung, 0))
        )
        seen[rung] += 1
    return told_apart(timed), counted


def _draw_on_axis(axes: Axes, one: OnAxis, height: float) -> None:
    """Marks at this height, in parts of the axes' (0 is the axis), and lines to what they reach."""
    where = {"transform": axes.get_xaxis_transform(), "clip_on": False}
    for ends in one.reach:
        axes.plot(ends, [height] * 2, color=colour(one.rung), lw=2, zorder=3, **where)
        axes.plot(
            ends[1:],
            [height],
            color=colour(one.rung),
            marker="|",
            markersize=9,
            markeredgewidth=2,
            linestyle="none",
            zorder=4,
            **where,
        )
    draw_series(axes, one.rung, one.x, [height] * len(one.x), one.variant, **where)


def _name_on_axis(
    labels: Labels,
    one: OnAxis,
    height: float,
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    explained: bool,
) -> None:
    """The series' name: over the axis for the one that stands on it, beside the marks for those below.

    explained: with the words for its lines, which are said once in a figure.
    """
    if not one.label or not one.x:
        return
    words = one.label
    if explained:
        words = say("{label}, ├ with workspace", label=one.label)
    if not height:
        spots = [*sorted(one.x, reverse=True), xlim[0] * 1.05]
        over = [Place(x, ylim[0], 0, 8, ha, "bottom") for x in spots for ha in ("center", "right", "left")]
        labels.place(words, over, colour=colour(one.rung), fontsize=9.5)
        return
    first, last = min([*one.x, *(end for _, end in one.reach)]), max(one.x)
    beside = labels.axes.annotate(
        words,
        (last, height),
        (8, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="left",
        va="center",
        color=colour(one.rung),
        fontsize=9.5,
        annotation_clip=False,
    )
    beside.set_in_layout(False)  # as `Labels.place` does
    if not _inside(beside):  # no room to the right
        beside.xy = (first, height)
        beside.set_position((-8, 0))
        beside.set_ha("right")
        if not _inside(beside):  # nor to the left: rather over its own marks than cut
            beside.xycoords = ("figure fraction", "axes fraction")
            beside.xy = (0.98, height)
            beside.set_position((0, 0))


def _inside(text: Text) -> bool:
    """Whether a text lies within its figure, even in a font that is a little wider than here."""
    box, more = text.get_window_extent(), 0.03
    return box.x0 - more * box.width >= 0 and box.x1 + more * box.width <= text.figure.bbox.x1

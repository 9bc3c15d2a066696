"""The book's figures: the roofline and a formula's curve, in one style, for every screen.

A colour always means the same thing (`book.drawing.palette`). Figures are plain matplotlib `Figure`s made
without pyplot, so nothing global changes and nothing is left open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sympy import lambdify
from sympy.printing.pretty.pretty_symbology import pretty_symbol

from book.drawing.axes import draw_series, label_series, log_axis, new, plain, rung_of, si_tick
from book.drawing.label_placement import Labels, Place, around, spread
from book.drawing.number_text import number
from book.drawing.svg import colour, show, style
from book.formulas.formula import Formula, Parameter
from book.roofline import Roof
from book.say import say, translated

__all__ = ["colour", "formula", "new", "roofline", "show", "style"]

WORDS = {
    "intensity": say("arithmetic intensity (FLOP/byte)"),
    "flops": "FLOP/s",
    "memory": say("waits for memory"),
    "compute": say("computes"),
}

_LINE = 15  # pixels that a line of text needs

# -------------------------------------------------------------------------------- the roofline


def _at(operating: float | tuple[float, str] | None) -> tuple[float, str] | None:
    if operating is None or isinstance(operating, tuple):
        return operating
    return float(operating), f"{number(float(operating))} FLOP/byte"


def _placed(series: Mapping[str, Any], roof: Roof) -> tuple[list[float], list[float]]:
    """Intensities and FLOP/s of a series. Counts have no time: they sit on the roof they predict."""
    points = [p for p in series["points"] if p.get("intensity")]
    x = [float(p["intensity"]) for p in points]
    return x, [float(p.get("flops_per_s") or roof.attainable(p["intensity"])) for p in points]


def roofline(
    roofs: Sequence[Roof],
    points: Iterable[Mapping[str, Any]] = (),
    *,
    highlight: str | None = None,
    operating: float | tuple[float, str] | None = None,
    xlim: tuple[float, float] | None = None,
    alt: str = "",
) -> Figure:
    """Roofs, the evidence under them, and the operating point: attainable FLOP/s against FLOP/byte.

    points: series {"rung", "label", "points": [{"intensity": FLOP/byte, "flops_per_s": FLOP/s or
    None}]}; a point without FLOP/s was counted, not timed, and is put on the highlighted roof.
    highlight: the name of the roof that is drawn strong, whose two regions are tinted and on which
    the operating point sits (the first if left out). operating: an intensity, or (intensity,
    label). alt: the finding in words; `show` uses it. Raises ValueError for no roof, or one unknown.
    """
    if not roofs:
        raise ValueError("roofline: roofs is empty; give at least one book.roofline.Roof.")
    chosen = next((r for r in roofs if r.name == (highlight or roofs[0].name)), None)
    if chosen is None:
        raise ValueError(f"roofline: highlight {highlight!r} is none of {[r.name for r in roofs]}.")
    series = [(rung_of(s), s.get("label", ""), *_placed(s, chosen)) for s in points]
    spot = _at(operating)

    every_x = [v for _, _, x, _ in series for v in x] + ([spot[0]] if spot else [])
    if xlim is None:
        low, high = min([*every_x, 1]), max([*every_x, *(r.ridge for r in roofs)])
        xlim = (low / 2, max(high * 2.5, chosen.ridge * 8))
    every_y = [v for _, _, _, y in series for v in y] + [r.attainable(xlim[0]) for r in roofs]
    ylim = (min(every_y) / 1.5, max([*every_y, *(r.peak for r in roofs)]) * 4)

    figure, axes = new()
    log_axis(axes.xaxis, xlim, plain)
    log_axis(axes.yaxis, ylim, si_tick(""))
    axes.set_xlabel(WORDS["intensity"])
    axes.set_title(WORDS["flops"], loc="left", x=0, color=colour("dim"), fontsize=10.5)
    ridge = min(max(chosen.ridge, xlim[0]), xlim[1])
    axes.axvspan(xlim[0], ridge, color=colour("memory"), lw=0, zorder=0)
    axes.axvspan(ridge, xlim[1], color=colour("compute"), lw=0, zorder=0)
    axes.axvline(ridge, color=colour("roof"), lw=1, ls=(0, (1, 2)), zorder=1)
    for roof in roofs:
        corner = min(max(roof.ridge, xlim[0]), xlim[1])
        x = [xlim[0], corner, xlim[1]]
        strong = roof is chosen
        axes.plot(
            x,
            [roof.attainable(v) for v in x],
            color=colour("text" if strong else "roof"),
            lw=2.4 if strong else 1,
            alpha=1 if strong else 0.6,
            zorder=2.5 if strong else 2,
            solid_joinstyle="round",
        )
    for rung, _, x, y in series:
        draw_series(axes, rung, x, y)
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

    figure.draw_without_rendering()  # settles the layout, so that pixels mean something below
    crowded = _crowded(axes, roofs)
    if crowded:
        _label_roofs_outside(axes, roofs, chosen)
        figure.draw_without_rendering()
    labels = Labels(axes)
    for roof in roofs:
        corner = min(max(roof.ridge, xlim[0]), xlim[1])
        x = [xlim[0], corner, xlim[1]]
        labels.avoid_line(x, [roof.attainable(v) for v in x], 2 if roof is chosen else 1)
    labels.avoid_line([ridge, ridge], ylim)
    for _, _, x, y in series:
        labels.avoid_points(x, y)
    if spot:
        labels.avoid_points([spot[0]], [chosen.attainable(spot[0])], 20)
    if not crowded:
        _label_roofs(labels, roofs, chosen, xlim)
    _label_ridge(labels, ylim, ridge, chosen)
    if spot:
        y = chosen.attainable(spot[0])
        labels.place(spot[1], around(spot[0], y, 8), colour=colour("predicted"), fontweight="bold")
    _label_regions(labels, xlim, ylim, ridge)
    label_series(figure, axes, labels, series)
    figure.set_label(translated(alt))  # where `show` looks for it
    return figure


def _label_regions(
    labels: Labels, xlim: tuple[float, float], ylim: tuple[float, float], ridge: float
) -> None:
    """What the tints mean, in the corners, if there is room."""
    for word, x, sign, ha in (("memory", xlim[0], 1, "left"), ("compute", xlim[1], -1, "right")):
        rows = ((ylim[1], -4, "top"), (ylim[0], 5, "bottom"), (ylim[0], 20, "bottom"))
        corners = [Place(x, y, 6 * sign, dy, ha, va) for y, dy, va in rows]
        labels.place(WORDS[word], corners, colour=colour("dim"), fontsize=9.5, limit=0)


def _label_ridge(labels: Labels, ylim: tuple[float, float], ridge: float, roof: Roof) -> None:
    sides = [Place(ridge, ylim[0], 5, 5, "left", "bottom"), Place(ridge, ylim[0], -5, 5, "right", "bottom")]
    words = say("ridge {at}", at=number(roof.ridge))
    labels.place(words, sides, colour=colour("dim"), fontsize=9.5)


def _crowded(axes: Axes, roofs: Sequence[Roof]) -> bool:
    """Are two roofs so near in height that a name doesn't fit between them?"""
    heights = sorted(axes.transData.transform((1, roof.peak))[1] for roof in roofs)
    gaps = np.diff(heights)
    return bool(np.any((gaps > 1) & (gaps < _LINE)))


def _label_roofs_outside(axes: Axes, roofs: Sequence[Roof], chosen: Roof) -> None:
    """Names in the margin, apart from each other, each tied to its roof by a thin line."""
    rising = sorted(roofs, key=lambda r: (r.peak, r.bandwidth))
    heights = [axes.transData.transform((1, roof.peak))[1] for roof in rising]
    points = 72 / axes.figure.dpi
    for roof, height, place in zip(rising, heights, spread(heights, _LINE), strict=True):
        strong = roof is chosen
        axes.annotate(
            roof.name,
            (1, roof.peak),
            (14, (place - height) * points),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center_baseline",
            color=colour("text" if strong else "roof"),
            fontsize=9.5,
            fontweight="bold" if strong else "normal",
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


def _label_roofs(labels: Labels, roofs: Sequence[Roof], chosen: Roof, xlim: tuple[float, float]) -> None:
    """Names along the flat parts; roofs of one height share a label, the strong one first."""
    left = sorted(roofs, key=lambda r: (r is not chosen, -r.peak))
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
        strong = chosen in same
        labels.place(
            ", ".join(r.name for r in same),
            places,
            colour=colour("text" if strong else "roof"),
            fontsize=9.5,
            fontweight="bold" if strong else "normal",
        )


# ------------------------------------------------------------------------- a formula's own curve


def _symbol(p: Parameter) -> str:
    return pretty_symbol((p.latex or p.symbol).lstrip("\\"))


def formula(
    f: Formula,
    against: str,
    points: Iterable[Mapping[str, Any]] = (),
    *,
    alt: str = "",
    **values: float,
) -> Figure:
    """`f` against one of its parameters, blue, with its limit dashed and evidence on top.

    against: the parameter's symbol, over its slider's range. points: series as for `roofline`,
    whose points carry `against` and the formula's value by name, as in {"m": 32, "intensity": 31.7}.
    values: the other parameters where they differ from their defaults. Raises KeyError for an unknown name.
    """
    p = f.parameter(against)
    for name in values:
        f.parameter(name)
    log = p.scale == "log2"
    x = (np.geomspace if log else np.linspace)(p.low, p.high, 200)
    fixed = {**f.defaults(), **values}
    curve = np.broadcast_to(f(**{**fixed, against: x}), x.shape).astype(float)
    series = []
    for s in points:
        known = [q for q in s["points"] if q.get(against) and q.get(f.value)]
        series.append(
            (rung_of(s), s.get("label", ""), [q[against] for q in known], [q[f.value] for q in known])
        )

    figure, axes = new()
    unit = f" ({f.unit})" if f.unit else ""
    axes.set_xlabel(f"{p.label}, {_symbol(p)}" + (f" ({p.unit})" if p.unit else ""))
    axes.set_title(f"{f.readouts.value}{unit}", loc="left", x=0, color=colour("dim"), fontsize=10.5)
    top = max([*curve, *(v for _, _, _, y in series for v in y)])
    ylim = (min(curve) / 2.5, top * 2) if log else (0, top * 1.15)
    if log:
        powers = [2.0**e for e in range(math.ceil(math.log2(p.low)), math.floor(math.log2(p.high)) + 1)]
        log_axis(axes.xaxis, (p.low / 1.15, p.high * 1.15), plain, powers[:: math.ceil(len(powers) / 7)])
        log_axis(axes.yaxis, ylim, lambda v: number(int(v) if v >= 1 else v, 1))
    else:
        axes.set(xlim=(p.low, p.high), ylim=ylim)
    limit = None
    if f.limit is not None and f.limit.parameter == against:
        names = [q.sympy for q in f.parameters]
        arguments = [x if q.symbol == against else fixed[q.symbol] for q in f.parameters]
        limit = np.broadcast_to(lambdify(names, f.limit.expression, "numpy")(*arguments), x.shape)
        axes.plot(x, limit, color=colour("dim"), lw=1.4, ls=(0, (4, 3)), zorder=2)
    axes.plot(x, curve, color=colour("predicted"), zorder=3)
    for rung, _, px, py in series:
        draw_series(axes, rung, px, py)

    figure.draw_without_rendering()
    labels = Labels(axes)
    labels.avoid_line(x, curve)
    for _, _, px, py in series:
        labels.avoid_points(px, py)
    others = [q for q in f.parameters if q.symbol != against and q.sympy in f.expression.free_symbols]
    movable = [q for q in others if q.source not in ("model", "accelerator")]  # too many digits
    name = ", ".join(f"{_symbol(q)} = {plain(fixed[q.symbol])}" for q in movable)
    if limit is not None:
        labels.avoid_line(x, limit)
        inside = [i for i in range(0, len(x), 4) if ylim[0] < limit[i] < ylim[1]]
        where = [Place(x[i], limit[i], -6, 6, "right", "bottom") for i in reversed(inside)]
        labels.place(f.limit.label, where, colour=colour("dim"), fontsize=9.5)
    where = [Place(x[i], curve[i], 6, -6, "left", "top") for i in range(len(x) - 1, 0, -4)]
    labels.place(name, where, colour=colour("predicted"), fontsize=9.5)
    label_series(figure, axes, labels, series)
    figure.set_label(translated(alt))  # where `show` looks for it
    return figure

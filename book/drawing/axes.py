"""What every figure of the book is made of: styled axes, log ticks, and the marks of evidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from book.drawing.label_placement import Labels, around
from book.drawing.number_text import si
from book.drawing.svg import SIZE, PageFigure, colour, style

# How each rung of evidence is drawn, everywhere in the book: marker, size, filled or hollow.
_SIGNS: dict[str, tuple[str, float, bool]] = {
    "counted": ("o", 7, False),
    "mistaken": ("X", 7, False),  # counted, too, of a kernel with a mistake
    "timed": ("o", 6.5, True),
    "recorded": ("o", 6.5, True),
    "published": ("D", 5, True),
    "rehearsed": ("x", 6, False),  # no evidence, and never among it
}
# The second series of a rung, the third ...: told apart by their marks, as the colour is the rung's.
_VARIANTS: dict[str, tuple[tuple[str, float, bool], ...]] = {
    "o": (("s", 6, False), ("^", 7, False), ("v", 7, False)),
    "D": (("D", 5.5, False), ("d", 7, True), ("d", 7, False)),
}


@dataclass(frozen=True)
class Marks:
    """One series of a figure, placed: a rung, what it is called, and its points in data coordinates.

    variant: how many series of the same rung stand before it in the figure.
    """

    rung: str
    label: str
    x: Sequence[float]
    y: Sequence[float]
    variant: int = 0


def new(width: float = SIZE[0], height: float = SIZE[1]) -> tuple[Figure, Axes]:
    """An empty figure in the book's style, and its axes. Sizes in inches."""
    with matplotlib.rc_context(style()):
        figure = PageFigure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots()


def _decades(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**e for e in range(first, last + 1)]


def log_axis(axis: Any, limits: tuple[float, float], label: Any, ticks: Sequence[float] = ()) -> None:
    """Make an axis logarithmic, with `ticks` (the decades if left out) written by `label`."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": limits})
    axis.set_major_locator(FixedLocator(list(ticks) or _decades(*limits)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))


def plain(value: float) -> str:
    """A tick's number, as short as it can be said: 0.25, 1, 4,096."""
    return f"{value:,.0f}" if value >= 1 else f"{value:.3g}"


def si_tick(unit: str) -> Callable[[float], str]:
    """Writes a tick with its SI prefix: 100 G, 1 T."""
    return lambda value: si(int(value) if value == int(value) else value, unit, digits=1)


def rung_of(series: Mapping[str, Any]) -> str:
    """The rung of a series; ValueError if the book has no mark for it."""
    rung = series["rung"]
    if rung != "predicted" and rung not in _SIGNS:
        raise ValueError(
            f"series {series.get('label')!r}: rung {rung!r} is none of predicted, {', '.join(_SIGNS)}."
        )
    return rung


def told_apart(marks: Sequence[Marks]) -> list[Marks]:
    """The same series with their variants: how often each rung has come before."""
    seen: Counter[str] = Counter()
    made = []
    for one in marks:
        made.append(replace(one, variant=seen[one.rung]))
        seen[one.rung] += 1
    return made


def draw_series(
    axes: Axes, rung: str, x: Sequence[float], y: Sequence[float], variant: int = 0, **where: Any
) -> None:
    """Draw points as their rung is drawn everywhere: a line for the prediction, marks for evidence.

    variant: how many series of this rung are drawn before. where: more of `Axes.plot`'s, for marks.
    """
    if rung == "predicted":
        axes.plot(x, y, color=colour(rung), zorder=3)
        return
    marker, size, filled = _sign(rung, variant)
    axes.plot(
        x,
        y,
        linestyle="none",
        marker=marker,
        markersize=size,
        markeredgewidth=0.8 if filled else 1.6,
        markeredgecolor=colour("background") if filled else colour(rung),
        markerfacecolor=colour(rung) if filled else colour("background"),
        zorder=5 if filled else 4,
        **where,
    )


def _sign(rung: str, variant: int) -> tuple[str, float, bool]:
    first = _SIGNS[rung]
    others = tuple(
        (m, size, first[2] if first[0] == "o" else f) for m, size, f in _VARIANTS.get(first[0], ())
    )
    every = (first, *others)
    return every[variant % len(every)]


def write_labels(figure: Figure, axes: Axes, marks: Sequence[Marks], write: Callable[[Labels], None]) -> None:
    """Everything that is written into the axes: `write` the rest, then each series beside its points.

    A series without room beside its points is named in a key under the axes. A key makes the axes
    smaller, which moves what pixels mean: then everything is written anew.
    """
    keyed: list[Marks] = []
    while True:
        figure.draw_without_rendering()  # settles the layout, so that pixels mean something below
        labels = Labels(axes)
        for one in marks:
            labels.avoid_points(one.x, one.y)
        write(labels)
        lost = [one for one in marks if one not in keyed and not _beside(labels, one)]
        if not lost:
            return
        rungs = {one.rung for one in (*keyed, *lost)}  # a key names all that only a mark tells apart
        keyed = [one for one in marks if one.rung in rungs and one.label and len(one.x)]
        for drawn in (*axes.texts, *figure.legends):
            drawn.remove()
        _key(figure, axes, keyed)


def _beside(labels: Labels, one: Marks) -> bool:
    """Write the series' name beside one of its points; False if there is no room."""
    if not one.label or not len(one.x):
        return True
    order = sorted(range(len(one.x)), key=lambda i: abs(i - len(one.x) / 2))
    places = [p for i in order for p in around(one.x[i], one.y[i])]
    return labels.place(one.label, places, colour=colour(one.rung), fontsize=9.5, limit=0) is not None


def _key(figure: Figure, axes: Axes, entries: Sequence[Marks]) -> None:
    handles = []
    for one in entries:
        before = len(axes.lines)
        draw_series(axes, one.rung, [], [], one.variant)
        axes.lines[before].set_label(one.label)
        handles.append(axes.lines[before])
    with matplotlib.rc_context(style()):
        for columns in (1,) if len(entries) > 2 else (2, 1):  # side by side, if the figure is wide enough
            for drawn in figure.legends[:]:
                drawn.remove()
            figure.legend(handles=handles, loc="outside lower left", ncols=columns, handletextpad=0.3)
            figure.draw_without_rendering()
            box = figure.legends[0].get_window_extent()
            if box.x1 + 0.03 * box.width <= figure.bbox.x1:  # other fonts are a little wider
                return

"""What every figure of the book is made of: styled axes, log ticks, and the marks of evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from book.drawing.label_placement import Labels, around
from book.drawing.number_text import si
from book.drawing.svg import SIZE, PageFigure, colour, style

# How each rung of evidence is drawn, everywhere in the book.
_MARKS: dict[str, dict[str, Any]] = {
    "counted": {"marker": "o", "markersize": 7, "filled": False},
    "timed": {"marker": "o", "markersize": 6.5, "filled": True},
    "recorded": {"marker": "o", "markersize": 6.5, "filled": True},
    "published": {"marker": "D", "markersize": 5, "filled": True},
    "mistaken": {"marker": "X", "markersize": 7, "filled": False},  # counted, of a kernel with a mistake
    "rehearsed": {"marker": "x", "markersize": 6, "filled": False},  # no evidence, and never among it
}


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
    if rung != "predicted" and rung not in _MARKS:
        raise ValueError(
            f"series {series.get('label')!r}: rung {rung!r} is none of predicted, {', '.join(_MARKS)}."
        )
    return rung


def draw_series(axes: Axes, rung: str, x: Sequence[float], y: Sequence[float]) -> None:
    """Draw points as their rung is drawn everywhere: a line for the prediction, marks for evidence."""
    if rung == "predicted":
        axes.plot(x, y, color=colour(rung), zorder=3)
        return
    mark = _MARKS[rung]
    axes.plot(
        x,
        y,
        linestyle="none",
        marker=mark["marker"],
        markersize=mark["markersize"],
        markeredgewidth=1.6 if not mark["filled"] else 0.8,
        markeredgecolor=colour(rung) if not mark["filled"] else colour("background"),
        markerfacecolor=colour("background") if not mark["filled"] else colour(rung),
        zorder=5 if mark["filled"] else 4,
    )


def label_series(figure: Figure, axes: Axes, labels: Labels, series: Sequence[tuple]) -> None:
    """Each series' name beside one of its points; where there is no room, a key under the axes."""
    key = []
    for rung, name, x, y in series:
        if not name or not x:
            continue
        order = sorted(range(len(x)), key=lambda i: abs(i - len(x) / 2))
        places = [p for i in order for p in around(x[i], y[i])]
        if labels.place(name, places, colour=colour(rung), fontsize=9.5, limit=0) is None:
            key.append((rung, name))
    if key:
        _key(figure, axes, key)


def _key(figure: Figure, axes: Axes, entries: Sequence[tuple[str, str]]) -> None:
    handles = []
    for rung, name in entries:
        before = len(axes.lines)
        draw_series(axes, rung, [], [])
        axes.lines[before].set_label(name)
        handles.append(axes.lines[before])
    with matplotlib.rc_context(style()):
        figure.legend(
            handles=handles, loc="outside lower left", ncols=1 if len(entries) > 2 else 2, handletextpad=0.3
        )

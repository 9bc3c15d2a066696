"""Curves with evidence on them: a formula against one of its parameters, and any predictions side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sympy import lambdify
from sympy.printing.pretty.pretty_symbology import pretty_symbol

from book.drawing.axes import Marks, draw_series, log_axis, new, plain, rung_of, told_apart, write_labels
from book.drawing.label_placement import Labels, Place
from book.drawing.number_text import number
from book.drawing.svg import colour
from book.formulas.formula import Formula, Parameter
from book.say import translated

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))  # of the first curve, ...


def curves(
    lines: Iterable[Mapping[str, Any]],
    points: Iterable[Mapping[str, Any]] = (),
    *,
    across: str,
    value: str,
    xlabel: str,
    ylabel: str,
    level: tuple[float, str] | None = None,
    alt: str = "",
) -> Figure:
    """Predictions on two logarithmic axes, and what was counted or timed of each, on top of them.

    lines: {"label", across: [...], value: [...]}, positive numbers, drawn in the blue of predictions and
    told apart by their dashes. points: series {"rung", "label", "points": [{across: x, value: y}]},
    told apart by their marks; points without both are left out. across, value: the names of both in
    lines and points, "length" and "intensity". level: (height, words) of a horizontal line, a ridge say.
    Raises ValueError for no line.
    """
    drawn = list(lines)
    if not drawn:
        raise ValueError("curves: lines is empty; give at least one, with its label and its numbers.")
    marks = _marks(points, across, value)
    every_x = [v for one in drawn for v in one[across]] + [v for one in marks for v in one.x]
    every_y = [v for one in drawn for v in one[value]] + [v for one in marks for v in one.y]
    if level:
        every_y.append(level[0])
    xlim = (min(every_x) / 1.15, max(every_x) * 1.15)
    ylim = (min(every_y) / 2, max(every_y) * 2)

    figure, axes = new()
    axes.set_xlabel(translated(xlabel))
    axes.set_title(translated(ylabel), loc="left", x=0, color=colour("dim"), fontsize=10.5)
    log_axis(axes.xaxis, xlim, plain, powers_of_two(*xlim))
    log_axis(axes.yaxis, ylim, lambda v: number(int(v) if v >= 1 else v, 1))
    if level:
        axes.axhline(level[0], color=colour("roof"), lw=1, ls=(0, (1, 2)), zorder=1)
    for i, one in enumerate(drawn):
        style = DASHES[i % len(DASHES)]
        axes.plot(one[across], one[value], color=colour("predicted"), ls=style, zorder=3)
    for one in marks:
        draw_series(axes, one.rung, one.x, one.y, one.variant)

    def write(labels: Labels) -> None:
        for one in drawn:
            labels.avoid_line(one[across], one[value])
        if level:
            labels.avoid_line(xlim, [level[0]] * 2)
            ends = [(xlim[1], -6, "right"), (xlim[0], 6, "left")]
            where = [Place(x, level[0], dx, dy, ha, va) for x, dx, ha in ends for dy, va in _SIDES]
            labels.place(translated(level[1]), where, colour=colour("dim"), fontsize=9.5)
        for one in drawn:
            labels.place(translated(one["label"]), _along(one[across], one[value]), **_NAMED)

    write_labels(figure, axes, marks, write)
    figure.set_label(translated(alt))  # where `show` looks for it
    return figure


_SIDES = ((4, "bottom"), (-4, "top"))
_NAMED: dict[str, Any] = {"colour": colour("predicted"), "fontsize": 9.5}


def _along(x: Sequence[float], y: Sequence[float]) -> list[Place]:
    """Places for a curve's name, from its right end on."""
    step = max(1, len(x) // 20)
    return [
        Place(x[i], y[i], dx, dy, ha, va)
        for i in range(len(x) - 1, -1, -step)
        for dx, dy, ha, va in ((-6, 6, "right", "bottom"), (6, -6, "left", "top"), (-6, -8, "right", "top"))
    ]


def _marks(points: Iterable[Mapping[str, Any]], across: str, value: str) -> list[Marks]:
    made = []
    for one in points:
        known = [p for p in one["points"] if p.get(across) and p.get(value)]
        label = translated(one.get("label", ""))
        made.append(Marks(rung_of(one), label, [p[across] for p in known], [p[value] for p in known]))
    return told_apart(made)


def powers_of_two(low: float, high: float) -> list[float]:
    """Ticks from `low` to `high`, eight at most."""
    powers = [2.0**e for e in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)]
    return powers[:: math.ceil(len(powers) / 7)]


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

    against: the parameter's symbol, over its slider's range. points: series {"rung", "label", "points"}
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
    marks = _marks(points, against, f.value)

    figure, axes = new()
    unit = f" ({f.unit})" if f.unit else ""
    axes.set_xlabel(f"{p.label}, {_symbol(p)}" + (f" ({p.unit})" if p.unit else ""))
    axes.set_title(f"{f.readouts.value}{unit}", loc="left", x=0, color=colour("dim"), fontsize=10.5)
    top = max([*curve, *(v for one in marks for v in one.y)])
    ylim = (min(curve) / 2.5, top * 2) if log else (0, top * 1.15)
    if log:
        log_axis(axes.xaxis, (p.low / 1.15, p.high * 1.15), plain, powers_of_two(p.low, p.high))
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
    for one in marks:
        draw_series(axes, one.rung, one.x, one.y, one.variant)
    others = [q for q in f.parameters if q.symbol != against and q.sympy in f.expression.free_symbols]
    movable = [q for q in others if q.source not in ("model", "accelerator")]  # too many digits
    said = ", ".join(f"{_symbol(q)} = {plain(fixed[q.symbol])}" for q in movable)

    def write(labels: Labels) -> None:
        labels.avoid_line(x, curve)
        if limit is not None:
            labels.avoid_line(x, limit)
            inside = [i for i in range(0, len(x), 4) if ylim[0] < limit[i] < ylim[1]]
            where = [Place(x[i], limit[i], -6, 6, "right", "bottom") for i in reversed(inside)]
            labels.place(f.limit.label, where, colour=colour("dim"), fontsize=9.5)
        where = [Place(x[i], curve[i], 6, -6, "left", "top") for i in range(len(x) - 1, 0, -4)]
        labels.place(said, where, **_NAMED)

    write_labels(figure, axes, marks, write)
    figure.set_label(translated(alt))  # where `show` looks for it
    return figure

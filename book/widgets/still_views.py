"""The explorer's bars and line of time as still figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from book.drawing import number_text
from book.drawing.figures import colour, new
from book.formulas.formula import Formula
from book.widgets.words import WORDS

PARTS = ("weights", "cache")  # roles of the palette, as the front-end has them
BEFORE = 6  # steps before a newcomer arrives
ROOM = 1.3


def _axis(axes: Axes, end: float, unit: str) -> None:
    axes.set(xlim=(0, end), yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda v, _: number_text.si(float(v), unit))
    axes.grid(axis="x", color=colour("line"), lw=0.8)
    axes.set_axisbelow(True)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def bars(formula: Formula, at: Mapping[str, float]) -> Figure:
    """`formula.parts` as one bar and each of `formula.beside` below it, with their numbers."""
    figure, axes = new()

    def value(name: str) -> float:
        return float(formula.evaluate(name, **at))

    def told(name: str) -> str:
        output = formula.described[name]
        return f"{output.label} {number_text.si(value(name), output.unit)}"

    unit = formula.described[formula.parts[0]].unit
    total = sum(value(n) for n in formula.parts)
    _axis(axes, ROOM * max([total, *(value(n) for n in formula.beside)]), unit)
    left = 0.0
    for i, name in enumerate(formula.parts):
        axes.barh(0, value(name), left=left, height=0.5, color=colour(PARTS[i]))
        x, ha = (left + value(name), "right") if i else (0, "left")
        # the last label stands at its bar's end, a line higher: short parts lie close together
        axes.text(x, -0.33 - 0.24 * i, told(name), ha=ha, va="bottom", color=colour(PARTS[i]))
        left += value(name)
    axes.text(total, 0, f"  = {number_text.si(total, unit)}", va="center", color=colour("text"))
    for i, name in enumerate(formula.beside, start=1):
        axes.barh(1.3 * i, value(name), height=0.3, color=colour("roof"))
        axes.text(0, 1.3 * i - 0.22, told(name), va="bottom", color=colour("text"))
    axes.set_ylim(1.3 * len(formula.beside) + 0.4, -1)
    return figure


def timeline(formula: Formula, at: Mapping[str, float]) -> Figure:
    """Tokens of three users as ticks, and the newcomer's prompt that keeps all of them waiting."""
    figure, axes = new()
    t = formula.timeline
    step, mixed, chunks = (float(formula.evaluate(name, **at)) for name in (t.step, t.mixed, t.chunks))
    arrives = BEFORE * step
    served = arrives + chunks * mixed
    end = served + BEFORE * step
    _axis(axes, end, "s")
    batch = int(at[t.batch])
    users = list(range(1, batch + 1)) if batch <= 3 else [1, 2, batch]
    few = max(1, round(chunks / 400))  # as many ticks as can be told apart
    times = [i * step for i in range(BEFORE + 1)]
    times += [arrives + i * mixed for i in range(few, int(chunks) + 1, few)]
    after = [served + i * step for i in range(BEFORE + 1)]
    for row in range(len(users)):
        axes.vlines([*times, *after[1:]], row - 0.3, row + 0.3, color=colour("predicted"), lw=1.4)
    axes.axvspan(arrives, served, color=colour("wrong"), alpha=0.12, lw=0)
    last = len(users)
    axes.barh(last, served - arrives, left=arrives, height=0.5, color=colour("roof"))
    axes.vlines(after, last - 0.3, last + 0.3, color=colour("predicted"), lw=1.4)
    word = WORDS["waits_each" if chunks > 1 else "waits_once"].format(wait=number_text.si(mixed, "s"))
    axes.text((arrives + served) / 2, -0.6, word, ha="center", color=colour("wrong"))
    names = [WORDS["user"].format(number=u) for u in users] + [WORDS["newcomer"]]
    axes.set_yticks(range(last + 1), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(last + 0.6, -1)
    return figure


DRAW: Mapping[str, Callable[[Formula, Mapping[str, float]], Figure]] = {"bars": bars, "timeline": timeline}

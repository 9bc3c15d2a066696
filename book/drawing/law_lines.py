"""The step law as what it is, a line: times of steps over their floors, and the fit of each engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from book.drawing.axes import Marks, draw_series, told_apart, write_labels
from book.drawing.figures import colour, new
from book.drawing.label_placement import Labels
from book.say import say
from book.serving import step_law

ROOM = 1.12  # of the largest value, as far as an axis goes


def law_lines(groups: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Published times over floors, with a fitted line through each group.

    groups: name -> (floors, times), both in seconds, as `step_law.fit` wants them. The alt text
    gives slope and overhead of each. Raises ValueError for no group, or what `fit` refuses.
    """
    if not groups:
        raise ValueError("groups is empty: nothing to draw; give at least one group of floors and times.")
    figure, axes = new()
    axes.set_xlabel(say("floor of a step (ms)"))
    axes.set_title(say("time of a step (ms)"), loc="left", x=0, color=colour("dim"), fontsize=10.5)
    lines, points, found = [], [], []
    for name, (floors, times) in groups.items():
        fit = step_law.fit(floors, times)
        ends = (0, max(floors))
        lines.append((1e3 * ends[0], 1e3 * ends[1], 1e3 * fit.law(ends[0]), 1e3 * fit.law(ends[1])))
        points.append(Marks("published", name, [1e3 * v for v in floors], [1e3 * v for v in times]))
        found.append(
            say(
                "{name} slope {slope:.2f} and {overhead:.1f} ms at nought",
                name=name,
                slope=fit.slope,
                overhead=1e3 * fit.overhead,
            )
        )
    axes.set(
        xlim=(0, ROOM * max(max(one.x) for one in points)),
        ylim=(0, ROOM * max(max(one.y) for one in points)),
    )
    for x0, x1, y0, y1 in lines:
        draw_series(axes, "predicted", (x0, x1), (y0, y1))
    marks = told_apart(points)
    for one in marks:
        draw_series(axes, one.rung, one.x, one.y, one.variant)

    def write(labels: Labels) -> None:
        for x0, x1, y0, y1 in lines:
            labels.avoid_line((x0, x1), (y0, y1))

    write_labels(figure, axes, marks, write)
    figure.set_label(
        say(
            "Each group of published times lies on a line over its floors: {found}.",
            found="; ".join(found),
        )
    )
    return figure

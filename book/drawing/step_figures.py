"""Measured steps: how far two laws miss them, and what they are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from book.drawing.axes import log_axis, new, plain
from book.drawing.svg import colour, style
from book.say import say, translated

# The first law is what is looked past, the last one what is looked at.
_LOOKS = (
    {"marker": "o", "markersize": 4.5, "markerfacecolor": "none", "role": "roof"},
    {"marker": "o", "markersize": 4.5, "role": "predicted"},
)
# A part's colour and how full it is; what a kernel takes beyond its floor is the floor's colour, paler.
_PARTS = (("weights", 1.0), ("weights", 0.45), ("cache", 1.0), ("cache", 0.45), ("roof", 1.0), ("roof", 0.5))
_BAND = 0.1  # of the measured time


def missed(measured: Sequence[float], told: Mapping[str, Sequence[float]]) -> Figure:
    """Told over measured against measured, a mark a row, for two laws: 1 is right.

    measured: [rows] seconds. told: {law: [rows] seconds}, two of them. The alt text gives each law's mean
    error and its worst row. Raises ValueError for another number of laws, or of rows.
    """
    times = np.asarray(measured, float)
    if len(told) != len(_LOOKS) or any(len(t) != len(times) for t in told.values()):
        raise ValueError(
            f"told: {len(told)} laws of {[len(t) for t in told.values()]} rows; give {len(_LOOKS)}, "
            f"each with {len(times)} rows."
        )
    figure, axes = new()
    log_axis(axes.xaxis, (times.min() * 1e3 / 1.15, times.max() * 1e3 * 1.15), plain, (5, 10, 20, 50, 100))
    ratios = {name: np.asarray(t, float) / times for name, t in told.items()}
    high = max(float(r.max()) for r in ratios.values())
    axes.set_ylim(0, 1.08 * high)
    axes.axhspan(1 - _BAND, 1 + _BAND, color=colour("line"), lw=0, zorder=0)
    axes.axhline(1, color=colour("dim"), lw=1, zorder=1)
    for (name, ratio), look in zip(ratios.items(), _LOOKS, strict=True):
        kwargs = {k: v for k, v in look.items() if k != "role"}
        kwargs.setdefault("markerfacecolor", colour(look["role"]))
        axes.plot(
            times * 1e3,
            ratio,
            linestyle="none",
            markeredgecolor=colour(look["role"]),
            markeredgewidth=0.9,
            label=translated(name),
            **kwargs,
        )
    axes.set_xlabel(say("measured time per output token (ms)"))
    axes.set_title(say("told / measured"), loc="left", x=0, color=colour("dim"), fontsize=10.5)
    with matplotlib.rc_context(style()):
        figure.legend(loc="outside lower left", ncols=2, handletextpad=0.2)
    each = "; ".join(
        say(
            "{law} is off by {mean:.1f} % on average and by {worst:.0f} % at worst",
            law=translated(name),
            mean=100 * float(np.abs(ratio - 1).mean()),
            worst=100 * float(np.abs(ratio - 1).max()),
        )
        for name, ratio in ratios.items()
    )
    figure.set_label(say("Of {count} measured steps: {each}.", count=len(times), each=each))
    return figure


def stacked(steps: Mapping[str, Mapping[str, float]], measured: Mapping[str, float]) -> Figure:
    """Terms of several steps as bars, one below the other, each with its measured time as a mark.

    steps: {step: {part: seconds}}, the same parts in each, six at most and none negative. measured:
    {step: seconds}. What the parts leave is hatched; where they exceed the measured time, the mark stands
    inside the bar. The alt text gives sums and rests. Raises ValueError for other parts or steps.
    """
    parts = list(next(iter(steps.values()), {}))
    if not parts or len(parts) > len(_PARTS) or any(list(s) != parts for s in steps.values()):
        raise ValueError(f"steps: parts {parts}; give every step the same ones, 1 to {len(_PARTS)} of them.")
    if set(steps) != set(measured):
        raise ValueError(f"measured has {list(measured)}, steps {list(steps)}; give a time for each step.")
    figure, axes = new(height=1.6 + 0.5 * len(steps))
    for y, (step, terms) in enumerate(steps.items()):
        left = 0.0
        for (part, seconds), (role, full) in zip(terms.items(), _PARTS, strict=False):
            label = translated(part) if not y else None
            axes.barh(y, seconds * 1e3, 0.56, left, color=colour(role), alpha=full, label=label, lw=0)
            left += seconds * 1e3
        time = measured[step] * 1e3
        axes.barh(
            y,
            time - left,
            0.56,
            left,
            fill=False,
            hatch="////",
            edgecolor=colour("dim"),
            lw=0.8,
            label=say("left over") if not y else None,
        )
        axes.plot(time, y, "D", markersize=6, color=colour("published"), zorder=5)
        axes.annotate(
            f"{time:.1f} ms",
            (max(time, left), y),
            (8, 0),
            textcoords="offset points",
            va="center",
            color=colour("published"),
            fontsize=9.5,
        )
    axes.set_yticks(range(len(steps)), [translated(s) for s in steps])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.22 * max(max(measured.values()), *(sum(s.values()) for s in steps.values())) * 1e3)
    axes.set_xlabel(say("time per output token (ms)"))
    with matplotlib.rc_context(style()):
        figure.legend(loc="outside lower left", ncols=2, handletextpad=0.5)
    each = "; ".join(
        say(
            "{step}: {sum:.1f} of {time:.1f} ms, {rest:+.1f} left over",
            step=translated(step),
            sum=sum(terms.values()) * 1e3,
            time=measured[step] * 1e3,
            rest=(measured[step] - sum(terms.values())) * 1e3,
        )
        for step, terms in steps.items()
    )
    figure.set_label(say("The measured kernels explain: {each}.", each=each))
    return figure

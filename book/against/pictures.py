"""How often each share of the floor occurs: a ridge for each card, and bands over the size of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from book.against.digest import BINS, OCTAVES, quantile
from book.drawing.axes import new
from book.drawing.number_text import number, si
from book.drawing.svg import colour
from book.say import say

_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Ridge:
    """A name, and how many rows each bin of floor over measured has (`digest.BINS`)."""

    label: str
    counts: Sequence[int]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(sum(self.counts))

    @property
    def under(self) -> int:
        """How many of them lie under the line."""
        return int(self.counts[-1])

    @property
    def median(self) -> float:
        """The middle ratio; nan for no row."""
        return quantile(np.asarray(self.counts), 0.5)


def ridges(shown: Sequence[Ridge], line: str) -> Any:
    """A figure: one ridge a row, as high as that ratio is frequent there. line: what 1 is called.

    How many rows lie beyond 1 is written to the right. Raises ValueError for no row.
    """
    shown = [r for r in shown if r.rows]
    if not shown:
        raise ValueError("ridges: nothing to show; give at least one ridge with a row.")
    figure, axes = new(height=1.1 + 0.48 * len(shown))
    middles = (np.arange(BINS - 1) + 0.5) / (BINS - 1)
    for at, one in enumerate(reversed(shown)):
        counts = np.asarray(one.counts[:-1], dtype=float)
        height = 0.85 * counts / max(counts.max(), 1)
        axes.fill_between(middles, at, at + height, color=colour("published"), alpha=0.55, lw=0, zorder=3)
        axes.plot([one.median] * 2, [at, at + 0.85], color=colour("text"), lw=1, zorder=4)
        axes.text(-0.015, at + 0.3, one.label, fontsize=9.5, color=colour("text"), ha="right")
        under = say("{under} of {rows} beyond", under=f"{one.under:,}", rows=f"{one.rows:,}")
        axes.text(1.012, at + 0.3, under, fontsize=8.5, color=colour("dim"), zorder=5)
    axes.axvline(1, color=colour("roof"), lw=1.6, zorder=2)
    axes.text(1.012, len(shown) - 0.02, line, fontsize=9.5, color=colour("roof"), va="bottom")
    axes.set(xlim=(-0.28, 1.42), ylim=(0, len(shown) + 0.35), yticks=[], xticks=[0, 0.2, 0.4, 0.6, 0.8, 1])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(say("floor over measured time: 1 is as fast as the datasheet allows"))
    figure.set_label(_ridge_words(shown))
    return figure


def _ridge_words(shown: Sequence[Ridge]) -> str:
    parts = [
        say(
            "{label}: median {median:.2f}, {under} of {rows} rows beyond 1.",
            label=r.label,
            median=r.median,
            under=f"{r.under:,}",
            rows=f"{r.rows:,}",
        )
        for r in shown
    ]
    return " ".join([say("Densities of floor over measured time."), *parts])


def by_size(density: np.ndarray, line: str) -> Any:
    """A figure: the ratio against a problem's compulsory bytes; bands hold half and nine tenths of the rows.

    density: `digest.density(...)`. Raises ValueError for one without a row.
    """
    if not density.sum():
        raise ValueError("by_size: no row; choose groups that have a histogram.")
    there = [i for i, row in enumerate(density) if row.sum() >= 20]
    sizes = [2.0 ** (OCTAVES[0] + i + 0.5) for i in there]
    low, lower, middle, upper, high = ([quantile(density[i], share) for i in there] for share in _SHARES)
    figure, axes = new()
    axes.fill_between(sizes, low, high, color=colour("published"), alpha=0.18, lw=0)
    axes.fill_between(sizes, lower, upper, color=colour("published"), alpha=0.35, lw=0)
    axes.plot(sizes, middle, color=colour("published"), lw=2)
    axes.axhline(1, color=colour("roof"), lw=1.6)
    axes.text(sizes[0], 1.015, line, fontsize=9.5, color=colour("roof"), va="bottom")
    axes.set(xscale="log", xlim=(sizes[0], sizes[-1]), ylim=(0, 1.12))
    decades = [10**e for e in range(2, 12) if sizes[0] <= 10**e <= sizes[-1]]
    marks = decades if len(decades) < 6 else [v for v in decades if v in (10**3, 10**5, 10**7, 10**9)]
    axes.set_xticks(marks, [si(v, "B", 1) for v in marks])
    axes.minorticks_off()
    axes.set_xlabel(say("bytes that the problem must move"))
    axes.set_title(say("floor over measured time"), loc="left", x=0, color=colour("dim"), fontsize=10.5)
    figure.set_label(
        say(
            "Floor over measured time against a problem's bytes: the median is {first} at {small} "
            "and {last} at {large}.",
            first=number(middle[0], 2),
            small=si(sizes[0], "B", 2),
            last=number(middle[-1], 2),
            large=si(sizes[-1], "B", 2),
        )
    )
    return figure

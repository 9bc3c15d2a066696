"""What a simulator's run leaves behind: spans of time in lanes, and the numbers measured in it.

Data only. `book.formulas.views.Trace` says how such runs are shown beside the formula that predicts them.
They travel with a page as small JSON (`packed`), one for each position of a small grid of slider
positions (`runs`), so that a page without Python can show them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

TIME_DIGITS = 4  # of the whole trace: a ten-thousandth of it is less than a pixel
MEASURED_DIGITS = 6


@dataclass(frozen=True)
class Span:
    """One thing that happens in one lane from `start` to `end`, in the formula's unit of time.

    lane: its place in the trace's `lanes`. kind: what happens, as in "decode" or "idle"; the view
    gives each kind its colour and its word. label: what this one is called, as in "request 7".
    Raises ValueError for a span that ends before it starts.
    """

    lane: int
    start: float
    end: float
    kind: str
    label: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.end) and self.start <= self.end):
            raise ValueError(f"span {self.kind!r}: from {self.start} to {self.end}; end it after it starts.")


@dataclass(frozen=True)
class Trace:
    """A run of a simulator.

    lanes: the rows' names, top to bottom, as in ("slot 1", "slot 2"). spans: what happened in them.
    measured: numbers of this run by name, each comparable with an output of the formula.
    Raises ValueError for a span in a lane that is not there, for a lane that does two things at
    once, and for a measured value that is not a finite number.
    """

    lanes: tuple[str, ...]
    spans: tuple[Span, ...]
    measured: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measured", MappingProxyType(dict(self.measured)))
        for span in self.spans:
            if not 0 <= span.lane < len(self.lanes):
                raise ValueError(
                    f"span {span.kind!r}: lane = {span.lane}; there are {len(self.lanes)} lanes, from 0."
                )
        for before, after in itertools.pairwise(_in_order(self.spans)):
            if before.lane == after.lane and after.start < before.end:
                raise ValueError(
                    f"lane {self.lanes[before.lane]!r} does two things at once: {before} and {after}."
                )
        for name, value in self.measured.items():
            if not math.isfinite(value):
                raise ValueError(f"measured {name!r} = {value}: it must be a finite number.")

    @property
    def end(self) -> float:
        """When the last span ends."""
        return max((span.end for span in self.spans), default=0.0)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its spans, in alphabetical order."""
        return tuple(sorted({span.kind for span in self.spans}))


def packed(trace: Trace) -> dict[str, Any]:
    """The trace as small JSON, the same bytes for the same trace.

    {"lanes": [name], "kinds": [name], "spans": [[lane, start, end, kind] or [..., label]],
    "measured": {name: value}}, where `lane` and `kind` are places in the lists. Times keep four
    digits of the trace's end, measured values six of their own; spans stand in order of lane and start.
    """
    places = TIME_DIGITS - math.ceil(math.log10(trace.end)) if trace.end > 0 else 0
    kinds = trace.kinds
    return {
        "lanes": list(trace.lanes),
        "kinds": list(kinds),
        "spans": [
            [
                span.lane,
                _short(round(span.start, places)),
                _short(round(span.end, places)),
                kinds.index(span.kind),
                *([span.label] if span.label else []),
            ]
            for span in _in_order(trace.spans)
        ],
        "measured": {name: _short(float(f"{v:.{MEASURED_DIGITS}g}")) for name, v in trace.measured.items()},
    }


def runs(simulate: Callable[..., Trace], grid: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """One packed trace for each position of `grid`: {"grid": {symbol: values}, "runs": [...]}.

    The last symbol walks fastest. Raises ValueError for an axis without values.
    """
    for symbol, values in grid.items():
        if not values:
            raise ValueError(f"grid: {symbol} has no values; give the slider positions that travel.")
    positions = itertools.product(*grid.values())
    return {
        "grid": {symbol: list(values) for symbol, values in grid.items()},
        "runs": [packed(simulate(**dict(zip(grid, at, strict=True)))) for at in positions],
    }


def _in_order(spans: Sequence[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: (span.lane, span.start, span.end))


def _short(value: float) -> float | int:
    """Whole numbers without ".0"."""
    return int(value) if value == int(value) else value

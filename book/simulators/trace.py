"""What a simulator's run leaves behind: spans of time in lanes, and the numbers measured in it.

Data only. `book.formulas.views.Trace` says how such runs are shown beside the formula that predicts them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


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
    Raises ValueError for a span in a lane that is not there.
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

    @property
    def end(self) -> float:
        """When the last span ends."""
        return max((span.end for span in self.spans), default=0.0)

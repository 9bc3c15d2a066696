"""4.6 million times that others measured, binned against the floors: how often, by operation and card.

The file holds counts, no row: for each table of a card, operation, engine and format how many rows it
has, how many lie under the floor and for which reason, and how often each ratio occurs at each size.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("world.json")
BINS = 51  # of the ratio: 50 between 0 and 1, and one above
WORDS = ("accelerator", "operation", "engine", "engine_version", "group")
OCTAVES = (8, 39)  # powers of two of compulsory bytes that occur, the last excluded


@dataclass(frozen=True)
class Group:
    """One table of the source. reasons: {reason: rows under the floor}; histogram: see `density`."""

    accelerator: str
    operation: str
    engine: str
    engine_version: str
    group: str
    rows: int
    under_floor: int
    reasons: Mapping[str, int]
    histogram: tuple[tuple[int, int, tuple[int, ...]], ...]


@lru_cache(maxsize=1)
def groups(path: Path = PATH) -> tuple[Group, ...]:
    """All groups. Raises ValueError for a file whose counts contradict each other."""
    document = json.loads(path.read_text(encoding="utf-8"))
    found = tuple(
        Group(
            **{name: entry[name] for name in WORDS},
            rows=entry["rows"],
            under_floor=entry["under_floor"],
            reasons=entry["reasons"],
            histogram=tuple((octave, first, tuple(counts)) for octave, first, counts in entry["histogram"]),
        )
        for entry in document["groups"]
    )
    for one in found:
        name = f"{path.name}: {one.accelerator} {one.operation} {one.engine} {one.group}"
        binned = sum(sum(counts) for _, _, counts in one.histogram)
        if one.histogram and binned != one.rows:
            raise ValueError(f"{name}: {binned} rows in the histogram, {one.rows} in all; they must agree.")
        if any(not OCTAVES[0] <= octave < OCTAVES[1] for octave, _, _ in one.histogram):
            raise ValueError(f"{name}: an octave outside {OCTAVES}; widen the range.")
        if sum(one.reasons.values()) != one.under_floor:
            raise ValueError(f"{name}: {one.under_floor} rows under the floor, reasons for {one.reasons}.")
    return found


def source(path: Path = PATH) -> str:
    """Where the rows come from, with their licence."""
    return json.loads(path.read_text(encoding="utf-8"))["source"]


def density(chosen: Iterable[Group]) -> np.ndarray:
    """Rows by size and ratio: [octave of compulsory bytes, bin of floor over measured].

    Octave i holds bytes in [2^(OCTAVES[0] + i), twice that); bin b < 50 ratios in [b/50, (b + 1)/50),
    bin 49 with its right end, bin 50 all above 1: those under the floor.
    """
    found = np.zeros((OCTAVES[1] - OCTAVES[0], BINS), dtype=np.int64)
    for group in chosen:
        for octave, first, counts in group.histogram:
            found[octave - OCTAVES[0], first : first + len(counts)] += counts
    return found


def reasons(chosen: Iterable[Group]) -> Counter[str]:
    """How many rows lie under the floor for each reason."""
    found: Counter[str] = Counter()
    for group in chosen:
        found.update(group.reasons)
    return found


def quantile(row: np.ndarray, share: float) -> float:
    """The ratio that `share` of the rows don't exceed, as the middle of its bin; nan for no row."""
    if not row.sum():
        return float("nan")
    at = int(np.searchsorted(np.cumsum(row), share * row.sum()))
    return min((at + 0.5) / (BINS - 1), 1.0)

"""Between measured points: a table read at a value that it has no row for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def interpolate(x: float | np.ndarray, xs: Sequence[float], ys: Sequence[float]) -> float | np.ndarray:
    """y at `x`, on straight lines between the table's points in a picture with two logarithmic axes.

    x: a number or an array. xs: where it was measured, rising; ys: what was measured there, as many.
    All are positive. Between two points y goes as a power of x, and at a point it is that point's. Beyond
    the table's ends nothing was measured, and the answer is NaN.
    Raises ValueError for a table that is none: see `checked`.
    """
    known, measured = checked(xs, ys)
    at = np.asarray(x, float)
    i = np.clip(np.searchsorted(known, at, side="right") - 1, 0, len(known) - 2)
    power = np.log(measured[i + 1] / measured[i]) / np.log(known[i + 1] / known[i])
    with np.errstate(invalid="ignore", divide="ignore"):
        between = measured[i] * (at / known[i]) ** power
    found = np.where(at == known[-1], measured[-1], between)
    found = np.where((at >= known[0]) & (at <= known[-1]), found, np.nan)
    return found if found.ndim else float(found)


def checked(xs: Sequence[float], ys: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The table as two arrays. Raises ValueError, with the row, for what can't be drawn as a curve."""
    known, measured = np.asarray(xs, float), np.asarray(ys, float)
    if len(known) != len(measured) or len(known) < 2:
        raise ValueError(
            f"table of {len(known)} places and {len(measured)} values: give two points at least, "
            "and a value for each place."
        )
    for name, values in (("place", known), ("value", measured)):
        bad = values[~(np.isfinite(values) & (values > 0))]
        if bad.size:
            raise ValueError(f"table: the {name} {bad[0]:g} is not positive; leave that row out.")
    steps = np.flatnonzero(np.diff(known) <= 0)
    if steps.size:
        i = int(steps[0])
        raise ValueError(
            f"table: {known[i + 1]:g} follows {known[i]:g}; sort the rows by place, and keep one of each."
        )
    return known, measured

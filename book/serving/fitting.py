"""Fitting a time as a sum of terms, and saying how far to trust it: intervals, held-out errors, refusals.

A time is `given + sum(factor_i * column_i)`; the factors are found by least squares of the errors, as
shares of the measured times if `relative`. Whatever the fit then claims is judged here, too: 95 % intervals
by drawing whole cells of rows again, since the rows of one cell err together (Efron and Tibshirani, "An
Introduction to the Bootstrap", 1993); the error on rows that a fit hasn't seen; and what the rows can't tell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from book.say import say

DRAWS = 1000  # of the bootstrap
HALVES = 40  # random halves that are held out
WORST_CONDITION = 30.0  # of the columns at unit length: beyond it two factors trade places freely


class ImpossibleLaw(ValueError):
    """A fit gave numbers that no engine can have, or that its rows can't tell apart. fit: what it gave."""

    def __init__(self, message: str, fit: Fitted) -> None:
        super().__init__(message)
        self.fit = fit


@dataclass(frozen=True, eq=False)
class Fitted:
    """The factors of `columns` that fit `times` best. Rows in the order in which they were given.

    columns: {name: [rows]}. given: [rows] seconds that nothing is fitted to. cells: rows with equal entries
    err together. lowest: {name: the least that its factor can be}.
    """

    columns: Mapping[str, np.ndarray]
    times: np.ndarray
    given: np.ndarray
    cells: tuple[Hashable, ...]
    relative: bool = True
    lowest: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def _scaled(self) -> tuple[np.ndarray, np.ndarray]:
        weight = 1 / self.times if self.relative else np.ones(len(self.times))
        x = np.column_stack([*self.columns.values()]) if self.columns else np.zeros((len(self.times), 0))
        return x * weight[:, None], (self.times - self.given) * weight

    def _solve(self, rows: np.ndarray) -> np.ndarray:
        x, y = self._scaled
        return np.linalg.lstsq(x[rows], y[rows], rcond=None)[0]

    @cached_property
    def factors(self) -> Mapping[str, float]:
        """{name: factor}."""
        found = self._solve(np.arange(len(self.times)))
        return MappingProxyType(dict(zip(self.columns, map(float, found), strict=True)))

    @cached_property
    def predicted(self) -> np.ndarray:
        """[rows] seconds."""
        return self.given + sum(f * self.columns[name] for name, f in self.factors.items())

    @property
    def residuals(self) -> tuple[float, ...]:
        """Measured minus predicted, seconds."""
        return tuple(float(r) for r in self.times - self.predicted)

    @property
    def errors(self) -> np.ndarray:
        """[rows] |predicted / measured - 1| on the rows that were fitted."""
        return np.abs(self.predicted / self.times - 1)

    @cached_property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """{name: (low, high)}, 95 %, from `DRAWS` samples of whole cells, seeded."""
        cells = [
            np.array([i for i, c in enumerate(self.cells) if c == cell]) for cell in _distinct(self.cells)
        ]
        random = np.random.Generator(np.random.PCG64(0))
        drawn = [
            self._solve(np.concatenate([cells[j] for j in random.integers(0, len(cells), len(cells))]))
            for _ in range(DRAWS)
        ]
        low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
        return MappingProxyType(
            {name: (float(a), float(b)) for name, a, b in zip(self.columns, low, high, strict=True)}
        )

    @cached_property
    def condition(self) -> float:
        """1 if the columns have nothing in common, endless if one is made of others."""
        x, _ = self._scaled
        if not x.shape[1]:
            return 1.0
        lengths = np.sqrt((x**2).sum(0))
        return float(np.linalg.cond(x / lengths)) if lengths.all() else float("inf")

    @cached_property
    def tied(self) -> tuple[str, str] | None:
        """The two factors that trade places most easily; None with fewer than two."""
        if len(self.columns) < 2:
            return None
        x, _ = self._scaled
        like = np.abs(x.T @ x) / np.sqrt(np.outer((x**2).sum(0), (x**2).sum(0)))
        np.fill_diagonal(like, 0)
        a, b = np.unravel_index(np.nanargmax(like), like.shape)
        names = list(self.columns)
        first, second = sorted((int(a), int(b)))
        return names[first], names[second]

    def held_out(self) -> np.ndarray:
        """[rows] mean error of each row over `HALVES` random halves whose other half was fitted."""
        count, total, seen = len(self.times), np.zeros(len(self.times)), np.zeros(len(self.times))
        for seed in range(HALVES):
            order = np.random.Generator(np.random.PCG64(seed)).permutation(count)
            train, test = np.array_split(order, 2)
            total[test] += self._miss(train, test)
            seen[test] += 1
        return total / np.maximum(seen, 1)

    def left_out(self, groups: Sequence[Hashable]) -> Mapping[Hashable, float]:
        """{group: mean error on it, fitted to all the others}."""
        marks = np.array([_distinct(groups).index(g) for g in groups])
        return {
            group: float(self._miss(np.flatnonzero(marks != i), np.flatnonzero(marks == i)).mean())
            for i, group in enumerate(_distinct(groups))
        }

    def _miss(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        x = np.column_stack([*self.columns.values()]) if self.columns else np.zeros((len(self.times), 0))
        told = self.given[test] + x[test] @ self._solve(train)
        return np.abs(told / self.times[test] - 1)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why this can be no law, a sentence each; () if it may be one."""
        found = [
            say(
                "{name} = {value:.3g}: below {least:g}, which no engine can have; a term is missing, or a "
                "bound is none. Look at the terms before you fit again.",
                name=name,
                value=self.factors[name],
                least=least,
            )
            for name, least in self.lowest.items()
            if name in self.factors and self.factors[name] < least
        ]
        if self.condition > WORST_CONDITION and self.tied:
            a, b = self.tied
            found.append(
                say(
                    "{a} and {b} can't be told apart by these rows (condition {condition:.0f}, at most "
                    "{most:.0f}): add rows in which one of them changes and the other doesn't.",
                    a=a,
                    b=b,
                    condition=self.condition,
                    most=WORST_CONDITION,
                )
            )
        return tuple(found)

    def checked(self) -> Fitted:
        """Itself. Raises ImpossibleLaw with all of `refusals`."""
        if self.refusals:
            raise ImpossibleLaw(" ".join(self.refusals), self)
        return self


def fit_columns(
    columns: Mapping[str, Sequence[float]],
    times: Sequence[float],
    *,
    given: Sequence[float] | None = None,
    cells: Sequence[Hashable] | None = None,
    relative: bool = True,
    lowest: Mapping[str, float] = MappingProxyType({}),
) -> Fitted:
    """The best factors of these columns; see `Fitted`. cells: by default every row is one of its own.

    Raises ValueError for columns of other lengths than times, for fewer rows than columns, and for a time
    that is no positive number of seconds. Doesn't refuse anything else: `checked` does.
    """
    y = np.asarray(times, float)
    x = {name: np.asarray(column, float) * np.ones(len(y)) for name, column in columns.items()}
    if len(y) < max(len(x), 1):
        raise ValueError(f"times = {len(y)} rows for {len(x)} unknown numbers: measure more rows.")
    bad = y[~(np.isfinite(y) & (y > 0))]
    if bad.size:
        raise ValueError(f"times: {bad[0]} is not a positive number of seconds; leave that point out.")
    fixed = np.zeros(len(y)) if given is None else np.asarray(given, float)
    labels = tuple(range(len(y)) if cells is None else cells)
    if len(fixed) != len(y) or len(labels) != len(y):
        raise ValueError(
            f"times = {len(y)} rows, given = {len(fixed)}, cells = {len(labels)}: give one of each a row."
        )
    return Fitted(MappingProxyType(x), y, fixed, labels, relative, MappingProxyType(dict(lowest)))


def share_of_errors(errors: np.ndarray, groups: Sequence[Hashable], worst: Callable = max) -> float:
    """The mean error of the group that has the largest one."""
    return worst(
        float(np.mean([e for e, g in zip(errors, groups, strict=True) if g == group]))
        for group in _distinct(groups)
    )


def _distinct(values: Sequence[Hashable]) -> list[Hashable]:
    return list(dict.fromkeys(values))

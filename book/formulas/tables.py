"""Measured tables inside a formula: `interpolated` between their points, `looked_up` at them alone.

    GEMM = {4: 1.1e-3, 16: 1.2e-3, 64: 2.0e-3}              # rows: seconds
    time = p.BATCH.sympy * slope + interpolated(p.BATCH.sympy, GEMM, name="GEMM")

Both are SymPy functions: they evaluate in Python, and their JavaScript is generated, with the table in
it, as a call of the front-end's `prelude.js`. What no row of a table says is NaN, on the page a dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy.core.symbol import Str

from book.catalog.interpolation import checked


class Interpolated(sympy.Function):
    """y at x by `book.catalog.interpolation.interpolate`. Arguments: x, the places, the values, a name."""

    nargs = (4,)

    @classmethod
    def eval(cls, x: sympy.Expr, xs: sympy.Tuple, ys: sympy.Tuple, name: Str) -> sympy.Expr | None:
        """The value in exact arithmetic where x is a number; otherwise it stays as it is."""
        if not x.is_Number:
            return None
        if not xs[0] <= x <= xs[-1]:
            return sympy.nan
        i = max(i for i in range(len(xs)) if xs[i] <= x)
        if not xs[i] - x:  # SymPy's == minds how a number is written
            return ys[i]
        power = sympy.log(ys[i + 1] / ys[i]) / sympy.log(xs[i + 1] / xs[i])
        return ys[i] * (x / xs[i]) ** power

    def _latex(self, printer: Any) -> str:
        return rf"\mathrm{{{self.args[3]}}}\left({printer._print(self.args[0])}\right)"

    def _mathml_presentation(self, printer: Any) -> Any:
        return printer._print(sympy.Function(str(self.args[3]))(self.args[0]))


class LookedUp(sympy.Function):
    """The value of the row with these keys, or NaN. Arguments: the keys, rows of keys and value, a name."""

    nargs = (3,)

    @classmethod
    def eval(cls, keys: sympy.Tuple, rows: sympy.Tuple, name: Str) -> sympy.Expr | None:
        """The value where all keys are numbers; otherwise it stays as it is."""
        if not all(key.is_Number for key in keys):
            return None
        return next(
            (row[-1] for row in rows if not any(a - b for a, b in zip(keys, row, strict=False))), sympy.nan
        )

    def _latex(self, printer: Any) -> str:
        return rf"\mathrm{{{self.args[2]}}}\left({', '.join(map(printer._print, self.args[0]))}\right)"

    def _mathml_presentation(self, printer: Any) -> Any:
        return printer._print(sympy.Function(str(self.args[2]))(*self.args[0]))


Table = Mapping[Any, float] | Iterable[Sequence[float]]


def interpolated(x: sympy.Expr, table: Table, name: str = "table") -> sympy.Expr:
    """The table's value at `x`: a straight line from point to point on two logarithmic axes.

    table: {place: value} or rows (place, value), in any order, all positive; name: how a reader sees it,
    as in "GEMM", which makes GEMM(B). NaN beyond the table's ends: nothing was measured there.
    Raises ValueError for fewer than two points, a place twice, or a number that is not positive.
    """
    rows = sorted(
        (table.items() if isinstance(table, Mapping) else map(tuple, table)), key=lambda row: row[0]
    )
    xs, ys = [row[0] for row in rows], [row[1] for row in rows]
    checked(xs, ys)
    return Interpolated(sympy.sympify(x), _numbers(xs), _numbers(ys), Str(name))


def looked_up(keys: Sequence[sympy.Expr], table: Table, name: str = "measured") -> sympy.Expr:
    """What a table has in the one row whose keys are these, as the seconds measured with B users on n cards.

    table: {(key, key ...): value} or rows (key, key ..., value). NaN where there is no such row.
    Raises ValueError for rows of another number of keys, or the same keys twice.
    """
    pairs = (
        table.items() if isinstance(table, Mapping) else ((row[:-1], row[-1]) for row in map(tuple, table))
    )
    rows = [(*(key if isinstance(key, tuple) else (key,)), value) for key, value in pairs]
    seen: set[tuple[float, ...]] = set()
    for row in rows:
        if len(row) != len(keys) + 1:
            raise ValueError(
                f"table {name}: the row {row} has {len(row) - 1} keys; give {len(keys)} and a value."
            )
        if row[:-1] in seen:
            raise ValueError(f"table {name}: two rows for the keys {row[:-1]}; keep one of them.")
        seen.add(row[:-1])
    return LookedUp(sympy.Tuple(*map(sympy.sympify, keys)), sympy.Tuple(*map(_numbers, rows)), Str(name))


def _numbers(values: Iterable[float]) -> sympy.Tuple:
    """As SymPy keeps them: whole ones as integers, the rest with all digits."""
    return sympy.Tuple(*(int(v) if v == int(v) else float(v) for v in values))

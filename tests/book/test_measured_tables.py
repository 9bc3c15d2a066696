"""Measured tables: between their points, at them, and beyond them; what is no table is refused."""

import numpy as np
import pytest
import sympy

from book.catalog.interpolation import interpolate
from book.formulas.code_generation import numeric
from book.formulas.formula import Formula, Parameter, symbol
from book.formulas.tables import interpolated, looked_up

PLACES, VALUES = (1, 4, 64), (2.0, 8.0, 2.0)
TABLE = dict(zip(PLACES, VALUES, strict=True))
x, n = symbol("x"), symbol("n")


def test_a_point_of_the_table_is_itself():
    assert list(interpolate(np.array(PLACES), PLACES, VALUES)) == list(VALUES)


def test_a_power_stays_a_power_between_points():
    at = np.array([1.5, 2, 3.7])
    np.testing.assert_allclose(interpolate(at, PLACES, VALUES), 2 * at)  # from (1, 2) to (4, 8): 2 x
    assert interpolate(16, PLACES, VALUES) == pytest.approx(
        4
    )  # the middle of (4, 8) and (64, 2) in logarithms


@pytest.mark.parametrize("beyond", [0.5, 64.001, 1e9])
def test_beyond_the_ends_nothing_was_measured(beyond):
    assert np.isnan(interpolate(beyond, PLACES, VALUES))
    assert np.isnan(numeric([x], interpolated(x, TABLE))(beyond))
    assert interpolated(sympy.Float(beyond), TABLE) is sympy.nan


def test_a_formula_takes_a_table_in_any_order_and_arrays():
    run = numeric([x], interpolated(x, [(64, 2.0), (1, 2.0), (4, 8.0)]))
    np.testing.assert_allclose(run(np.array([2.0, 16.0])), [4, 4])


def test_a_row_is_found_by_all_its_keys_and_nothing_between_them():
    run = numeric([x, n], looked_up((x, n), {(4, 8): 9.11e-3, (4, 2): 0.01741}))
    assert (run(4, 8), run(4, 2)) == (9.11e-3, 0.01741)
    assert np.isnan(run(4, 4)) and np.isnan(run(5, 8))


def test_a_reader_sees_the_tables_name_and_what_it_is_read_at():
    f = Formula(
        "f",
        "f",
        "y",
        "s",
        (Parameter("x", "x", 2, 1, 64, latex="B"),),
        {"y": x + interpolated(x, TABLE, "GEMM")},
    )
    assert r"\mathrm{GEMM}\left(B\right)" in f.latex()
    assert f(x=2) == pytest.approx(2 + 4)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({1: 2.0}, "give two points at least"),
        ([(1, 2.0), (1, 3.0)], "1 follows 1; sort the rows by place, and keep one of each"),
        ({0: 1.0, 2: 1.0}, "the place 0 is not positive; leave that row out"),
        ({1: 1.0, 2: -1.0}, "the value -1 is not positive"),
    ],
)
def test_what_is_no_curve_is_refused(table, sentence):
    with pytest.raises(ValueError, match=sentence):
        interpolated(x, table)


def test_two_rows_of_the_same_keys_are_refused_and_so_is_a_row_that_lacks_one():
    with pytest.raises(ValueError, match=r"two rows for the keys \(4, 8\); keep one"):
        looked_up((x, n), [(4, 8, 1.0), (4, 8, 2.0)])
    with pytest.raises(ValueError, match=r"the row \(4, 1.0\) has 1 keys; give 2 and a value"):
        looked_up((x, n), [(4, 1.0)])

"""Formulas: one statement, used as number, LaTeX and JavaScript."""

import pytest
import sympy

from book import cost
from book.formulas.formula import Formula, Parameter, javascript, roof_javascript, symbol
from tests import formulas


def test_a_formula_of_a_cost_agrees_with_the_cost():
    for m, k, n, s in [(1, 4096, 4096, 2), (37, 523, 463, 1), (4096, 8192, 1328, 4)]:
        c = cost.linear(m, k, n, s)
        at = {"m": m, "k": k, "n": n, "itemsize": s}
        assert formulas.linear(**at) == pytest.approx(c.intensity)
        assert formulas.linear.evaluate("flops", **at) == c.flops
        assert formulas.linear.evaluate("bytes", **at) == c.bytes


@pytest.mark.parametrize("formula", formulas.ALL, ids=lambda f: f.name)
def test_every_formula_prints_and_translates(formula):
    assert formula.latex()
    for code in formula.javascript().values():
        assert "\n" not in code
    assert formula(**formula.defaults()) > 0


def test_the_limit_is_what_the_formula_tends_to():
    f = formulas.linear
    s = f.symbols
    tends_to = sympy.limit(sympy.limit(f.expression, s["k"], sympy.oo), s["n"], sympy.oo)
    assert sympy.simplify(tends_to - f.limit.expression) == 0


def test_roofline_javascript_uses_the_browsers_own_min_and_max():
    code = roof_javascript()
    assert "Math.min" in code["attainable"] and "Math.max" in code["time"]
    assert set(code) == {"ridge", "attainable", "time"}


def test_names_that_are_not_there_are_answered_with_those_that_are():
    with pytest.raises(KeyError, match=r"no parameter 'M'.*'m', 'k', 'n'"):
        formulas.linear(M=3)
    with pytest.raises(KeyError, match=r"no output 'speed'.*intensity"):
        formulas.linear.evaluate("speed")


def test_a_formula_with_a_stray_symbol_is_refused():
    with pytest.raises(ValueError, match="is no parameter"):
        Formula("bad", "", "y", "", (Parameter("a", "a", 1),), {"y": symbol("a") + symbol("b")})


def test_a_default_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="default 9 lies outside 1 to 8"):
        Parameter("a", "a", 9, 1, 8)


def test_what_sympy_cannot_print_as_javascript_is_refused():
    with pytest.raises(ValueError, match="no one-line JavaScript"):
        javascript(sympy.harmonic(symbol("i")))

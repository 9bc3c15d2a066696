"""Formulas: one statement, used as number, LaTeX and JavaScript."""

import itertools

import pytest
import sympy

from book import cost, roofline
from book.formulas.band import Band
from book.formulas.formula import Formula, Parameter, roof_javascript, symbol
from book.formulas.views import Curve
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
    assert set(code) == {"ridge", "attainable", "time", "time_linked"}


def test_a_formula_of_several_ranks_has_what_one_of_them_sends():
    sizes = [Parameter(name, name, 8, 1, 64) for name in ("m", "k", "n", "ranks")]
    f = Formula.of_cost("row_parallel", "", cost.linear_row_parallel, sizes)
    assert f.evaluate("sent", m=3, k=8, n=12, ranks=4) == cost.linear_row_parallel(3, 8, 12, 4).sent_bytes
    assert "sent" not in formulas.linear.outputs


def test_the_third_roof_in_javascript_is_that_of_python():
    code = roof_javascript()["time_linked"]
    names = ("flops", "bytes", "sent", "peak", "bandwidth", "link")
    runnable = compile(code.replace("Math.max", "max"), "<javascript>", "eval")  # this much is also Python
    for values in itertools.product([2e9, 7e14], [3e6, 9e9], [0, 5e8], [65e12], [3.35e12], [32e9, 450e9]):
        given = dict(zip(names, values, strict=True))
        assert eval(runnable, {"max": max}, given) == pytest.approx(roofline.time(**given), rel=1e-15)


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


# --------------------------------------------------------------------------------------- bands

K, MOST, ROWS = symbol("k"), symbol("most"), symbol("rows")
TOUCHED = Band(low=K, expected=MOST * (1 - (1 - K / MOST) ** ROWS), high=sympy.Min(K * ROWS, MOST))


def banded(**outputs):
    parameters = (
        Parameter("rows", "rows", 32, 1, 4096),
        Parameter("k", "k", 8, 1, 8),
        Parameter("most", "most", 128, 8, 256),
    )
    return Formula("banded", "", "touched", "experts", parameters, {"touched": TOUCHED, **outputs})


def test_a_band_is_three_outputs_and_a_curve_between_its_ends():
    f = banded()
    assert list(f.outputs) == ["touched", "touched_low", "touched_high"]
    assert f.expression == f.stated == TOUCHED.expected
    [curve] = [v for v in f.pictures if isinstance(v, Curve)]
    assert (curve.low, curve.high) == ("touched_low", "touched_high")


@pytest.mark.parametrize("rows", [1, 2, 37, 4096])
@pytest.mark.parametrize(("k", "most"), [(1, 8), (2, 8), (8, 128), (8, 8)])
def test_what_is_expected_lies_between_the_ends(rows, k, most):
    f = banded()
    low, expected, high = TOUCHED.at(rows=rows, k=k, most=most)
    assert low <= expected * (1 + 1e-12) and expected <= high * (1 + 1e-12)
    assert f(rows=rows, k=k, most=most) == pytest.approx(expected, rel=1e-12)


def test_a_mean_outside_its_bounds_is_refused():
    wrong = Band(low=K, expected=K * ROWS, high=MOST)
    with pytest.raises(ValueError, match=r"256.0 is expected, outside 8.0 to 128.0; mend one of the three"):
        wrong.at(k=8, rows=32, most=128)


def test_a_bands_ends_need_names_of_their_own():
    with pytest.raises(ValueError, match=r"output 'touched_low' is there twice: the band 'touched' makes it"):
        banded(touched_low=K)


def test_a_reader_sees_a_harmonic_number_as_a_sum():
    n = Parameter("i", "i", 8, 1, 64)  # the sum's own letter is another
    f = Formula("h", "", "y", "", (n,), {"y": 1 / sympy.harmonic(n.sympy)})
    assert f.latex() == r"\frac{1}{\sum_{j=1}^{i} \frac{1}{j}}"
    assert f.javascript() == {"y": "1/prelude.harmonic(i)"}


def test_a_card_s_link_is_the_third_roof_of_a_formula():
    c = cost.linear_row_parallel(512, 8192, 8192, symbol("ranks"))
    card = [Parameter(name, name, 1.0, source="accelerator") for name in ("peak", "bandwidth", "link")]
    time = roofline.time(c.flops, c.bytes, symbol("peak"), symbol("bandwidth"), c.sent_bytes, symbol("link"))
    f = Formula("step", "", "time", "s", (Parameter("ranks", "ranks", 8, 1, 8), *card), {"time": time})
    h100 = roofline.Roof("H100", 989.4e12, 3.35e12, 450e9)
    at = {"peak": h100.peak, "bandwidth": h100.bandwidth, "link": h100.link}
    for ranks in (1, 2, 8):
        assert f(ranks=ranks, **at) == pytest.approx(
            h100.time(cost.linear_row_parallel(512, 8192, 8192, ranks))
        )
    code = f.javascript()["time"]
    assert code.startswith("Math.max(") and all(name in code for name in at)

"""Steps of a derivation are printed in the formula's own notation."""

from book.formulas.formula import symbol
from book.notebook.derivation import boxed, math
from tests import formulas


def test_symbols_are_printed_as_the_formula_prints_them():
    s = formulas.linear.symbols
    assert math("f", 2 * s["m"] * s["itemsize"], formulas.linear).data == "f = 2 s M"


def test_a_symbol_from_elsewhere_gets_the_latex_it_is_given():
    step = math("M^*", formulas.linear.symbols["m"] * symbol("ridge"), formulas.linear, ridge="I^*")
    assert step.data == "M^* = M I^*"


def test_the_formula_is_boxed():
    assert boxed("I", formulas.linear).data.startswith(r"\boxed{\;I = \frac{2 K M N}")

"""Steps of a derivation are printed in the formula's own notation."""

import html
import re

import pytest
import sympy

from book.formulas.formula import symbol
from book.formulas.symbols import plain_letter
from book.notebook.derivation import boxed, math
from book.widgets import explorer_payload
from tests import formulas


def test_symbols_are_printed_as_the_formula_prints_them():
    s = formulas.linear.symbols
    assert math("f", 2 * s["m"] * s["itemsize"], formulas.linear).data == "f = 2 M s"


def test_two_symbols_with_one_letter_stay_two():
    m, rows = formulas.linear.symbols["m"], symbol("rows")
    assert math("x", m / rows, formulas.linear, rows="M").data == r"x = \frac{M}{M}"


def test_a_symbol_from_elsewhere_gets_the_latex_it_is_given():
    step = math("M^*", formulas.linear.symbols["m"] * symbol("ridge"), formulas.linear, ridge="I^*")
    assert step.data == "M^* = I^* M"


def test_the_formula_is_boxed():
    assert boxed("I", formulas.linear).data.startswith(r"\boxed{\;I = \frac{2 K M N}")


# --------------------------------------------------- one order of factors: in the box, in the explorer

EVERY = {f.name: f for f in formulas.ALL}
IN_LATEX = re.compile(
    r"\\(?:frac|min|max|left|right|lfloor|rfloor)\b|\\(?P<greek>[a-z]+)|(?P<letter>[A-Za-z])"
)
IN_MATHML = re.compile(r"<mi>([^<]+)</mi>")


def letters_of_latex(text):
    """The letters in the order in which they are read, without indices."""
    text = re.sub(r"_(\{[^}]*\}|\w)", "", text)
    found = (m["greek"] or m["letter"] for m in IN_LATEX.finditer(text) if m.lastgroup)
    return [plain_letter(name, f"\\{name}" if len(name) > 1 else "") for name in found]


def letters_of_mathml(text):
    """The same of MathML."""
    text = re.sub(r"<msub>(<mi>[^<]+</mi>)<mi>[^<]+</mi></msub>", r"\1", text)
    return [html.unescape(letter) for letter in IN_MATHML.findall(text)]


@pytest.mark.parametrize("formula", EVERY.values(), ids=EVERY)
def test_the_box_and_the_explorer_have_factors_in_one_order(formula):
    """Of the same expression: the explorer takes common factors out, for want of room."""
    box = formula.latex(sympy.factor_terms(formula.stated))
    assert letters_of_latex(box) == letters_of_mathml(
        explorer_payload.build("x", formula, [])["formula"]["mathml"]
    )


def test_letters_are_read_in_order():
    assert letters_of_latex(r"\min\left(F, \frac{I \beta}{n}\right)") == ["F", "I", "β", "n"]
    assert letters_of_mathml("<mi>n</mi><mo>&InvisibleTimes;</mo><mi>&#946;</mi>") == ["n", "β"]


@pytest.mark.parametrize("formula", EVERY.values(), ids=EVERY)
def test_a_minus_in_an_explorer_is_no_hyphen(formula):
    assert "<mo>-</mo>" not in explorer_payload.build("x", formula, [])["formula"]["mathml"]


@pytest.mark.parametrize(
    ("formula", "box"),
    [
        (formulas.attainable, r"\min\left(F, I \beta\right)"),
        (formulas.kv_bytes_per_token, "2 D G d s"),
        (formulas.utilisation, r"\min\left(1, \frac{2 M \beta}{F w}\right)"),
    ],
)
def test_factors_are_boxed_in_the_order_of_their_letters(formula, box):
    assert formula.latex(formula.stated) == box

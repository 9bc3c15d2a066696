"""Print the steps of a derivation: SymPy expressions in a formula's own notation."""

from __future__ import annotations

import sympy
from IPython.display import Math

from book.formulas.formula import Formula


def math(left: str, expression: sympy.Expr, formula: Formula, **others: str) -> Math:
    """`left = expression` as display mathematics, its symbols printed as `formula` prints them.

    others: LaTeX of symbols that the formula does not have, by name: ridge="I^*".
    """
    return Math(rf"{left} = {formula.latex(expression, **others)}")


def boxed(left: str, formula: Formula) -> Math:
    """The chapter's formula, in a box: as stated, with the letters that stand for expressions."""
    return Math(rf"\boxed{{\;{left} = {formula.latex(formula.stated)}\;}}")

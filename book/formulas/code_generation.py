"""A SymPy expression as code: JavaScript for the page, a Python function for numbers and arrays.

SymPy prints both; nobody types a formula a second time. What JavaScript has no function for is called
by name from the front-end's `prelude.js`, where it is written once; Python takes the same from mpmath.
`tests/book/test_code_generation.py` runs the generated JavaScript and compares it with mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy
from sympy.codegen.cfunctions import log2, log10
from sympy.core.relational import Relational
from sympy.core.symbol import Str
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.numpy import NumPyPrinter
from sympy.printing.pycode import PythonCodePrinter

from book.catalog.interpolation import interpolate
from book.formulas.tables import Interpolated, LookedUp

FUNCTIONS = (
    Interpolated,
    LookedUp,
    sympy.Abs,
    sympy.ceiling,
    sympy.exp,
    sympy.floor,
    sympy.harmonic,
    sympy.log,
    sympy.Max,
    sympy.Min,
    sympy.Mod,
    sympy.Piecewise,
    sympy.sign,
    sympy.Sum,
)
ARITHMETIC = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.Number, sympy.NumberSymbol)
CONDITIONS = (Relational, sympy.And, sympy.Or, sympy.Not, BooleanAtom, ExprCondPair, sympy.Tuple, Str)
ONE_BY_ONE = (
    Interpolated,
    LookedUp,
    sympy.harmonic,
    sympy.Piecewise,
    sympy.Sum,
)  # NumPy has no arrays of these

PRELUDE = "prelude"  # what generated JavaScript calls the functions of prelude.js by
# Words that can't name an argument of a JavaScript function, or that generated code uses itself.
RESERVED = frozenset(
    f"{PRELUDE} Math Number Infinity NaN undefined arguments eval await break case catch class const "
    "continue debugger default delete do else enum export extends false finally for function if "
    "implements import in instanceof interface let new null package private protected public return "
    "static super switch this throw true try typeof var void while with yield".split()
)


def javascript(expression: sympy.Expr) -> str:
    """One SymPy expression as a JavaScript expression on one line.

    It may call Math and the front-end's prelude; `compile` of physics.js hands both to it. A sum
    takes the whole terms from its lower to its upper limit, one by one: some thousands, not millions.
    Raises ValueError with what can't be said: a function outside `FUNCTIONS`, a Piecewise without a
    last piece for everything else, a symbol that is a word of JavaScript's.
    """
    expression = sympy.sympify(expression)
    _refuse(expression)
    for name in sorted({s.name for s in expression.atoms(sympy.Symbol)} & RESERVED):
        raise ValueError(f"{expression}: the symbol {name!r} is a word of JavaScript; give it another name.")
    return _JavaScript().doprint(expression)


def numeric(arguments: Sequence[sympy.Symbol], expression: sympy.Expr) -> Callable[..., Any]:
    """`expression` as a Python function of `arguments`, each a number or an array; arrays broadcast.

    Raises ValueError for what `javascript` refuses.
    """
    expression = sympy.sympify(expression)
    _refuse(expression)
    if not expression.has(*ONE_BY_ONE):
        return sympy.lambdify(arguments, expression, "numpy", printer=_NumPy)
    tools = {
        "harmonic": lambda n: float(mpmath.harmonic(n)),
        "fsum": math.fsum,
        "math": math,
        "interpolated": interpolate,
        "looked_up": lambda keys, rows: rows.get(keys, math.nan),
    }
    one = sympy.lambdify(arguments, expression, [tools, "math"], printer=_OneByOne)
    many = np.vectorize(one, otypes=[float])

    def run(*values: Any) -> Any:
        return many(*values) if any(np.ndim(v) for v in values) else one(*values)

    return run


def written_out(expression: sympy.Expr) -> sympy.Expr:
    """The expression as a reader should see it: harmonic numbers as the sums that they are."""
    if not isinstance(expression, sympy.Basic) or not expression.has(sympy.harmonic):
        return expression
    taken = {s.name for s in expression.atoms(sympy.Symbol)}
    index = sympy.Symbol(next(name for name in "ijnm" if name not in taken), integer=True)
    return expression.replace(sympy.harmonic, lambda n: sympy.Sum(1 / index, (index, 1, n)))


def _refuse(expression: sympy.Basic) -> None:
    """Raise ValueError for what the printers below would print wrongly, or not at all."""
    for part in sympy.preorder_traversal(expression):
        if not isinstance(part, (*ARITHMETIC, *FUNCTIONS, *CONDITIONS)):
            known = ", ".join(f.__name__ for f in FUNCTIONS)
            raise ValueError(
                f"{expression}: no code is generated for {type(part).__name__}; state it otherwise, "
                f"with arithmetic and {known}."
            )
        if isinstance(part, sympy.harmonic) and len(part.args) > 1:
            raise ValueError(f"{part}: harmonic numbers are of order 1 here; state it as a Sum.")
        if isinstance(part, sympy.Piecewise) and part.args[-1].cond != sympy.true:
            raise ValueError(f"{part}: no piece for everything else; end it with (value, True).")
        if isinstance(part, sympy.Sum):
            for index in part.bound_symbols:
                if index.name in {s.name for s in expression.free_symbols}:
                    raise ValueError(f"{part}: its index has the name of a parameter; give it another.")


class _Shared:
    """What all printers here do in the same way, and better than SymPy's own."""

    _print: Any  # SymPy's, of the printer that this is mixed into

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))  # all its digits

    def _print_Mul(self, expr: sympy.Mul) -> str:
        """n/49, where SymPy says (1/49)*n, whose floor is 0 at n = 49; and log2 for log(x)/log(2)."""
        coefficient, rest = expr.as_coeff_Mul()
        factors = list(sympy.Mul.make_args(rest))
        for base, function in ((2, log2), (10, log10)):
            divisor, logs = 1 / sympy.log(base), [f for f in factors if isinstance(f, sympy.log)]
            if divisor in factors and logs:
                factors.remove(divisor)
                factors[factors.index(logs[0])] = function(logs[0].args[0])
        if isinstance(coefficient, sympy.Rational) and coefficient.q != 1:
            factors.append(sympy.Pow(coefficient.q, -1, evaluate=False))
            coefficient = sympy.Integer(coefficient.p)
        if coefficient != 1:
            factors.insert(0, coefficient)
        return super()._print_Mul(sympy.Mul(*factors, evaluate=False))  # type: ignore[misc]  # SymPy's

    def _printed(self, parts: Iterable[sympy.Basic]) -> list[str]:
        return [self._print(part) for part in parts]

    def _pairs(self, function: str, expr: sympy.Expr) -> str:
        first, *others = self._printed(expr.args)
        for other in others:
            first = f"{function}({first}, {other})"
        return first


class _JavaScript(_Shared, JavascriptCodePrinter):
    def __init__(self) -> None:
        functions = {"harmonic": f"{PRELUDE}.harmonic", "log2": "Math.log2", "log10": "Math.log10"}
        super().__init__({"user_functions": functions, "strict": True})

    def _print_NumberSymbol(self, expr: sympy.NumberSymbol) -> str:
        return repr(float(expr))

    def _print_NaN(self, expr: sympy.Expr) -> str:
        return "NaN"

    def _print_Interpolated(self, expr: Interpolated) -> str:
        x, xs, ys, _ = expr.args
        return f"{PRELUDE}.interpolated({self._print(x)}, {self._list(xs)}, {self._list(ys)})"

    def _print_LookedUp(self, expr: LookedUp) -> str:
        keys, rows, _ = expr.args
        return f"{PRELUDE}.lookedUp({self._list(keys)}, [{', '.join(map(self._list, rows))}])"

    def _list(self, values: sympy.Tuple) -> str:
        return f"[{', '.join(self._printed(values))}]"

    def _print_Mod(self, expr: sympy.Mod) -> str:
        a, b = (self.parenthesize(arg, math.inf) for arg in expr.args)
        return f"(({a} % {b} + {b}) % {b})"  # JavaScript's % has the sign of the dividend

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        *pieces, last = expr.args
        tests = "".join(f"{self._print(p.cond)} ? {self._print(p.expr)} : " for p in pieces)
        return f"({tests}{self._print(last.expr)})"

    def _print_Sum(self, expr: sympy.Sum) -> str:
        code = self._print(expr.function)
        for index, low, high in map(self._printed, expr.limits):  # the innermost first
            code = f"{PRELUDE}.sum({low}, {high}, ({index}) => {code})"
        return code


class _NumPy(_Shared, NumPyPrinter):
    def _print_Min(self, expr: sympy.Min) -> str:
        return self._pairs("numpy.minimum", expr)  # SymPy's amin wants arrays of one shape

    def _print_Max(self, expr: sympy.Max) -> str:
        return self._pairs("numpy.maximum", expr)


class _OneByOne(_Shared, PythonCodePrinter):
    def _print_Interpolated(self, expr: Interpolated) -> str:
        x, xs, ys, _ = expr.args
        return f"interpolated({self._print(x)}, {self._tuple(xs)}, {self._tuple(ys)})"

    def _print_LookedUp(self, expr: LookedUp) -> str:
        keys, rows, _ = expr.args
        found = ", ".join(f"{self._tuple(row[:-1])}: {self._print(row[-1])}" for row in rows)
        return f"looked_up({self._tuple(keys)}, {{{found}}})"

    def _tuple(self, values: sympy.Tuple) -> str:
        return f"({', '.join(self._printed(values))},)"

    def _print_Sum(self, expr: sympy.Sum) -> str:
        code = self._print(expr.function)
        for index, low, high in map(self._printed, expr.limits):
            code = f"fsum({code} for {index} in range(math.ceil({low}), math.floor({high}) + 1))"
        return code

    def _print_harmonic(self, expr: sympy.harmonic) -> str:
        return f"harmonic({self._print(expr.args[0])})"

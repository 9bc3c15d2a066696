"""Judging functions that students write: right on every call, or which mistake explains all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from book.say import say
from labs.kit.ask_and_answer import Ask, Calls, CallsAnswer
from labs.kit.question import Draw, Verdict

TOLERANCE = 1e-6  # relative, of a formula
SHOWN = 3  # calls of each function in a table


@dataclass(frozen=True)
class Formula:
    """A function to write. arguments: its parameters, for the table; right: what it has to return.

    draw(draw, i) -> the arguments of the i-th call. mistakes: (what is wrong, what it returns then);
    the first one that explains every call is told.
    """

    function: str
    arguments: tuple[str, ...]
    right: Callable[..., float]
    draw: Callable[[Draw, int], tuple[Any, ...]]
    mistakes: tuple[tuple[str, Callable[..., float]], ...] = ()
    tolerance: float = TOLERANCE


def asks(formulas: Sequence[Formula], calls: int) -> Callable[[Draw], Mapping[str, Ask]]:
    """Call each function so many times, with fresh numbers."""

    def made(draw: Draw) -> Mapping[str, Ask]:
        return {
            one.function: Calls(one.function, tuple(one.draw(draw, i) for i in range(calls)))
            for one in formulas
        }

    return made


def judge(formulas: Sequence[Formula]) -> Callable[..., Verdict]:
    """A verdict on all of these functions together."""

    def judged(answers: Mapping[str, CallsAnswer], asked: Mapping[str, Calls], draw: Draw) -> Verdict:
        comments, rows = [], []
        for one in formulas:
            comment, table = _one(one, answers[one.function], asked[one.function].calls)
            rows += table
            if comment:
                comments.append(comment)
        return Verdict(not comments, " ".join(comments), tuple(rows))

    return judged


def _one(
    formula: Formula, answer: CallsAnswer, calls: Sequence[tuple]
) -> tuple[str, list[Mapping[str, Any]]]:
    if answer.error:
        return sentence(answer.error), []
    wanted = [formula.right(*call) for call in calls]
    got = [value for value, _ in answer.returns]
    rows = [
        row(_called(formula, call), value, right)
        for call, value, right in zip(calls, got, wanted, strict=True)
    ]
    wrong = [
        i
        for i, (value, right) in enumerate(zip(got, wanted, strict=True))
        if not close(value, right, formula.tolerance)
    ]
    if not wrong:
        return "", rows[:SHOWN]
    shown = [rows[i] for i in wrong[:SHOWN]]
    return _comment(formula, answer, calls, got, wrong), shown


def _comment(
    formula: Formula, answer: CallsAnswer, calls: Sequence[tuple], got: Sequence[Any], wrong: Sequence[int]
) -> str:
    first = wrong[0]
    where = _called(formula, calls[first])
    if answer.returns[first][1].startswith("NotImplementedError"):
        return say("{function} still has its blank; put your code there.", function=formula.function)
    if answer.returns[first][1]:
        return f"{where} stopped: {answer.returns[first][1].rstrip('.')}."
    if got[first] is None:
        return say("{function} returns nothing; end it with `return ...`.", function=formula.function)
    if not is_number(got[first]):
        return say(
            "{function} returns {value}, which is no number.",
            function=formula.function,
            value=shown(got[first]),
        )
    for words, mistaken in formula.mistakes:
        if all(
            _explains(mistaken, call, value, min(formula.tolerance, 0.01))
            for call, value in zip(calls, got, strict=True)
        ):
            return f"{formula.function}: {words}"
    return say(
        "{where} should be {right}, and yours is {got}.",
        where=where,
        right=shown(formula.right(*calls[first])),
        got=shown(got[first]),
    )


def _explains(mistaken: Callable[..., float], call: tuple, value: Any, tolerance: float) -> bool:
    try:
        return close(value, mistaken(*call), tolerance)
    except ZeroDivisionError:
        return False


def _called(formula: Formula, call: tuple) -> str:
    pairs = zip(formula.arguments, call, strict=True)
    return f"{formula.function}({', '.join(f'{name}={_argument(value)}' for name, value in pairs)})"


def _argument(value: Any) -> str:
    if isinstance(value, list):
        return say("{count} points", count=len(value))
    return f"{value:.4g}" if isinstance(value, float) else f"{value}"


def row(run: str, yours: Any, theirs: float) -> Mapping[str, Any]:
    """One line of "run, yours, theirs, difference"."""
    off = "–"
    if is_number(yours) and math.isfinite(theirs) and math.isfinite(yours) and theirs:
        off = f"{100 * (yours / theirs - 1):+.2f} %"
    return {"run": run, "yours": shown(yours), "theirs": shown(theirs), "difference": off}


def shown(value: Any) -> str:
    """A number to six digits, or whatever it is instead."""
    if is_number(value):
        return f"{value:,.6g}"
    try:
        return repr(value)[:40]
    except ValueError:  # an int of thousands of digits
        return say("a number too large")


def is_number(value: Any) -> bool:
    """Is `value` a number that fits a float? (True and False are not.)"""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < 10**300


def close(value: Any, right: float, tolerance: float) -> bool:
    """Is `value` a number, and within a relative tolerance of `right`? Infinity is close to itself."""
    return is_number(value) and math.isclose(value, right, rel_tol=tolerance)


def sentence(text: str) -> str:
    """`text` with one full stop at its end."""
    return text.rstrip(". ") + "."

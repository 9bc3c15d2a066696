"""How lab 2 judges a predicted time: the floor of the roofline, and the mistakes people make on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from book import cost, roofline
from book.drawing.number_text import si
from book.say import say
from labs.kit.ask_and_answer import Answer, Ask, CallsAnswer, ValuesAnswer
from labs.kit.question import Draw, Verdict
from labs.lab2_linear.cases import Problem
from labs.lab2_linear.judges import _number, _verdict
from labs.lab2_linear.wrong_products import said

FUNCTION_WITHIN, TYPED_WITHIN = 1e-4, 0.02  # typed peaks have three digits


def floor(m: int, k: int, n: int, peak: float, bandwidth: float, itemsize: float = 2) -> float:
    """Seconds: the larger of compute time and memory time."""
    work = cost.linear(m, k, n, itemsize)
    return roofline.time(work.flops, work.bytes, peak, bandwidth)


def _parts(problem: Problem) -> tuple[float, float]:
    m, k, n, peak, bandwidth, itemsize = problem
    work = cost.linear(m, k, n, itemsize)
    return work.flops / peak, work.bytes / bandwidth


def _with(**changed: float) -> Callable[[Problem], float]:
    """The floor with something counted otherwise."""

    def seconds(problem: Problem) -> float:
        m, k, n, peak, bandwidth, itemsize = problem
        flops = 2 * m * k * n * changed.get("flops", 1)
        numbers = changed.get("x", 1) * m * k + k * n + changed.get("y", 1) * m * n
        size = changed.get("itemsize", itemsize) * changed.get("bytes", 1)
        return max(flops / peak, numbers * size / bandwidth)

    return seconds


def _compute(problem: Problem) -> float:
    return _parts(problem)[0]


def _memory(problem: Problem) -> float:
    return _parts(problem)[1]


MISTAKES: tuple[tuple[str, Callable[[Problem], float]], ...] = (
    (say("the two times are added up; they overlap, so the longer one counts."), lambda p: sum(_parts(p))),
    (say("the shorter of the two times is taken; the work takes the longer one."), lambda p: min(_parts(p))),
    (say("only the bytes are counted; above the ridge the arithmetic takes longer."), _memory),
    (say("only the arithmetic is counted; below the ridge the bytes take longer."), _compute),
    (say("a multiply-add is two operations, and peaks here are dense: twice that time."), _with(flops=0.5)),
    (say("y is written too."), _with(y=0)),
    (say("x is read too."), _with(x=0)),
    (say("x and y are bytes too."), _with(x=0, y=0)),
    (say("you counted twice the bytes: a number in 16 bits has two."), _with(bytes=2)),
    (
        say("you counted one byte for each number; it has itemsize of them, two in 16 bits."),
        _with(itemsize=1),
    ),
    (say("you counted two bytes for each number; it has itemsize of them."), _with(itemsize=2)),
    (say("those are milliseconds; give seconds."), lambda p: 1e3 * max(_parts(p))),
    (say("those are microseconds; give seconds."), lambda p: 1e6 * max(_parts(p))),
)  # fmt: skip


def _mistake(yours: list[tuple[Problem, float]], within: float) -> str:
    """The mistake that explains all of these answers."""
    for sentence, seconds in MISTAKES:
        if all(abs(value - seconds(problem)) <= within * abs(seconds(problem)) for problem, value in yours):
            return sentence
    return ""


def function(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """`predicted_seconds` against the floor."""
    answer: CallsAnswer = answers["predicted_seconds"]
    if answer.error:
        return Verdict(False, said(answer.error))
    rows, comments, given = [], [], []
    for problem, (value, error) in zip(asks["predicted_seconds"].calls, answer.returns, strict=True):
        theirs, yours = floor(*problem), _number(value)
        m, k, n, peak, bandwidth, itemsize = problem
        rows.append(
            {
                "m × k × n": f"{m:,} × {k:,} × {n:,}",
                "peak": si(peak, "FLOP/s"),
                "bandwidth": si(bandwidth, "B/s"),
                "itemsize": itemsize,
                "yours": say("no number") if yours is None else f"{yours * 1e6:,.2f} µs",
                "theirs": f"{theirs * 1e6:,.2f} µs",
                "times": None if yours is None else f"{yours / theirs:.3f}",
            }
        )
        if yours is None:
            comments.append(
                said(error)
                or say(
                    "predicted_seconds returned {value}; give seconds.",
                    value=str(value)[:60],
                )
            )
        else:
            given.append((problem, yours))
    off = [(p, y) for p, y in given if abs(y - floor(*p)) > FUNCTION_WITHIN * floor(*p)]
    if off and not comments:
        hint = _mistake(given, FUNCTION_WITHIN) or _mistake(off, FUNCTION_WITHIN)
        problem, yours = off[0]
        comments.append(
            hint or say(
                "at {rows:,} rows you say {yours:.3g} s: divide FLOPs by the peak and bytes by the "
                "bandwidth, and take the longer time.",
rows=problem[0],
yours=yours,
)
        )  # fmt: skip
    return _verdict(comments, rows)


def predictions(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """`predictions`, seconds by accelerator, against the floor at this copy's sizes. Shows no answer."""
    answer: ValuesAnswer = answers["predictions"]
    value = answer.values.get("predictions")
    if answer.error or not isinstance(value, dict):
        error = answer.error or answer.errors.get("predictions", "")
        return Verdict(
            False, said(error) or say("predictions must be a dict: seconds, by the accelerator's name.")
        )
    numbers, rows, given, missing = draw.numbers, [], [], []
    for card, facts in numbers["cards"].items():
        problem = (numbers["m"], numbers["k"], numbers["n"], facts["peak"], facts["bandwidth"], 2)
        yours = _number(value.get(card))
        given += [] if yours is None else [(problem, yours, card)]
        missing += [card] if yours is None else []
        row: dict[str, Any] = {"accelerator": facts["name"], "yours": say("missing"), "times the floor": None}
        if yours is not None:
            row |= {"yours": f"{yours * 1e6:,.1f} µs", "times the floor": f"{yours / floor(*problem):.2f}"}
        rows.append(row)
    if missing:
        return Verdict(
            False,
            say(
                "predictions lacks {missing}: give seconds for each.",
                missing=", ".join(missing),
            ),
            tuple(rows),
        )
    off = [(p, y, card) for p, y, card in given if abs(y - floor(*p)) > TYPED_WITHIN * floor(*p)]
    if not off:
        return Verdict(True, "", tuple(rows))
    hint = _mistake([g[:2] for g in given], TYPED_WITHIN) or _mistake([o[:2] for o in off], TYPED_WITHIN)
    names = ", ".join(card for *_, card in off)
    words = hint or say("not the floor of the time; check peak, bandwidth and unit.")
    return Verdict(False, f"{names}: {words}", tuple(rows))

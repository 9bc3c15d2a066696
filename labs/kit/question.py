"""A question: what it asks of the code, and how the answers are judged. One rule, used in three places.

In the student's notebook the visible cases are checked as often as they like; the master's hidden
tests check others; the grader asks in sandboxes, with numbers that nobody has seen.
"""

from __future__ import annotations

import html
import inspect
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from book.say import say
from labs.kit import run_submitted_code, unsandboxed
from labs.kit.ask_and_answer import Answer, Ask, Calls, CallsAnswer, Kernel, Values, ValuesAnswer
from labs.kit.ask_in_processes import Cell, answer
from labs.kit.blanks import blanks


@dataclass(frozen=True)
class Verdict:
    """right, and why not. comment: to the author; table: rows of "run, yours, theirs, difference"."""

    right: bool
    comment: str = ""
    table: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Draw:
    """What a question may depend on. rng: fresh numbers; numbers: the ones of this student's variant."""

    rng: np.random.Generator
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """id: the grade_id of its test cell. needs: grade_ids of the solution cells that it looks at.

    asks(draw) -> asks by name; judge(answers by name, draw) -> Verdict. Points are in the master.
    """

    id: str
    title: str
    needs: tuple[str, ...]
    asks: Callable[[Draw], Mapping[str, Ask]]
    judge: Callable[[Mapping[str, Answer], Mapping[str, Ask], Draw], Verdict]


@dataclass(frozen=True)
class KeptRun:
    """How the kernels of a question ran. code: the cells, numbers and seed that they ran with."""

    code: str
    draw: Draw
    asks: Mapping[str, Ask]
    answers: Mapping[str, Answer]


# What the columns of a verdict's table are called. A lab may have more; those stand there as they are.
HEADINGS = {
    "run": say("run"),
    "yours": say("yours"),
    "theirs": say("theirs"),
    "difference": say("difference"),
    "times": say("times"),
    "times the floor": say("times the floor"),
    "tensor": say("tensor"),
    "stored": say("stored"),
    "your error": say("your error"),
    "allowed": say("allowed"),
    "touched outside": say("touched outside"),
    "matrix instruction": say("matrix instruction"),
    "accelerator": say("accelerator"),
    "chip": say("chip"),
    "kernel": say("kernel"),
    "registers": say("registers"),
    "spilled": say("spilled"),
    "peak": say("peak"),
    "bandwidth": say("bandwidth"),
}


class NotYet(AssertionError):
    """The check's answer to code that is not right yet: a sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [say("Not yet: {why}", why=self)]


def check(
    question: Question,
    names: Mapping[str, Any],
    numbers: Mapping[str, Any],
    seed: int | None = None,
    together: Sequence[Question] = (),
    kept: dict[Question, KeptRun] | None = None,
) -> None:
    """Check a question here, in the notebook: show yours and theirs, and raise NotYet if they differ.

    names: the notebook's globals. numbers: of this student's variant. seed: None for fresh numbers.
    together: questions whose kernels run in the same child processes, which take seconds to start;
    kept: where those runs wait for their own check, until the code is another.
    """
    draw, asks, answers = _run_kernels(question, together, names, numbers, seed, {} if kept is None else kept)
    for name, ask in asks.items():
        if not isinstance(ask, Kernel):
            answers = {**answers, name: _in_this_process(ask, names)}
    verdict = question.judge(answers, asks, draw)
    _show(question, verdict)
    if not verdict.right:
        raise NotYet(verdict.comment)


def _run_kernels(
    wanted: Question,
    others: Sequence[Question],
    names: Mapping[str, Any],
    numbers: Mapping[str, Any],
    seed: int | None,
    kept: dict[Question, KeptRun],
) -> tuple[Draw, Mapping[str, Ask], Mapping[str, Answer]]:
    """What is asked for `wanted`, and how its kernels ran: now, beside those of `others`, or before."""
    draw = Draw(np.random.default_rng(seed), numbers)
    asks = wanted.asks(draw)
    launchers = {ask.function for ask in asks.values() if isinstance(ask, Kernel)}
    if not launchers:
        return draw, asks, {}
    cells = {name: _cells(name, names) for name in launchers}
    now = repr((cells, numbers, seed))
    if wanted in kept and kept[wanted].code == now:
        return kept[wanted].draw, kept[wanted].asks, kept[wanted].answers
    made = [(wanted, draw, asks)]
    for q in others:
        draw = Draw(np.random.default_rng(seed), numbers)
        made.append((q, draw, q.asks(draw)))
    answers: dict[str, Answer] = {}
    for launcher, sources in cells.items():
        asks = {
            f"{q.id} {name}": ask
            for q, _, its in made
            for name, ask in its.items()
            if isinstance(ask, Kernel) and ask.function == launcher
        }
        asked = answer(sources, asks, unsandboxed.run)
        if asked.cell_errors:
            raise NotYet(next(iter(asked.cell_errors.values())))
        answers |= asked.answers
    for q, drawn, asks in made:
        its = {name: answers[f"{q.id} {name}"] for name in asks if f"{q.id} {name}" in answers}
        kept[q] = KeptRun(now, drawn, asks, its)
    return kept[wanted].draw, kept[wanted].asks, kept[wanted].answers


def _cells(launcher: str, names: Mapping[str, Any]) -> list[Cell]:
    function = names.get(launcher)
    cells = cells_of(function) if callable(function) else []
    if not cells:
        raise NotYet(say("{launcher} is not defined; run the cell that defines it.", launcher=launcher))
    for source in (cell.source for cell in cells):
        if lines := blanks(source):  # no child needs to be started to know how this ends
            first = source.lstrip().split("\n")[0]
            raise NotYet(
                say(
                    "{launcher} is not answered yet: fill in the blank on line {line} of the cell that "
                    "begins with {first!r}, and run the cell.",
                    launcher=launcher,
                    line=lines[0],
                    first=first,
                )
            )
    return cells


def _in_this_process(ask: Values | Calls, names: Mapping[str, Any]) -> Answer:
    try:
        if isinstance(ask, Values):
            told = run_submitted_code.values({"names": ask.names}, dict(names))
            return ValuesAnswer(told["values"], told["errors"])
        told = run_submitted_code.calls({"function": ask.function, "calls": ask.calls}, dict(names))
    except run_submitted_code.Problem as problem:
        return (
            ValuesAnswer(error=str(problem)) if isinstance(ask, Values) else CallsAnswer(error=str(problem))
        )
    return CallsAnswer(tuple((one.get("value"), one.get("error", "")) for one in told["returns"]))


def cells_of(function: Any) -> list[Cell]:
    """The notebook cells that define `function` and the kernels and functions it uses, oldest first."""
    found: dict[str, str] = {}
    waiting, seen = [function], set()
    while waiting:
        one = waiting.pop()
        one = getattr(one, "fn", None) or inspect.unwrap(one) if callable(one) else one
        if not isinstance(one, FunctionType) or one in seen:
            continue
        seen.add(one)
        file = one.__code__.co_filename
        lines = linecache.getlines(file)
        if not lines or one.__module__ != "__main__":
            continue
        found[file] = "".join(lines)
        waiting += [one.__globals__[n] for n in _names(one.__code__) if n in one.__globals__]
    return [Cell(f"cell {i}", source) for i, source in enumerate(reversed(found.values()), 1)]


def _names(code: Any) -> Sequence[str]:
    inner = [c for c in code.co_consts if inspect.iscode(c)]
    return [*code.co_names, *(name for one in inner for name in _names(one))]


def _show(question: Question, verdict: Verdict) -> None:
    """The table, in the notebook's colours where there is a notebook."""
    from book.drawing.tables import Column, table

    mark = "✓" if verdict.right else "✗"
    title = f"{mark} {question.title}" + (f": {verdict.comment}" if verdict.right and verdict.comment else "")
    if not verdict.table:
        print(title)
        return
    made = table(
        [dict(row) for row in verdict.table],
        [Column(key, HEADINGS.get(key, key)) for key in verdict.table[0]],
        html.escape(title),
    )
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        print(made)
        return
    display(made) if get_ipython() else print(made)

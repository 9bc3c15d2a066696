"""Grades one submission: asks its code in sandboxes, and lets the key judge what comes out.

Nothing of the submission runs in this process. Whatever it does, it gets a grade; if it is the key
that fails, the question has no grade yet and needs a look.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from book.say import say
from labs.grading import master
from labs.grading.running_program import SandboxFailed
from labs.grading.safe_text import sentence, several, tidy
from labs.grading.sandboxed_programs import LIMITS, ProgramLimits
from labs.grading.submission import Submission
from labs.kit.ask_and_answer import Answer, Ask
from labs.kit.ask_in_processes import Answers, Cell, Ran, Runner, answer
from labs.kit.blanks import blanks
from labs.kit.question import Draw, Question, Verdict

MUCH_PRINTED = 1_000_000  # bytes that are worth a note
KERNEL = "triton.jit"
GONE = re.compile(r"\w+ is not defined in the graded cells; put what your answer needs into them\.?\s*")
MISSING = re.compile(r"name '(\w+)' is not defined|\b(\w+) is not defined")


@dataclass(frozen=True)
class Score:
    """One question. most: points to be had. look: the key failed, so a person has to grade it."""

    question: str
    title: str
    points: float
    most: float
    comment: str = ""
    look: bool = False


@dataclass(frozen=True)
class Grade:
    """One submission. notes: what was odd, to the student; problems: what failed here, to the instructor.

    seconds: how long it took. versions: of what ran the code. digest: of the submission's file.
    """

    lab: str
    scores: tuple[Score, ...]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    seed: int = 0
    variant: int = 0
    digest: str = ""
    versions: Mapping[str, str] | None = None

    @property
    def total(self) -> float:
        return sum(score.points for score in self.scores)

    @property
    def most(self) -> float:
        return sum(score.most for score in self.scores)

    @property
    def needs_look(self) -> bool:
        return bool(self.problems) or any(score.look for score in self.scores)


def grade(
    submission: Submission,
    assignment: master.Assignment,
    runner: Runner,
    seed: int,
    variant: int = 0,
    limits: ProgramLimits = LIMITS,
) -> Grade:
    """The grade of a submission; the same for the same seed, but for `seconds`.

    Raises SandboxFailed when the sandbox did not work: then nothing is known about the submission.
    """
    started = time.monotonic()
    marks, lab = master.read(assignment), assignment.key().LAB
    problems: list[str] = []
    numbers = lab.numbers(variant)
    draws: dict[str, Draw] = {}
    asks: dict[str, Mapping[str, Ask]] = {}
    for question in lab.questions:
        if question.id in marks.points and not _unanswered(question, submission):
            try:
                draws[question.id] = Draw(_rng(seed, variant, question.id), numbers)
                asks[question.id] = dict(question.asks(draws[question.id]))
            except Exception as error:  # noqa: BLE001 - the key's own mistake must not stop the class
                problems.append(_failed(say("{question} could not be asked", question=question.id), error))
    answers = _answers(submission, asks, _limited(runner, limits.total_seconds), problems)
    scores, seen = [], set()
    for question in lab.questions:
        if question.id not in marks.points:
            problems.append(
                say(
                    "{question}: the master has no test cell with this grade_id.",
                    question=question.id,
                )
            )
            continue
        seen.add(question.id)
        most = marks.points[question.id]
        comment, look = _unanswered(question, submission), False
        right = False
        if not comment:
            verdict = None
            if answers is not None and question.id in asks:
                its = {name: answers.answers[_key(question.id, name)] for name in asks[question.id]}
                verdict = _judged(question, its, asks[question.id], draws[question.id], problems)
            look = verdict is None
            right = not look and verdict.right
            comment = _comment(question, verdict, submission, answers)
        scores.append(
            Score(question.id, tidy(question.title), most if right else 0.0, most, tidy(comment), look)
        )
    for name in marks.points.keys() - seen:
        problems.append(say("{name}: the key has no such question.", name=name))
        scores.append(
            Score(name, name, 0.0, marks.points[name], say("This question was not graded yet."), True)
        )
    order = list(marks.points)
    return Grade(
        assignment.name,
        tuple(sorted(scores, key=lambda score: order.index(score.question))),
        _notes(submission, answers),
        tuple(tidy(problem) for problem in problems),
        round(time.monotonic() - started, 2),
        seed,
        variant,
        submission.digest,
        {name: version(name) for name in master.PACKAGES},
    )


def _rng(seed: int, variant: int, question: str) -> np.random.Generator:
    """A question's own numbers, whichever other questions are asked."""
    return np.random.default_rng([seed, variant, zlib.crc32(question.encode())])


def _key(question: str, name: str) -> str:
    return f"{question}: {name}"  # no cell has a space in its name


def _unanswered(question: Question, submission: Submission) -> str:
    """Why there is nothing to judge, or ""."""
    if submission.unreadable:
        return submission.unreadable
    gone = [submission.missing[name] for name in question.needs if name in submission.missing]
    if gone:
        return " ".join(gone)
    if question.needs and all(name in submission.untouched for name in question.needs):
        return say("Not answered: the code is as it was handed out.")
    return ""


def _answers(
    submission: Submission, asks: Mapping[str, Mapping[str, Ask]], runner: Runner, problems: list[str]
) -> Answers | None:
    """All asks in one conversation; None if the conversation itself failed."""
    cells = [
        Cell(name, source)
        for name, source in submission.cells.items()
        # A kernel with a blank in it is no kernel yet, and would have the others refused as well.
        if not (name in submission.untouched and KERNEL in source)
    ]
    every = {_key(question, name): ask for question, its in asks.items() for name, ask in its.items()}
    if not every:
        return Answers()
    try:
        return answer(cells, every, runner)
    except SandboxFailed:
        raise
    except Exception as error:  # noqa: BLE001 - something in it that the grader did not foresee
        problems.append(
            say(
                "The submission could not be asked ({error}); grade it by hand.",
                error=_said(error),
            )
        )
        return None


def _limited(runner: Runner, seconds: float) -> Runner:
    """The runner, until all its runs together took this long."""
    left = seconds

    def run(program: str, request: Mapping[str, Any]) -> Ran:
        nonlocal left
        if left <= 0:
            why = say(
                "All of this notebook's code together ran longer than {seconds:g} s; the rest was not run.",
                seconds=seconds,
            )
            return Ran((), "timeout", why)
        started = time.monotonic()
        try:
            return runner(program, request)
        finally:
            left -= time.monotonic() - started

    return run


def _judged(
    question: Question,
    answers: Mapping[str, Answer],
    asks: Mapping[str, Ask],
    draw: Draw,
    problems: list[str],
) -> Verdict | None:
    try:
        verdict = question.judge(answers, asks, draw)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"the judge returned {type(verdict).__name__}, not a Verdict")
        return verdict
    except Exception as error:  # noqa: BLE001
        problems.append(_failed(say("{question} could not be judged", question=question.id), error))
        return None


def _failed(what: str, error: Exception) -> str:
    return say(
        "{what}, so it has 0 points until somebody looks: {error}",
        what=what,
        error=_said(error),
    )


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# ------------------------------------------------------------------------------------- the words


def _comment(
    question: Question, verdict: Verdict | None, submission: Submission, answers: Answers | None
) -> str:
    if verdict is None:
        return say("This question could not be graded automatically; your instructor will look at it.")
    if verdict.right:
        return verdict.comment
    errors = answers.cell_errors if answers is not None else {}
    parts = []
    for name in question.needs:
        left = blanks(submission.cells.get(name, ""))
        if left:
            parts.append(say("Line {line} of {name} is still a blank.", line=left[0], name=name))
        elif name in errors:
            parts.append(f"{name}: {errors[name]}")
    # The cell's own error says more than what follows from it, and is not said twice.
    told = GONE.sub("", verdict.comment).strip() if parts else verdict.comment
    if not any(told and told in part for part in parts):
        parts.append(told)
    text = " ".join(sentence(part) for part in parts if part) or say("Not right yet.")
    lost = _lost(f"{text} {verdict.comment}", submission)
    return f"{lost} {text}" if lost else text


def _lost(text: str, submission: Submission) -> str:
    """That a missing name is there, in a cell which isn't graded; or ""."""
    names = {a or b for a, b in MISSING.findall(text)} & submission.elsewhere
    if not names:
        return ""
    return say(
        "{names}: defined in another cell, and only the lab's answer cells are graded; move it "
        "into one of them.",
        names=several(sorted(names)),
    )


def _notes(submission: Submission, answers: Answers | None) -> tuple[str, ...]:
    notes = list(submission.notes)
    if answers is not None:
        texts = list(answers.cell_errors.values())
        texts += [str(getattr(one, "error", "")) for one in answers.answers.values()]
        texts += [e for one in answers.answers.values() for e in getattr(one, "errors", {}).values()]
        notes += sorted({lost for text in texts if (lost := _lost(text, submission))})
        if answers.printed > MUCH_PRINTED:
            notes.append(
                say(
                    "It printed {size:,.0f} MB; nobody reads that, and nothing was kept.",
                    size=answers.printed / 1e6,
                )
            )
    return tuple(tidy(note) for note in notes)

"""Numeric self-checks that know the usual mistakes.

A question, its answer, and the wrong answers that people really give, each with a hint that names
the mistake; what is none of them is compared with the usual slips. It works in a notebook and, without
a kernel, on the page. The rule is `book.widgets.judging.judge`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import traitlets

from book import catalog
from book.drawing.number_text import number
from book.say import translated
from book.widgets import choice as choices
from book.widgets.check_words import (
    GENERIC,
    NUMERIC,
    SLIPS,
    Verdict,
    fill,
    refuse_bad_name,
    said_without_script,
)
from book.widgets.dual_widget import Live
from book.widgets.judging import judge
from book.widgets.typed_units import KINDS, Kind, kind_of, spellings
from book.widgets.usual_slips import ROUNDED, OnCard, Rounding, card_in, slips

NEAR = 3  # within this many tolerances an answer is wrong, but only by a little
SLIP = 0.005  # a usual slip is told by its factor alone, so it has to be met more closely than a listed one


class Check(Live):
    """One question. `entry` is what the reader typed, `solved` whether it is right; both can be observed."""

    entry = traitlets.Unicode("").tag(sync=True)
    solved = traitlets.Bool(False).tag(sync=True)

    def judge(self, answer: str | float) -> Verdict:
        """The verdict on an answer, as typed or as a number."""
        return judge(self.payload, answer)

    @traitlets.observe("entry")
    def _judge_entry(self, change: Any) -> None:
        self.solved = self.judge(change["new"]).right

    def summary(self) -> str:
        """The question and its answer, for a page without scripts."""
        return said_without_script(self.payload)


def numeric(
    name: str,
    *,
    question: str,
    answer: float | OnCard,
    unit: str = "",
    tolerance: float = 0.01,
    mistakes: Mapping[float, str] | Iterable[tuple[float, str]],
    right: str = "",
    hint: str = "",
    solution: str = "",
    kind: Kind | None = None,
    rounding: Rounding | None = None,
    card: str | None = None,
    words: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Check:
    """A question whose answer is a number.

    name: lower-case, unique in the book, as "ex-02-rows"; it becomes the element's id. answer: in
    `unit`, better computed than typed; or a function that gives it for a `catalog.Accelerator`, so that
    who took another card is told which. tolerance: relative, both for the answer and for the
    mistakes. mistakes: {wrong answer: hint}, at least two; a hint names the mistake and doesn't give
    the answer away. right: what to say to the right answer. solution: the way to the answer, shown on
    demand after one try.

    An answer may be typed in any unit that measures the same. What is no listed mistake is compared
    with the usual slips (`book.widgets.usual_slips`), for which three things may be said. kind: what is
    asked for, "bytes", "time", "count" ...; the unit tells it otherwise. rounding: "down" where a whole
    one must fit, "up" where part of one needs a whole one; answer is whole then. card: the id of the
    accelerator that a function for an answer is asked for; the question's words tell it otherwise.
    hint: what to say to any other answer.

    words: replacements for the check's own words. values: what stands for the names in braces of all
    these texts, which are looked up in the reader's language here, so that they are plain literals, not
    f-strings, with Unicode for the mathematics.

    Raises ValueError if an answer could be taken for two things, or if something is missing.
    """
    listed = [*mistakes.items()] if isinstance(mistakes, Mapping) else [*mistakes]
    refuse_bad_name(name, question)
    _refuse_bad_mistakes(name, listed)
    filled = dict(values or {})
    question, right, hint, solution = (translated(t, **filled) for t in (question, right, hint, solution))
    on = answer if callable(answer) else None
    answer = float(on(_card_of(name, card or card_in(question))) if on else answer)
    wrong = [(float(value), translated(text, **filled)) for value, text in listed]
    _refuse_bad_numbers(name, answer, wrong, tolerance, rounding)
    _refuse_overlap(name, answer, wrong, tolerance)
    kind = kind or kind_of(unit)
    if kind not in KINDS:
        raise ValueError(f"check {name}: kind = {kind!r}; it is one of {', '.join(KINDS)}.")
    usual = slips(kind, unit, answer, tolerance, on)
    own = {**NUMERIC, **{word: SLIPS[word] for word in _words_of(usual)}, **(words or {})}
    whole = "whole" if kind == "count" and answer.is_integer() else ""
    return Check(
        kind="check",
        payload={
            "id": name,
            "question": question,
            "unit": unit,
            "units": spellings(unit),
            "answer": answer,
            "answer_text": fill(own["answer"], answer=f"{_exact(answer, tolerance)} {unit}".strip()),
            "tolerance": tolerance,
            "tolerance_text": f"{number(100 * tolerance, 1)} %",
            "near": NEAR,
            "mistakes": [{"value": value, "hint": text} for value, text in wrong],
            "slips": usual,
            "slip_tolerance": min(tolerance, SLIP),
            "rounding": rounding or whole,
            "prefixed": kind not in ("share", "ratio", "count"),
            "right": right,
            "hint": hint or GENERIC[kind],
            "solution": solution,
            "words": own,
        },
    )


def _card_of(name: str, id: str | None) -> catalog.Accelerator:
    if id is None:
        raise ValueError(
            f"check {name}: answer is a function of a card, and the question names none; give card=."
        )
    return catalog.accelerator(id)


def _exact(answer: float, tolerance: float) -> str:
    """The answer in as many digits, four or more, as its own tolerance asks for."""
    if answer.is_integer():
        return number(int(answer))
    shown = (number(answer, digits) for digits in range(4, 17))
    return next(
        text
        for text in shown
        if abs(float(text.replace(",", "").replace("−", "-")) - answer) <= tolerance * abs(answer)
    )


def _words_of(usual: list[dict[str, Any]]) -> list[str]:
    """The hints that a check may need, each once, in one order."""
    return [w for w in SLIPS if w in {slip["word"] for slip in usual} or w in ("upside_down", *ROUNDED)]


def _refuse_bad_mistakes(name: str, mistakes: list[tuple[float, str]]) -> None:
    if len(mistakes) < 2:
        raise ValueError(
            f"check {name}: {len(mistakes)} known mistake(s); list at least two that people make."
        )
    for value, text in mistakes:
        if not text.strip():
            raise ValueError(f"check {name}: the hint for {value} is empty; name the mistake behind it.")
    if len({text for _, text in mistakes}) < len(mistakes):
        raise ValueError(f"check {name}: two mistakes share a hint; each has its own cause, so say which.")


def _refuse_bad_numbers(
    name: str, answer: float, wrong: list[tuple[float, str]], tolerance: float, rounding: Rounding | None
) -> None:
    if not 0 < tolerance <= 0.1:
        raise ValueError(f"check {name}: tolerance = {tolerance}: use a share between 0 and 0.1.")
    for value in (answer, *(v for v, _ in wrong)):
        if not math.isfinite(value):
            raise ValueError(f"check {name}: {value} can't be answered; give finite numbers.")
    if answer == 0:
        raise ValueError(
            f"check {name}: answer = 0: a relative tolerance can't accept it; ask for another number."
        )
    if rounding and not answer.is_integer():
        raise ValueError(
            f"check {name}: rounding = {rounding!r}, and answer = {answer} isn't whole; round it."
        )


def _refuse_overlap(name: str, answer: float, wrong: list[tuple[float, str]], tolerance: float) -> None:
    """No typed number may fit two of them."""
    known = [(answer, "the answer"), *((value, f"the mistake {value:g}") for value, _ in wrong)]
    for i, (a, what) in enumerate(known):
        for b, other in known[:i]:
            if abs(a - b) <= tolerance * (abs(a) + abs(b)):
                raise ValueError(
                    f"check {name}: {what} is within tolerance {tolerance} of {other}, {b:g}; "
                    "drop one, or ask with numbers that tell them apart."
                )


def problems(payloads: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is wrong with a chapter's checks, a sentence each: for the test that runs the notebooks.

    Every right answer must be accepted, as it is shown too, every known mistake refused with its own hint,
    every name used once. Payloads come from `collect()`, or from the `data-payload` of executed cells.
    """
    found, seen = [], {}
    for payload in payloads:
        name = payload["id"]
        if seen.setdefault(name, payload) != payload:
            found.append(f"{name}: two different checks have this name.")
        if "options" in payload:
            found += choices.problems(payload)
            continue
        if not judge(payload, payload["answer"]).right:
            found.append(f"{name}: its own answer {payload['answer']} is refused.")
        before, _, after = payload["words"]["answer"].partition("{answer}")
        shown = payload["answer_text"].removeprefix(before).removesuffix(after)
        if not judge(payload, shown).right:
            found.append(f"{name}: it shows {shown!r} as its answer, and refuses that.")
        for mistake in payload["mistakes"]:
            verdict = judge(payload, mistake["value"])
            if (verdict.kind, verdict.message) != ("mistake", mistake["hint"]):
                found.append(f"{name}: the mistake {mistake['value']} gets {verdict.kind}: {verdict.message}")
    return found

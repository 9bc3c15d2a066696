"""Numeric self-checks that know the usual mistakes.

A question, its answer, and the wrong answers that people really give, each with a hint that names
the mistake. It works in a notebook and, without a kernel, on the page. `judge` is the rule;
`book/site/frontend/src/check.js` follows the same one, and a test in a real browser compares the two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import traitlets

from book.drawing.number_text import number
from book.say import translated
from book.widgets import choice as choices
from book.widgets.check_words import NUMERIC, Verdict, fill, refuse_bad_name, said_without_script
from book.widgets.dual_widget import Live

NEAR = 5  # within this many tolerances an answer is wrong, but only by its rounding
_POWERS = range(1, 16)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\Z")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?(e[+-]?[0-9]+)?\Z")


def _within(value: float, target: float, tolerance: float) -> bool:
    return abs(value - target) <= tolerance * abs(target)


def _read(payload: Mapping[str, Any], text: str) -> float | Verdict:
    """The number that a reader typed, or what to say if it can't be told which one."""
    words = payload["words"]
    plain = re.sub(r"\s+", "", text).replace("−", "-").lower()
    unit = re.sub(r"\s+", "", payload["unit"]).lower()
    if unit and plain.endswith(unit):
        plain = plain[: -len(unit)]
    if not plain:
        return Verdict("unreadable", "", words["empty"])
    said = {"text": f"“{text.strip()}”"}
    if "," in plain:
        if not _THOUSANDS.match(plain):
            return Verdict("unreadable", "", fill(words["comma"], **said))
        plain = plain.replace(",", "")
    if not _NUMBER.match(plain) or not math.isfinite(float(plain)):
        return Verdict("unreadable", "", fill(words["unreadable"], **said))
    return float(plain)


def judge(payload: Mapping[str, Any], answer: str | float) -> Verdict:
    """The verdict on an answer, as typed or as a number; `payload` is a check's.

    In this order: the right answer, a known mistake, the right digits in the wrong place, an answer
    that is only rounded badly, anything else.
    """
    words, target, tolerance = payload["words"], payload["answer"], payload["tolerance"]
    value = _read(payload, answer) if isinstance(answer, str) else float(answer)
    if isinstance(value, Verdict):
        return value
    if _within(value, target, tolerance):
        return Verdict("right", words["right"], payload["right"])
    for mistake in payload["mistakes"]:
        if _within(value, mistake["value"], tolerance):
            return Verdict("mistake", words["wrong"], mistake["hint"])
    for power in _POWERS:
        factor = float(f"1e{power}")
        for name, scaled in (("high", value / factor), ("low", value * factor)):
            if _within(scaled, target, tolerance):
                message = fill(words[name], factor=f"{int(factor):,}")
                return Verdict("scale", words["wrong"], message)
    if _within(value, target, payload["near"] * tolerance):
        return Verdict("near", words["wrong"], fill(words["near"], tolerance=payload["tolerance_text"]))
    return Verdict("generic", words["wrong"], payload["hint"] or words["generic"])


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
    answer: float,
    unit: str = "",
    tolerance: float = 0.01,
    mistakes: Mapping[float, str],
    right: str = "",
    hint: str = "",
    solution: str = "",
    words: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Check:
    """A question whose answer is a number.

    name: lower-case, unique in the book, as "ex-02-rows"; it becomes the element's id. answer: in
    `unit`, better computed than typed. tolerance: relative, both for the answer and for the
    mistakes. mistakes: {wrong answer: hint}, at least two; a hint names the mistake and doesn't give
    the answer away. right: what to say to the right answer. hint: what to say to any other one.
    solution: the way to the answer, shown on demand after one try. words: replacements for
    the check's own words. values: what stands for the names in braces of all these texts. The texts
    are looked up in the reader's language here, so they are plain literals, not f-strings, with
    Unicode for the mathematics. Raises ValueError if an answer could be taken for two things, or if
    something is missing.
    """
    refuse_bad_name(name, question)
    _refuse_bad_mistakes(name, mistakes)
    filled = dict(values or {})
    question, right, hint, solution = (translated(t, **filled) for t in (question, right, hint, solution))
    mistakes = {value: translated(text, **filled) for value, text in mistakes.items()}
    if not 0 < tolerance <= 0.1:
        raise ValueError(f"check {name}: tolerance = {tolerance}: use a share between 0 and 0.1.")
    answer = float(answer)
    wrong = [(float(value), text) for value, text in mistakes.items()]
    for value in (answer, *(v for v, _ in wrong)):
        if not math.isfinite(value):
            raise ValueError(f"check {name}: {value} can't be answered; give finite numbers.")
    if answer == 0:
        raise ValueError(
            f"check {name}: answer = 0: a relative tolerance can't accept it; ask for another number."
        )
    _refuse_overlap(name, answer, wrong, tolerance)
    all_words = {**NUMERIC, **(words or {})}
    exact = f"{number(int(answer) if answer.is_integer() else answer, 4)} {unit}".strip()
    return Check(
        kind="check",
        payload={
            "id": name,
            "question": question,
            "unit": unit,
            "answer": answer,
            "answer_text": fill(all_words["answer"], answer=exact),
            "tolerance": tolerance,
            "tolerance_text": f"{number(100 * tolerance, 1)} %",
            "near": NEAR,
            "mistakes": [{"value": value, "hint": text} for value, text in wrong],
            "right": right,
            "hint": hint,
            "solution": solution,
            "words": all_words,
        },
    )


def _refuse_bad_mistakes(name: str, mistakes: Mapping[float, str]) -> None:
    if len(mistakes) < 2:
        raise ValueError(
            f"check {name}: {len(mistakes)} known mistake(s); list at least two that people make."
        )
    for value, text in mistakes.items():
        if not text.strip():
            raise ValueError(f"check {name}: the hint for {value} is empty; name the mistake behind it.")
    if len(set(mistakes.values())) < len(mistakes):
        raise ValueError(f"check {name}: two mistakes share a hint; each has its own cause, so say which.")


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

    Every right answer must be accepted, every known mistake refused with its own hint, every name
    used once. Payloads come from `collect()`, or from the `data-payload` of executed cells.
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
        for mistake in payload["mistakes"]:
            verdict = judge(payload, mistake["value"])
            if (verdict.kind, verdict.message) != ("mistake", mistake["hint"]):
                found.append(f"{name}: the mistake {mistake['value']} gets {verdict.kind}: {verdict.message}")
    return found

"""What self-checks say by themselves, and the form of a verdict: with a number to type, or options to pick.

Names in braces are filled in when an answer is judged, in Python or on the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from book.say import say

# Round every answer.
FRAME: dict[str, str] = {
    "check": say("Check"),
    "right": say("Right."),
    "wrong": say("Not yet."),
    "show": say("Show the solution"),
    "hide": say("Hide the solution"),
    "answer": say("Answer: {answer}"),
}

# A question with a number.
NUMERIC: dict[str, str] = {
    **FRAME,
    "your_answer": say("Your answer"),
    "near": say("Close, but more than {tolerance} off. Round only at the end."),
    "high": say("The digits are right, but it is {factor} times too large. Look at the unit's prefix."),
    "low": say("The digits are right, but it is {factor} times too small. Look at the unit's prefix."),
    "generic": say("Go through the units once more, then try again."),
    "empty": say("Type a number first."),
    "comma": say("The comma in {text} can't be told for sure. Decimals take a point: 2.7, or 2,730.7."),
    "unreadable": say("{text} is not a number that can be read here. Write it like 2730.7 or 2.73e3."),
    "answer": say("Answer: {answer}."),
    "no_script": say("{question} (Checking an answer needs JavaScript. {answer})"),
}

# A question with a few options.
CHOICE: dict[str, str] = {
    **FRAME,
    "pick": say("Pick one of them first."),
    "no_script": say("{question} {options} (Checking an answer needs JavaScript. {answer})"),
}

Kind = Literal["right", "mistake", "slip", "rounding", "near", "scale", "generic", "unreadable"]

_NAME = re.compile(r"[a-z][a-z0-9-]*\Z")


@dataclass(frozen=True)
class Verdict:
    """What a check says to an answer. status: the word in front of the message, or nothing."""

    kind: Kind
    status: str
    message: str

    @property
    def right(self) -> bool:
        """Whether the answer is accepted."""
        return self.kind == "right"


def fill(template: str, **names: str) -> str:
    """A text like "{a} of {b}" with its names filled in; what has no value goes away, as on the page."""
    return re.sub(r"\{(\w+)\}", lambda m: names.get(m[1], ""), template)


def refuse_bad_name(name: str, question: str) -> None:
    """Raises ValueError for a name that no page can link to, and for a question that asks nothing."""
    if not _NAME.match(name):
        raise ValueError(
            f"check {name!r}: name it in lower-case letters, digits and hyphens, as 'ex-02-rows'."
        )
    if not question.strip():
        raise ValueError(f"check {name}: question is empty; ask something.")


def said_without_script(payload: Mapping[str, Any], **more: str) -> str:
    """The question and its answer, for a page without scripts."""
    return fill(
        payload["words"]["no_script"], question=payload["question"], answer=payload["answer_text"], **more
    )

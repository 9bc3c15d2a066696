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
    "near": say(
        "Close, but more than {tolerance} off. Something small is missing, or was rounded on the way."
    ),
    "high": say("The digits are right, but it is {factor} times too large. Look at the unit's prefix."),
    "low": say("The digits are right, but it is {factor} times too small. Look at the unit's prefix."),
    "point_high": say("The digits are right, but it is {factor} times too large."),
    "point_low": say("The digits are right, but it is {factor} times too small."),
    "about_high": say("It is about {factor} times too large. Look at the unit's prefix."),
    "about_low": say("It is about {factor} times too small. Look at the unit's prefix."),
    "percent": say("The digits are right, as a part of one. The question asks for percent."),
    "empty": say("Type a number first."),
    "comma": say("The comma in {text} can't be told for sure. Decimals take a point: 2.7, or 2,730.7."),
    "unreadable": say("{text} is not a number that can be read here. Write it like 2730.7 or 2.73e3."),
    "unit": say("The unit in {text} doesn't measure what is asked for, which is in {unit}."),
    "no_unit": say("The unit in {text} doesn't belong here: the answer is a bare number."),
    "answer": say("Answer: {answer}."),
    "no_script": say("{question} (Checking an answer needs JavaScript. {answer})"),
}

# The usual slips, each by its class: what to look at, and not which way the answer is off.
SLIPS: dict[str, str] = {
    "two_bytes": say(
        "It is a factor of two. K and V are two tensors, a bf16 number has two bytes, and what is read may "
        "be written as well: which of them counts here?"
    ),
    "two_operations": say(
        "It is a factor of two. A multiply and an add are two operations: were both counted?"
    ),
    "two_time": say(
        "It is a factor of two. A multiply-add is two operations, a bf16 number two bytes, K and V two "
        "tensors: which of them counts here?"
    ),
    "two_rate": say(
        "It is a factor of two. A multiply-add is two operations, a bf16 number two bytes, and a peak with "
        "sparsity is twice the dense one: which of them counts here?"
    ),
    "two_intensity": say(
        "It is a factor of two. A multiply-add is two operations, a bf16 number two bytes, and K and V are "
        "two tensors: which of them counts here?"
    ),
    "two_share": say(
        "It is a factor of two. A multiply-add is two operations, a bf16 number two bytes, and a peak with "
        "sparsity is twice the dense one: which of them counts here?"
    ),
    "two_ratio": say(
        "It is a factor of two. Look for something that is there twice, or that was halved twice."
    ),
    "two_count": say(
        "It is a factor of two. A multiply-add is two operations, a bf16 number two bytes, and K and V are "
        "two tensors: which of them counts here?"
    ),
    "four": say(
        "It is a factor of four. Count the bytes of a number (fp32 has four, bf16 two, FP8 one, int4 half a "
        "byte), and look whether one factor of two went in twice."
    ),
    "bits": say("It is a factor of eight. A byte has eight bits, and links are sold in bits."),
    "eight": say(
        "It is a factor of eight. Look for something that there are eight of, cards or KV heads for one: did "
        "it count where it shouldn't, or was it left out?"
    ),
    "binary": say(
        "A GiB (2³⁰ bytes) in the place of a GB (10⁹ bytes), or of their smaller kin, would give this."
    ),
    "card": say("On the {card} this would be right. Which card is asked about?"),
    "rest": say("That is the other part, what is left of the whole."),
    "added": say("That is how much is added. The question asks for how many times as much."),
    "upside_down": say("Upside down: what you divided by belongs on top."),
    "down": say("Round down: a part of one doesn't fit."),
    "up": say("Round up: a part of one still needs a whole one."),
    "whole": say("The answer is a whole number. Ask which way to round, and why."),
}

# What is said to any other answer.
GENERIC: dict[str, str] = {
    "bytes": say(
        "None of the usual slips. List what is read and what is written, tensor by tensor, and add up."
    ),
    "operations": say(
        "None of the usual slips. Count the multiplications and the additions, product by product."
    ),
    "time": say(
        "None of the usual slips. A time is an amount over a rate: write down which amount, which rate."
    ),
    "rate": say("None of the usual slips. A rate is so much in so long: write down how much, and how long."),
    "intensity": say("None of the usual slips. Count the operations and the bytes apart, and divide last."),
    "share": say("None of the usual slips. Write down what was reached and what could be, and divide last."),
    "ratio": say("None of the usual slips. Write down the two things that are compared, and divide last."),
    "count": say(
        "None of the usual slips. Write the condition as an equation, in letters; put numbers in last."
    ),
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

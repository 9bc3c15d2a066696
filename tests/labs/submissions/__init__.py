"""Forty made submissions of each lab, and what each deserves."""

from __future__ import annotations

from tests.labs.submissions import lab1, lab2
from tests.labs.submissions.made import Case

CLASSES = {lab1.LAB: lab1.cases, lab2.LAB: lab2.cases}
# The one attack that every lab meets in every run: it answers each question twice, first as it likes.
ATTACK = "forges-answers"


def members(lab: str, part: str = "all") -> list[Case]:
    """The class of one lab: "all" of it, a "sample" of it (right, wrong, hostile), or one "attack"."""
    chosen = {
        "all": lambda case: True,
        "sample": lambda case: case.sample,
        "attack": lambda case: case.name == ATTACK,
    }[part]
    return [case for case in CLASSES[lab]() if chosen(case)]

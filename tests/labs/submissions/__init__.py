"""Forty made submissions of each lab, and what each deserves."""

from __future__ import annotations

from tests.labs.submissions import lab1, lab2
from tests.labs.submissions.made import Case

CLASSES = {lab1.LAB: lab1.cases, lab2.LAB: lab2.cases}


def members(lab: str, small: bool = False) -> list[Case]:
    """The class of one lab, or the telling part of it."""
    return [case for case in CLASSES[lab]() if case.quick or not small]

"""One lab as its notebook sees it: set up, check a question, and the numbers of this copy.

from labs.kit import lab2
lab2.LAB.setup(variant=0)
check = lab2.LAB.check
check("lab2-ragged")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labs.kit import here
from labs.kit.question import NotYet, Question, check


@dataclass(frozen=True)
class Lab:
    """name: of the folder and the notebook. numbers(variant) -> what differs between students' copies.

    together: groups of question ids whose kernels are run in the same child processes, because
    starting those takes seconds.
    """

    name: str
    questions: tuple[Question, ...]
    numbers: Callable[[int], Mapping[str, Any]]
    together: tuple[tuple[str, ...], ...] = ()
    _kept: dict[str, Any] = field(default_factory=dict, compare=False)
    _state: dict[str, int] = field(default_factory=lambda: {"variant": 0}, compare=False)

    def setup(self, variant: int = 0) -> here.Here:
        """Say where this runs and what fits here. variant: which numbers this copy has."""
        self._state["variant"] = variant
        return here.look()

    @property
    def mine(self) -> Mapping[str, Any]:
        """The numbers of this copy."""
        return self.numbers(self._state["variant"])

    def check(self, name: str, **options: Any) -> None:
        """Check one question with the names of the caller; raises NotYet with the reason."""
        frame = inspect.currentframe().f_back
        question = find(self.questions, name)
        group = next((group for group in self.together if name in group), ())
        others = [find(self.questions, other) for other in group if other != name]
        check(question, frame.f_globals, self.mine, together=others, kept=self._kept, **options)


def find(questions: Sequence[Question], name: str) -> Question:
    """The question called `name`; NotYet lists the known ones."""
    for question in questions:
        if question.id == name:
            return question
    raise NotYet(f"question = {name!r}: not in this lab; choose from {', '.join(q.id for q in questions)}.")

"""One lab as data, and a notebook in which somebody works on it.

from labs.lab2_linear import LAB

notebook = LAB.start(globals(), variant=0)
check, mine, here = notebook.check, notebook.mine, notebook.here
check("lab2-ragged")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labs.kit import this_machine
from labs.kit.question import KeptRun, NotYet, Question, check
from labs.kit.this_machine import ThisMachine


@dataclass(frozen=True)
class Lab:
    """What a lab is made of; nothing in it changes while somebody works.

    name: of the assignment, its notebook and its downloads, "lab2-linear". questions: in the
    notebook's order, with visible cases; the key is the same lab with hidden ones. numbers(variant)
    -> what differs between students' copies. together: groups of question ids whose kernels are run
    in the same child processes, because starting those takes seconds.
    """

    name: str
    questions: tuple[Question, ...]
    numbers: Callable[[int], Mapping[str, Any]]
    together: tuple[tuple[str, ...], ...] = ()

    def start(self, names: Mapping[str, Any], variant: int = 0) -> Notebook:
        """Open the lab in a notebook: look at the machine, and remember whose names are to be checked.

        names: the notebook's `globals()`; what stands there at the time of a check is what is checked.
        variant: which numbers this copy has.
        """
        return Notebook(self, names, variant, this_machine.look())


@dataclass
class Notebook:
    """A lab at work: whose names are checked, which copy, which machine; and the last runs of its kernels."""

    lab: Lab
    names: Mapping[str, Any]
    variant: int
    here: ThisMachine
    runs: dict[Question, KeptRun] = field(default_factory=dict, repr=False)

    @property
    def mine(self) -> Mapping[str, Any]:
        """The numbers of this copy."""
        return self.lab.numbers(self.variant)

    def check(self, name: str, lab: Lab | None = None, *, seed: int | None = None) -> None:
        """Check one question; raises NotYet with the reason.

        lab: the key, where hidden cases are to be checked; None for the visible ones. seed: of the
        random cases; None for fresh ones.
        """
        lab = lab or self.lab
        question = find(lab.questions, name)
        group = next((group for group in lab.together if name in group), ())
        others = [find(lab.questions, other) for other in group if other != name]
        check(question, self.names, lab.numbers(self.variant), seed, others, self.runs)


def find(questions: Sequence[Question], name: str) -> Question:
    """The question called `name`; NotYet lists the known ones."""
    for question in questions:
        if question.id == name:
            return question
    raise NotYet(f"question = {name!r}: not in this lab; choose from {', '.join(q.id for q in questions)}.")

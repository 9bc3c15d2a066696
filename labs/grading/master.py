"""What the grader takes from a lab's master: the cells to fill in, the points, the digest of it all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from book.portable.dependencies import fingerprint
from labs.kit.blanks import blanks
from labs.releasing.regions import released

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "torch", "triton")
# What a grade depends on, besides its lab; with all that these import.
OWN = ("labs.grading.grade", "labs.grading.submission", "labs.kit.run_submitted_code", "labs.kit.run_kernels")
# Besides a blank, what may stand in place of a solution in a cell that nobody has filled in.
NOTHING = ("...", "pass")


class Assignment(Protocol):
    """As in labs.assignments; a test may bring its own."""

    name: str
    master: Path

    def questions(self) -> object: ...

    def key(self) -> object: ...


@dataclass(frozen=True)
class Master:
    """solutions: source of each solution cell, in order; points: of each test cell; both by grade_id."""

    name: str
    solutions: Mapping[str, str]
    points: Mapping[str, float]


def read(assignment: Assignment) -> Master:
    """The master of a lab. Raises ValueError when a test cell has no points."""
    solutions, points = {}, {}
    # Not with nbformat: importing it takes as long as all the rest of the grader.
    for cell in json.loads(assignment.master.read_text(encoding="utf-8"))["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if about.get("solution"):
            solutions[about["grade_id"]] = "".join(cell["source"])
        elif about.get("grade"):
            if "points" not in about:
                raise ValueError(
                    f"{assignment.master.name}: {about['grade_id']} has no points; give it some."
                )
            points[about["grade_id"]] = float(about["points"])
    return Master(assignment.name, solutions, points)


def is_stub(source: str, solution: str) -> bool:
    """Whether a submitted cell says nothing but what was handed out, comments and spaces aside."""
    return _said(source.splitlines()) == _said(released(solution).splitlines())


def _said(lines: Iterable[str]) -> list[str]:
    words = [" ".join(line.split("#")[0].split()) for line in lines]
    return [line for line in words if line and line not in NOTHING and not blanks(line)]


def digest(assignment: Assignment) -> str:
    """A hash of all that a grade depends on besides the submission: master, key, kit, grader, versions."""
    modules = (assignment.questions().__name__, assignment.key().__name__, *OWN)
    code = "\n".join(f"import {name}" for name in modules)
    versions = [f"{name} {version(name)}" for name in PACKAGES]
    text = assignment.master.read_text(encoding="utf-8")
    return fingerprint([code], ROOT, text, *versions)[:16]

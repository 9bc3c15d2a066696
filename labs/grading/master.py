"""What the grader takes from a lab's master: the cells to fill in, the points, the digest of it all."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from labs.releasing.regions import released

HERE = Path(__file__).resolve().parent
KIT = HERE.parent / "kit"
# A grade depends on these as well; a change of one makes earlier results old.
OWN = ("grade.py", "isolated.py", "master.py", "submission.py", "words.py")
# What may stand in place of a solution in a cell that nobody has filled in.
STUB = re.compile(r"(\.\.\.|pass|raise NotImplementedError(\(.*\))?)\s*(#.*)?$")


class Assignment(Protocol):
    """As in labs.assignments; a test may bring its own."""

    name: str
    master: Path

    def kit(self) -> object: ...

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
    return [line for line in words if line and not STUB.match(line)]


def digest(assignment: Assignment) -> str:
    """A hash of all that a grade depends on besides the submission: kit, key, master, grader."""
    short = assignment.name.partition("-")[0]
    files = {path for path in KIT.glob("*.py") if not re.match(r"lab\d", path.name)}
    for module in (assignment.kit(), assignment.key()):
        path = Path(module.__file__)
        files |= {path, *path.parent.glob(f"{short}*.py"), *path.parent.glob(f"{short}*/*.py")}
    files |= {HERE / name for name in OWN} | {assignment.master}
    made = hashlib.sha256()
    for path in sorted(files, key=lambda one: (one.name, str(one))):
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()[:16]

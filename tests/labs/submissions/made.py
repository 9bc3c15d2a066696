"""How a class is made: students' copies of a lab, filled in, and then changed as people change them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from labs.assignments import Assignment
from labs.release import make
from labs.releasing.regions import HIDDEN, SOLUTION

ROOT = Path(__file__).resolve().parents[3]
EVERY = "*"  # every question that isn't named


@dataclass(frozen=True)
class Places:
    """What an attacker would like to reach: all outside any sandbox.

    canary: a folder that nobody may see; others: the class's submissions; grades: the folder of the grades.
    port: where something listens on this machine.
    """

    canary: Path
    others: Path
    grades: Path
    port: int = 0


class Copy:
    """A student's notebook with every solution in place, as JSON, to be changed."""

    def __init__(self, notebook: Mapping[str, Any], blanks: Mapping[str, str], places: Places):
        self.notebook: dict[str, Any] = copy.deepcopy(dict(notebook))
        self.blanks, self.places = blanks, places

    @property
    def cells(self) -> list[dict[str, Any]]:
        return self.notebook["cells"]

    def cell(self, name: str) -> dict[str, Any]:
        """The solution cell with this grade_id."""
        for cell in self.cells:
            told = cell["metadata"].get("nbgrader", {})
            if told.get("grade_id") == name and told.get("solution"):
                return cell
        raise KeyError(name)

    def source(self, name: str) -> str:
        return self.cell(name)["source"]

    def set(self, name: str, source: str) -> None:
        """Put other code under the cell's first line, which says which cell it is."""
        first = self.source(name).split("\n")[0]
        self.cell(name)["source"] = f"{first}\n{source.strip()}\n"

    def swap(self, name: str, *pairs: tuple[str, str]) -> None:
        """Replace pieces of a cell; each must be there, so that a case keeps up with its master."""
        text = self.source(name)
        for old, new in pairs:
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new)
        self.cell(name)["source"] = text

    def before(self, name: str, source: str) -> None:
        """Put lines above all code of a solution cell: if they fail, nothing of it is defined."""
        first, _, rest = self.source(name).partition("\n")
        self.cell(name)["source"] = f"{first}\n{source.strip()}\n\n\n{rest}"

    def after(self, name: str, source: str) -> None:
        """Add lines to the end of a solution cell."""
        self.cell(name)["source"] += f"\n\n{source.strip()}\n"

    def own(self, source: str) -> None:
        """Add a cell of the student's own near the top."""
        self.cells.insert(
            3, {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "id": "own"}
        )

    def bytes(self, **options: Any) -> bytes:
        return json.dumps(self.notebook, ensure_ascii=False, indent=1, **options).encode("utf-8")


Made = bytes | Mapping[str, bytes] | None


@dataclass(frozen=True)
class Case:
    """One submission of the class, and what it deserves.

    make: changes the copy, and may return the file's bytes, or several files by name. wrong: a piece of the
    comment by question (EVERY for the others); all other questions have full points. notes: pieces that the
    notes must hold. sample: one of the few that stand for the class in `make test`.
    """

    name: str
    make: Callable[[Copy], Made]
    wrong: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sample: bool = False

    def lost(self, question: str) -> str | None:
        """The piece of a comment that goes with no points; None where all points are deserved."""
        return self.wrong.get(question, self.wrong.get(EVERY))


def changed(name: str, cell: str, *pairs: tuple[str, str], **rest: Any) -> Case:
    """A right submission with pieces of one cell replaced."""
    return Case(name, lambda made: made.swap(cell, *pairs), **rest)


@dataclass(frozen=True)
class Released:
    """solved: the student's copy with the master's solutions. blanks: its answer cells as handed out."""

    solved: Mapping[str, Any]
    blanks: Mapping[str, str]


def release(assignment: Assignment) -> Released:
    """What students of this lab get, filled in."""
    master = nbformat.read(assignment.master, as_version=4)
    student = json.loads(make(assignment).student)
    answers = {
        cell.metadata.nbgrader.grade_id: without_marks(cell.source)
        for cell in master.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    blanks = {}
    for cell in student["cells"]:
        cell["source"] = "".join(cell["source"])
        told = cell["metadata"].get("nbgrader", {})
        if told.get("solution"):
            blanks[told["grade_id"]] = cell["source"]
            cell["source"] = answers[told["grade_id"]]
    return Released(student, blanks)


def without_marks(source: str) -> str:
    """A master's cell as a student would have filled it in."""
    marks = [f"### {word} {kind}" for word in ("BEGIN", "END") for kind in (SOLUTION, HIDDEN)]
    return "\n".join(line for line in source.split("\n") if line.strip() not in marks)


def write(cases: Sequence[Case], released: Released, lab: str, places: Places) -> None:
    """Put the class's files where nbgrader would collect them: <student>/<lab>.ipynb."""
    for case in cases:
        made = Copy(released.solved, released.blanks, places)
        files = case.make(made)
        if files is None:
            files = made.bytes()
        if isinstance(files, bytes):
            files = {f"{lab}.ipynb": files}
        for at, (name, data) in enumerate(files.items()):
            path = places.others / case.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            _age(path, len(files) - at)


def _age(path: Path, minutes: int) -> None:
    """Of several files the last is the newest."""
    then = path.stat().st_mtime - 60 * minutes
    os.utime(path, (then, then))

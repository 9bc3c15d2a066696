"""The grades on disk: one JSON file a student, whole or not there. A class is resumed from them."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kernels.evidence.child_process import write_atomically
from labs.grading.grade import Grade, Score

LONGEST_NAME = 100  # characters of a file name


@dataclass(frozen=True)
class Result:
    """What is kept of one student. basis: of what the grade was made, to see that it still holds.

    file: as it was called, for people; handed_in and graded_at: seconds since 1970.
    """

    student: str
    grade: Grade
    basis: Mapping[str, Any]
    file: str = ""
    handed_in: float = 0.0
    graded_at: float = 0.0
    name: str = ""


def place(folder: Path, student: str) -> Path:
    """The file of one student. Any id makes a name that every file system takes."""
    name = quote(student, safe=" @+,()")
    if len(name) > LONGEST_NAME or re.match(r"\.|\s", name):
        name = f"{name.strip('. ')[:60]}-{hashlib.sha256(student.encode()).hexdigest()[:12]}"
    return folder / f"{name}.json"


def save(folder: Path, result: Result) -> None:
    """Write one result; a reader, or a machine that loses power, never sees half of it."""
    about = asdict(result) | {"graded_at": result.graded_at or time.time()}
    write_atomically(place(folder, result.student), json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> Result | None:
    """The result in a file; None if there is none, or none that can be used."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        grade = about.pop("grade")
        scores = tuple(Score(**score) for score in grade.pop("scores"))
        grade["notes"], grade["problems"] = tuple(grade["notes"]), tuple(grade["problems"])
        return Result(grade=Grade(scores=scores, **grade), **about)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def load_all(folder: Path) -> dict[str, Result]:
    """Every result of a class, by student."""
    found = (load(path) for path in sorted(folder.glob("*.json")))
    return {result.student: result for result in found if result is not None}

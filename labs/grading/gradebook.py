"""The same grades in nbgrader: its gradebook, and notebooks from which it makes feedback.

The folder of grades is then a course of nbgrader's: `nbgrader export` and `nbgrader generate_feedback`
work in it, and its formgrader shows the class. Written again, nothing is there twice, and what a person
entered by hand (a manual score, a comment) stays.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
    SaveCells,
)
from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from book.say import say
from kernels.evidence.child_process import write_atomically
from labs.grading import master
from labs.grading.classroom import Class
from labs.grading.report import told
from labs.grading.results import Result
from labs.grading.submission import Submission, read
from labs.kit.question import Question
from labs.releasing.settings import SETTINGS, config_file

NOT_HANDED_IN = say("# This cell was not handed in.")
# As nbgrader's generate_assignment does it; the last two take place after the cells were saved.
SAVED = (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums, SaveCells)
SHOWN = (ClearHiddenTests, ComputeChecksums)


class OtherGradebook(RuntimeError):
    """gradebook.db holds another version of the lab, with grades in it."""


def write(course: Class, results: Mapping[str, Result], paths: Mapping[str, Path] | None = None) -> Path:
    """Put the results into OUT/gradebook.db and OUT/autograded; returns the gradebook's path.

    paths: the submissions by student, for feedback notebooks that show them. Raises OtherGradebook.
    """
    lab = course.assignment.name
    path = course.out / "gradebook.db"
    settings = course.out / "nbgrader_config.py"
    if not settings.exists():
        write_atomically(settings, config_file())
    address = f"sqlite:///{path.resolve()}"
    with _quiet(), Gradebook(address) as book:
        book.update_or_create_assignment(lab)
    shown = _save_cells(course.assignment, address, path)
    comments_at = _comments_at(course.assignment)
    with _quiet(), Gradebook(address) as book:
        for student, result in results.items():
            _save_grades(book, lab, result, comments_at)
            if paths and student in paths:
                folder = course.out / "autograded" / student / lab
                feedback = _feedback(shown, result, read(paths[student], course.assignment))
                write_atomically(folder / f"{lab}.ipynb", nbformat.writes(feedback) + "\n")
    return path


def _save_cells(assignment: master.Assignment, address: str, path: Path) -> NotebookNode:
    """Tell the gradebook which cells the lab has; returns the notebook as students have it."""
    lab = assignment.name
    notebook = nbformat.read(assignment.master, as_version=4)
    config = Config({name: dict(values) for name, values in SETTINGS.items()})
    resources = {"nbgrader": {"notebook": lab, "assignment": lab, "db_url": address}}
    try:
        for step in (*SAVED, *SHOWN):
            with _quiet():
                notebook, resources = step(config=config, enabled=True).preprocess(notebook, resources)
    except RuntimeError as error:
        raise OtherGradebook(
            f"{path} holds another version of {lab} ({error}). Rename it; it is made anew from the "
            "grades, and only scores that were entered by hand must be entered again."
        ) from None
    return notebook


def _comments_at(assignment: master.Assignment) -> dict[str, str]:
    """{question: the last solution cell that it needs}: nbgrader has comments on solutions only."""
    solutions = list(master.read(assignment).solutions)
    found = {}
    questions: tuple[Question, ...] = assignment.key().LAB.questions
    for question in questions:
        needed = [name for name in solutions if name in question.needs]
        if needed:
            found[question.id] = needed[-1]
    return found


def _save_grades(book: Gradebook, lab: str, result: Result, comments_at: Mapping[str, str]) -> None:
    student = result.student
    names = result.name.split(" ", 1) if result.name else []
    named = dict(zip(("first_name", "last_name"), names, strict=False))
    book.update_or_create_student(student, **named)
    when = datetime.datetime.fromtimestamp(result.handed_in, datetime.UTC).replace(tzinfo=None)
    book.update_or_create_submission(lab, student, timestamp=when)
    comments: dict[str, list[str]] = dict.fromkeys(comments_at.values(), ()) | {}
    for score in result.grade.scores:
        grade = book.find_grade(score.question, lab, lab, student)
        grade.auto_score = None if score.look else score.points
        grade.needs_manual_grade = score.look or grade.manual_score is not None
        at = comments_at.get(score.question)
        if at and (score.points < score.most or score.comment):
            comments[at] = [*comments[at], told(score)]
    notes = [say("Note: {note}", note=note) for note in result.grade.notes]
    for place, (name, lines) in enumerate(comments.items()):
        comment = book.find_comment(name, lab, lab, student)
        comment.auto_comment = "\n\n".join([*(notes if place == 0 else []), *lines]) or None
    book.db.commit()


def _feedback(shown: NotebookNode, result: Result, submission: Submission) -> NotebookNode:
    """The lab with the student's cells in it, and under each test what came of it."""
    notebook = nbformat.from_dict(shown)
    scores = {score.question: score for score in result.grade.scores}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = submission.cells.get(name, NOT_HANDED_IN)
        elif name in scores:
            cell.outputs = [new_output("stream", name="stdout", text=told(scores[name]).rstrip(": ") + "\n")]
    return notebook


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """nbgrader and alembic say each step; what goes wrong comes as an exception.

    nbgrader calls `alembic` by its name, which is found in an environment that isn't activated only so.
    """
    logs, path = logging.root.manager.disable, os.environ.get("PATH", "")
    logging.disable(logging.WARNING)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # of nbgrader's own queries
            yield
    finally:
        logging.disable(logs)
        os.environ["PATH"] = path

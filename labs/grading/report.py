"""The grades of a class as a spreadsheet, and as a summary on the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from book.say import say
from kernels.evidence.child_process import write_atomically
from labs.grading import master
from labs.grading.classroom import Done
from labs.grading.grade import Grade, Score
from labs.grading.results import Result
from labs.grading.safe_text import cell, sentence, several

NOTHING = say("Nothing was handed in.")
BOM = "\ufeff"  # a spreadsheet takes the file for UTF-8 with it


def write_csv(
    path: Path,
    assignment: master.Assignment,
    results: Mapping[str, Result],
    roster: Mapping[str, str] | None = None,
    failed: Mapping[str, str] | None = None,
) -> None:
    """One row a student, those of the roster who handed nothing in included.

    Columns: student, name, total, each question's points ("lab2-ragged (of 10)"), comments (what each
    lost point was for, then what was odd), needs a look (why), file.
    """
    points = master.read(assignment).points
    header = ["student", "name", f"total (of {sum(points.values()):g})"]
    header += [f"{name} (of {most:g})" for name, most in points.items()]
    header += ["comments", "needs a look", "file"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    roster, failed = roster or {}, failed or {}
    for student in sorted({*results, *roster, *failed}):
        name = roster.get(student, "")
        if student in results:
            row = _row(results[student], name, list(points))
        elif student in failed:
            row = [student, name, "", *[""] * len(points), say("Not graded yet."), failed[student], ""]
        else:
            row = [student, name, "0", *["0"] * len(points), NOTHING, "", ""]
        writer.writerow([cell(one) for one in row])
    write_atomically(path, BOM + out.getvalue())


def _row(result: Result, name: str, questions: list[str]) -> list[str]:
    grade = result.grade
    scores = {score.question: score for score in grade.scores}
    return [
        result.student,
        name or result.name,
        f"{grade.total:g}",
        *(f"{scores[q].points:g}" if q in scores else "" for q in questions),
        comments(grade),
        " ".join(map(sentence, [*_looks(grade), *grade.problems])),
        result.file,
    ]


def comments(grade: Grade) -> str:
    """All that a student is told, as text of a few lines; what is the same for many questions once."""
    said: dict[str, list[str]] = {}
    for score in grade.scores:
        if score.points < score.most:
            said.setdefault(score.comment, []).append(_points(score))
    lines = [f"{several(questions)}: {comment}" for comment, questions in said.items()]
    lines += [say("Note: {note}", note=note) for note in grade.notes]
    return "\n".join(lines) or say("All right.")


def told(score: Score) -> str:
    """One question's line."""
    return f"{_points(score)}: {score.comment}"


def _points(score: Score) -> str:
    return f"{score.question} ({score.points:g} of {score.most:g})"


def _looks(grade: Grade) -> list[str]:
    names = [score.question for score in grade.scores if score.look]
    return [f"Grade {', '.join(names)} by hand"] if names else []


def summary(assignment: master.Assignment, done: Done, roster: Mapping[str, str] | None = None) -> str:
    """How the class did, which questions were hard, and who needs a look."""
    points = master.read(assignment).points
    grades = [result.grade for result in done.results.values()]
    lines = [f"{assignment.name}: {len(grades)} graded, {len(done.graded)} of them now."]
    if grades:
        mean = sum(grade.total for grade in grades) / len(grades)
        lines.append(f"Mean: {mean:.1f} of {sum(points.values()):g} points.")
        width = max(map(len, points))
        for name, most in points.items():
            full = sum(score.points == most for g in grades for score in g.scores if score.question == name)
            share = full / len(grades)
            lines.append(
                f"  {name:<{width}}  {most:>4g} points  {share:>4.0%} in full  {'#' * round(20 * share)}"
            )
    nothing = sorted((roster or {}).keys() - done.results.keys() - (done.failed or {}).keys())
    if nothing:
        lines.append(f"Nothing handed in by {len(nothing)}: {', '.join(nothing)}.")
    looks = {s: r.grade for s, r in done.results.items() if r.grade.needs_look}
    if looks:
        lines += ["", f"!! {len(looks)} NEED A LOOK:"]
        for student, grade in looks.items():
            lines += [f"  {student}: {sentence(why)}" for why in [*_looks(grade), *grade.problems]]
    if done.failed:
        lines += ["", f"!! {len(done.failed)} NOT GRADED, run the same command again:"]
        lines += [f"  {student}: {sentence(why)}" for student, why in done.failed.items()]
    return "\n".join(lines)

"""The same grades in nbgrader: gradebook, export and feedback, without a browser or a server."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import ExportApp, GenerateFeedbackApp

from labs.grading import classroom, gradebook
from labs.grading.classroom import Class
from labs.grading.collecting import collect
from tests.labs import toy


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course folder with three students' grades in it: (class, results, files by student)."""
    folder = tmp_path_factory.mktemp("course")
    lab = toy.assignment(folder / "master")
    toy.hand_in(folder / "in" / "ada.ipynb")
    toy.hand_in(folder / "in" / "bob.ipynb", toy.BLANKS)
    script = "size = '<script>alert(1)</script>'"
    toy.hand_in(
        folder / "in" / "eve.ipynb", toy_values=script, toy_calls="def twice(x): raise OSError('<b>')"
    )
    made = Class(lab, folder / "out", seed=3, roster={"ada": "Ada Lovelace", "bob": "", "eve": ""})
    handed_in = collect(folder / "in", lab.name)
    done = classroom.run(made, handed_in, toy.pretend, tell=lambda line: None)
    files = {one.student: one.path for one in handed_in}
    gradebook.write(made, done.results, files)
    return made, done.results, files


@pytest.fixture
def book(course):
    with Gradebook(f"sqlite:///{course[0].out / 'gradebook.db'}") as opened:
        yield opened


def _score(book, question, student):
    return book.find_grade(question, toy.NAME, toy.NAME, student)


def test_scores_and_comments(book):
    assert book.find_submission(toy.NAME, "ada").score == 5
    assert book.find_submission(toy.NAME, "ada").max_score == 10
    assert [_score(book, q, "bob").auto_score for q in toy.POINTS] == [0, 0, 0]
    comment = book.find_comment("toy-calls", toy.NAME, toy.NAME, "eve").comment
    assert comment == "toy-twice (0 of 3): OSError: ‹b> (line 1 of toy-calls)."
    assert book.find_comment("toy-values", toy.NAME, toy.NAME, "ada").comment is None
    assert book.find_student("ada").last_name == "Lovelace"
    assert book.find_grade_cell("toy-copied", toy.NAME, toy.NAME).max_score == 5


def test_written_again_nothing_is_there_twice_and_a_manual_score_stays(course, book):
    made, results, _ = course
    _score(book, "toy-twice", "bob").manual_score = 1
    book.db.commit()
    gradebook.write(made, results)
    with Gradebook(f"sqlite:///{made.out / 'gradebook.db'}") as again:
        assert len(again.students) == 3 and len(again.assignment_submissions(toy.NAME)) == 3
        assert _score(again, "toy-twice", "bob").score == 1
        _score(again, "toy-twice", "bob").manual_score = None
        again.db.commit()


def test_what_needs_a_look_waits_for_a_person(course):
    made, results, _ = course
    first, *rest = results["ada"].grade.scores
    looked = replace(
        results["ada"], grade=replace(results["ada"].grade, scores=(replace(first, look=True), *rest))
    )
    gradebook.write(made, {"ada": looked})
    with Gradebook(f"sqlite:///{made.out / 'gradebook.db'}") as book:
        assert _score(book, "toy-bytes", "ada").needs_manual_grade
    gradebook.write(made, {"ada": results["ada"]})
    with Gradebook(f"sqlite:///{made.out / 'gradebook.db'}") as book:
        assert not _score(book, "toy-bytes", "ada").needs_manual_grade


def test_nbgrader_exports_the_grades(course, monkeypatch):
    monkeypatch.chdir(course[0].out)
    _nbgrader(ExportApp)
    with (course[0].out / "grades.csv").open(encoding="utf-8") as table:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(table)}
    assert scores == {"ada": 5, "bob": 0, "eve": 0}


def test_nbgrader_makes_feedback(course, monkeypatch):
    monkeypatch.chdir(course[0].out)
    _nbgrader(GenerateFeedbackApp, toy.NAME)
    page = (course[0].out / "feedback" / "eve" / toy.NAME / f"{toy.NAME}.html").read_text(encoding="utf-8")
    assert "toy-twice (0 of 3): OSError: ‹b&gt;" in page
    assert "<script>alert(1)" not in page
    assert "HIDDEN TESTS" not in page and "key.check" not in page


def test_another_version_of_the_lab_does_not_overwrite_grades(course, tmp_path):
    made, results, _ = course
    lab = toy.assignment(tmp_path)
    lab.master.write_text(
        lab.master.read_text(encoding="utf-8").replace("toy-calls", "toy-called"), encoding="utf-8"
    )
    with pytest.raises(gradebook.OtherGradebook, match="holds another version of toy-lab"):
        gradebook.write(replace(made, assignment=lab), results)


def _nbgrader(application, *words):
    """Run one of nbgrader's commands in this process."""
    application.clear_instance()
    try:
        app = application.instance()
        app.initialize([*words, "--log-level=ERROR"])
        app.start()
    finally:
        application.clear_instance()

"""A class is graded once, whatever happens to the grader; its spreadsheet is safe to open."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from labs import assignments
from labs.grading import __main__ as command
from labs.grading import classroom, master, report, results, sandbox, sandboxed_programs
from labs.grading.classroom import AlreadyRunning, Class
from labs.grading.collecting import collect
from labs.grading.running_program import SandboxFailed
from labs.grading.variants import identity, read_secret, roster, variant_of
from tests.labs import grade_toy, toy

ROOT = Path(__file__).resolve().parents[2]
SECRET = "a secret of this course"


@pytest.fixture
def lab(tmp_path):
    return toy.assignment(tmp_path / "master")


def _class(tmp_path, lab, **more):
    return Class(lab, tmp_path / "out", seed=3, **more)


def _run(course, folder, runner=toy.pretend, **more):
    handed_in = collect(folder, course.assignment.name, course.roster)
    return classroom.run(course, handed_in, runner, tell=lambda line: None, **more)


def _hand_in(folder, *students, **changed):
    for student in students:
        source = toy.RIGHT["toy-values"] + f"# who {student}\n"
        toy.hand_in(folder / f"{student}.ipynb", **({"toy_values": source} | changed))


def _times(course):
    return {path.name: path.stat().st_mtime_ns for path in course.students.glob("*.json")}


# ------------------------------------------------------------------------------- resuming a class


def test_a_second_run_grades_nobody_twice(tmp_path, lab):
    _hand_in(tmp_path / "in", "ada", "bob")
    course = _class(tmp_path, lab)
    assert set(_run(course, tmp_path / "in").graded) == {"ada", "bob"}
    before = _times(course)
    done = _run(course, tmp_path / "in", runner=None)
    assert done.graded == () and done.results.keys() == {"ada", "bob"} and _times(course) == before


def test_what_changed_is_graded_again(tmp_path, lab):
    folder = tmp_path / "in"
    _hand_in(folder, "ada", "bob", "cyd")
    course = _class(tmp_path, lab)
    _run(course, folder)
    _hand_in(folder, "bob", toy_calls="def twice(x): return 0")
    done = _run(course, folder)
    assert done.graded == ("bob",) and done.results["bob"].grade.total == 2
    assert _run(course, folder, regrade=["CYD "]).graded == ("cyd",)
    assert len(_run(course, folder, regrade=["all"]).graded) == 3
    assert len(_run(replace(course, seed=4), folder).graded) == 3
    lab.master.write_text(
        lab.master.read_text(encoding="utf-8").replace("# A toy", "# Another toy"), encoding="utf-8"
    )
    assert len(_run(replace(course, seed=4), folder).graded) == 3


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"student": "ada"}', '{"student": "ada", "grade": 3}'])
def test_half_a_result_is_none(tmp_path, lab, damage):
    _hand_in(tmp_path / "in", "ada")
    course = _class(tmp_path, lab)
    _run(course, tmp_path / "in")
    kept = results.place(course.students, "ada")
    kept.write_text(damage, encoding="utf-8")
    assert _run(course, tmp_path / "in").graded == ("ada",)


def test_a_result_comes_back_as_it_was(tmp_path, lab):
    _hand_in(tmp_path / "in", "ada")
    course = _class(tmp_path, lab)
    done = _run(course, tmp_path / "in")
    assert results.load_all(course.students) == done.results


def test_killed_in_mid_class_it_goes_on_without_loss_and_without_grading_twice(tmp_path, monkeypatch):
    students = [f"s{number:02}" for number in range(12)]
    _hand_in(tmp_path / "in", *students)
    kept = tmp_path / "out" / toy.NAME / "students"
    command_line = [sys.executable, "-m", "tests.labs.grade_toy", str(tmp_path), "0.25"]
    grader = subprocess.Popen(command_line, cwd=ROOT, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(list(kept.glob("*.json"))) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    grader.kill()
    assert grader.wait() == -9
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert 5 <= len(before) < 12
    monkeypatch.setattr(master, "digest", lambda assignment: grade_toy.SAME)
    summary = grade_toy.grade(tmp_path, 0)
    now = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert before.items() <= now.items() and len(now) == 12
    assert f"{toy.NAME}: 12 graded" in summary
    begun = (tmp_path / "log").read_text(encoding="utf-8").split()
    # Only the two that were being graded when the process died were begun a second time.
    assert set(begun) == set(students) and len(begun) <= 12 + classroom.JOBS
    with (tmp_path / "out" / toy.NAME / "grades.csv").open(encoding="utf-8-sig") as table:
        assert [row["student"] for row in csv.DictReader(table)] == students


def test_two_graders_at_once(tmp_path):
    with classroom.locked(tmp_path, "toy-lab"):
        second = classroom.locked(tmp_path, "toy-lab")
        with pytest.raises(AlreadyRunning, match="Another grader is at work on toy-lab"), second:
            pass
        with classroom.locked(tmp_path, "other-lab"):
            pass
    with classroom.locked(tmp_path, "toy-lab"):
        pass


def test_the_seed_stays_until_another_is_wanted(tmp_path):
    first = classroom.seed_of(tmp_path, "toy-lab")
    assert classroom.seed_of(tmp_path, "toy-lab") == first
    assert classroom.seed_of(tmp_path, "toy-lab", 7) == 7 == classroom.seed_of(tmp_path, "toy-lab")
    with pytest.raises(ValueError, match="seed = -1"):
        classroom.seed_of(tmp_path, "toy-lab", -1)


# ------------------------------------------------------------------------------------- failures


def test_a_sandbox_that_fails_once_is_asked_again(tmp_path, lab):
    _hand_in(tmp_path / "in", "ada")
    calls = []

    def runner(program, request):
        calls.append(program)
        if len(calls) == 1:
            raise SandboxFailed("busy")
        return toy.pretend(program, request)

    assert _run(_class(tmp_path, lab), tmp_path / "in", runner).graded == ("ada",)


def test_a_sandbox_that_stays_broken_leaves_no_grade(tmp_path, lab):
    _hand_in(tmp_path / "in", "ada", "bob")

    def runner(program, request):
        if "bob" in request["cells"][0]["source"]:
            raise SandboxFailed("no namespaces")
        return toy.pretend(program, request)

    course = _class(tmp_path, lab)
    done = _run(course, tmp_path / "in", runner)
    assert done.graded == ("ada",) and "no namespaces" in done.failed["bob"]
    assert "1 NOT GRADED" in report.summary(lab, done)
    report.write_csv(course.folder / "grades.csv", lab, done.results, None, done.failed)
    assert "Not graded yet." in (course.folder / "grades.csv").read_text(encoding="utf-8")
    assert _run(course, tmp_path / "in").graded == ("bob",)


def test_a_file_that_cannot_be_opened_stops_nobody(tmp_path, lab):
    _hand_in(tmp_path / "in", "ada", "bob")
    handed_in = collect(tmp_path / "in", toy.NAME)
    (tmp_path / "in" / "bob.ipynb").unlink()
    done = classroom.run(_class(tmp_path, lab), handed_in, toy.pretend, tell=lambda line: None)
    assert done.graded == ("ada",) and "bob" in done.failed


def test_a_judge_that_raises_is_loud_in_the_summary(tmp_path, lab):
    def judge(*arguments):
        raise KeyError("w")

    questions = (replace(toy.QUESTIONS[0], judge=judge), *toy.QUESTIONS[1:])
    broken = replace(lab, lab=replace(lab.lab, questions=questions))
    _hand_in(tmp_path / "in", "ada", "bob")
    done = _run(_class(tmp_path, broken), tmp_path / "in")
    assert len(done.graded) == 2
    said = report.summary(broken, done)
    assert "!! 2 NEED A LOOK" in said and "ada: Grade toy-bytes by hand." in said


def test_a_grade_outlives_its_file(tmp_path, lab):
    _hand_in(tmp_path / "in", "ada", "bob")
    course = _class(tmp_path, lab)
    _run(course, tmp_path / "in")
    (tmp_path / "in" / "bob.ipynb").unlink()
    done = _run(course, tmp_path / "in")
    assert done.results["bob"].grade.total == 5 and done.results["bob"].grade.needs_look
    assert not done.results["ada"].grade.needs_look


# ---------------------------------------------------------------------------- who handed in what


@pytest.mark.parametrize(
    "path, student",
    [
        ("submitted/ada/toy-lab/toy-lab.ipynb", "ada"),
        ("ada/toy-lab/toy-lab.ipynb", "ada"),
        ("ada/anything at all.ipynb", "ada"),
        ("toy-lab/ada/x.ipynb", "ada"),
        ("ada.ipynb", "ada"),
        ("ada_toy-lab.ipynb", "ada"),
        ("toy-lab-ada (1).ipynb", "ada"),
        ("ada_toy-lab (2).ipynb", "ada"),
        ("lovelaceada_12345_67890_toy-lab.ipynb", "lovelaceada_12345"),
        ("lovelaceada_LATE_12345_67890_toy-lab-1.ipynb", "lovelaceada_12345"),
        ("Ada Lovelace_123_assignsubmission_file/x.ipynb", "Ada Lovelace"),
    ],
)
def test_layouts(tmp_path, path, student):
    toy.hand_in(tmp_path / path)
    assert [one.student for one in collect(tmp_path, "toy-lab")] == [student]


@pytest.mark.parametrize(
    "path", ["12345.ipynb", "ADA/x.ipynb", "ada_12345_67890_toy-lab.ipynb", "x_12345_1_toy-lab.ipynb"]
)
def test_the_roster_recognises_its_students(tmp_path, path):
    toy.hand_in(tmp_path / path)
    (one,) = collect(tmp_path, "toy-lab", {"12345": "", "Ada": "Ada Lovelace"})
    assert one.student in ("12345", "Ada")


def test_of_two_files_the_newest_counts(tmp_path):
    for name, age in (("ada.ipynb", 0), ("Ada/x.ipynb", 50), ("ada_toy-lab.ipynb", 100)):
        os.utime(toy.hand_in(tmp_path / name), (1e9 - age, 1e9 - age))
    (one,) = collect(tmp_path, "toy-lab")
    assert one.path.name == "ada.ipynb"
    assert one.notes[0].startswith("3 files were handed in; the newest one counts")


def test_what_is_no_submission_is_left_alone(tmp_path):
    for name in (
        "ada/.ipynb_checkpoints/x-checkpoint.ipynb",
        "__MACOSX/ada/._x.ipynb",
        "ada/lab1-other/lab1-other.ipynb",
        "bob_lab1-other.ipynb",
        "out/autograded/ada/toy-lab/toy-lab.ipynb",
        "ada/notes.txt",
    ):
        toy.hand_in(tmp_path / name)
    (tmp_path / "cyd.ipynb").symlink_to(tmp_path / "bob_lab1-other.ipynb")
    assert collect(tmp_path, "toy-lab", None, ["lab1-other"], tmp_path / "out") == []


def test_no_folder(tmp_path):
    with pytest.raises(ValueError, match="Unpack it first"):
        collect(tmp_path / "all.zip", "toy-lab")


@pytest.mark.parametrize(
    "student", ["a/../b", "..", "x" * 300, ".hidden", "Ødegård, K. (2)", "=1", "a\nb", " "]
)
def test_any_id_makes_a_file_name(tmp_path, student):
    path = results.place(tmp_path, student)
    path.write_text("{}", encoding="utf-8")
    assert path.parent == tmp_path and list(tmp_path.glob("*.json")) == [path]


# -------------------------------------------------------------------------------- the spreadsheet


def test_the_spreadsheet(tmp_path, lab):
    folder = tmp_path / "in"
    _hand_in(folder, "ada", "=1+1")
    _hand_in(folder, "bob", toy_calls="def twice(x): raise ValueError('a, \"b\"')")
    course = _class(tmp_path, lab, roster={"ada": "Ada, Countess", "bob": "@bob", "zoë": "Zoë", "=1+1": ""})
    done = _run(course, folder)
    path = course.folder / "grades.csv"
    report.write_csv(path, lab, done.results, course.roster, done.failed)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as table:
        rows = {row["student"]: row for row in csv.DictReader(table)}
    assert list(rows) == ["'=1+1", "ada", "bob", "zoë"]
    assert rows["bob"]["name"] == "'@bob" and rows["ada"]["name"] == "Ada, Countess"
    assert rows["ada"]["total (of 10)"] == "5" and rows["ada"]["toy-twice (of 3)"] == "3"
    assert rows["zoë"]["total (of 10)"] == "0" and rows["zoë"]["comments"] == report.NOTHING
    assert 'toy-twice (0 of 3): ValueError: a, "b"' in rows["bob"]["comments"]
    for row in rows.values():
        assert not any(field.startswith(("=", "+", "-", "@")) for field in row.values())
    said = report.summary(lab, done, course.roster)
    assert "Mean: 4.0 of 10 points." in said and "Nothing handed in by 1: zoë." in said
    assert "toy-twice      3 points   67% in full" in said


# -------------------------------------------------------------------------------------- variants


def test_a_variant_is_stable_secret_and_of_the_student():
    assert variant_of("ada", SECRET) == variant_of(" ADA", SECRET) == 946_574
    assert len({variant_of(f"s{n}", SECRET) for n in range(500)}) > 490
    assert variant_of("ada", SECRET) != variant_of("ada", SECRET + "!")
    assert variant_of("ada", "") == 0
    with pytest.raises(ValueError, match="it is empty"):
        identity("  ")


def test_the_grader_takes_the_variant_from_the_secret_not_from_the_notebook(tmp_path, lab):
    own = toy.numbers(variant_of("ada", SECRET))["size"]
    _hand_in(tmp_path / "in", "ada", toy_values=f"size = {own}")
    _hand_in(tmp_path / "in", "bob", toy_values="LAB.setup(variant=0)\nsize = 16")
    course = _class(tmp_path, lab, secret=SECRET, roster={"ada": "", "bob": ""})
    done = _run(course, tmp_path / "in").results
    assert {s: r.grade.scores[0].points for s, r in done.items()} == {"ada": 2, "bob": 0}
    assert done["ada"].grade.variant == variant_of("ada", SECRET)


def test_who_is_not_on_the_roster_needs_a_look(tmp_path, lab):
    _hand_in(tmp_path / "in", "ada", "adda")
    course = _class(tmp_path, lab, secret=SECRET, roster={"ada": ""})
    done = _run(course, tmp_path / "in").results
    assert not done["ada"].grade.needs_look
    assert "adda is not on the roster. Its variant" in done["adda"].grade.problems[0]


@pytest.mark.parametrize(
    "text, students",
    [
        ("ada\nbob\n", {"ada": "", "bob": ""}),
        ("\ufeffname;Student ID\nAda L;ada\n;bob\n\n", {"ada": "Ada L", "bob": ""}),
        ("email,Full  Name\na@b.c,Ada\n", {"a@b.c": "Ada"}),
    ],
)
def test_rosters(tmp_path, text, students):
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding="utf-8")
    assert roster(path) == students


@pytest.mark.parametrize(
    "text, said", [("", "names no students"), ("a,b\nc,d\n", "no column"), ("id\nada\nADA\n", "line 3")]
)
def test_rosters_that_are_none(tmp_path, text, said):
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        roster(path)


def test_a_secret_that_can_be_guessed(tmp_path):
    (tmp_path / "secret").write_text("1234\n", encoding="utf-8")
    with pytest.raises(ValueError, match="it holds 4 characters"):
        read_secret(tmp_path / "secret")
    with pytest.raises(ValueError, match="can't be read"):
        read_secret(tmp_path / "none")


# ----------------------------------------------------------------------------------- the command


@pytest.fixture
def grading(tmp_path, lab, monkeypatch):
    """The command, with the toy lab and no processes."""
    monkeypatch.setattr(assignments, "all_assignments", lambda: {lab.name: lab})
    monkeypatch.setattr(sandbox, "find", lambda trusted: sandbox.Sandbox)
    monkeypatch.setattr(sandbox.Sandbox, "name", "nothing", raising=False)
    monkeypatch.setattr(sandboxed_programs, "runner", lambda holder: toy.pretend)
    monkeypatch.setattr(sandboxed_programs, "alive", lambda runner: None)

    def grade(*words):
        out = str(tmp_path / "out")
        return command.main([str(tmp_path / "in"), "--lab", "toy", "--out", out, "--no-gradebook", *words])

    return grade


def test_the_command(tmp_path, grading, capsys):
    _hand_in(tmp_path / "in", "ada", "bob")
    assert grading("--seed", "5") == command.GRADED
    told = capsys.readouterr()
    assert "[2/2]" in told.err and "toy-lab: 2 graded, 2 of them now." in told.out
    assert (tmp_path / "out" / "toy-lab" / "grades.csv").exists()
    assert grading() == command.GRADED
    assert "2 of 2 have their grade already." in capsys.readouterr().err


def test_the_command_says_why_nothing_was_graded(tmp_path, grading, capsys):
    assert grading() == command.NOTHING
    assert "no such folder" in capsys.readouterr().err
    (tmp_path / "in").mkdir()
    assert grading() == command.NOTHING
    assert "no notebook of toy-lab is in it" in capsys.readouterr().err
    _hand_in(tmp_path / "in", "ada")
    for words, said in [
        (("--regrade", "zoe"), "nobody of that name"),
        (("--jobs", "0"), "jobs = 0"),
        (("--roster", "none.csv"), "roster"),
        (("--lab", "lab7"), "no such lab"),
    ]:
        assert grading(*words) == command.NOTHING
        assert said in capsys.readouterr().err
    with classroom.locked(tmp_path / "out", "toy-lab"):
        assert grading() == command.NOTHING
        assert "Another grader" in capsys.readouterr().err


def test_somebody_to_look_at_is_exit_status_1(tmp_path, grading):
    _hand_in(tmp_path / "in", "ada")
    (tmp_path / "roster.csv").write_text("bob\n", encoding="utf-8")
    assert grading("--roster", str(tmp_path / "roster.csv")) == command.LOOK


def test_an_environment_that_lacks_something_grades_nobody(tmp_path, grading, monkeypatch, capsys):
    def dead(runner):
        raise SandboxFailed("The program 'answer' does not start in the sandbox.")

    _hand_in(tmp_path / "in", "ada")
    monkeypatch.setattr(sandboxed_programs, "alive", dead)
    assert grading() == command.NOTHING and "does not start" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*/students/*.json"))


def test_without_a_sandbox_nothing_runs(tmp_path, grading, monkeypatch, capsys):
    def none(trusted):
        raise sandbox.NoSandbox("No sandbox works here.")

    _hand_in(tmp_path / "in", "ada")
    monkeypatch.setattr(sandbox, "find", none)
    assert grading() == command.NOTHING and "No sandbox works here." in capsys.readouterr().err

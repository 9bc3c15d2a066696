"""Releases: what students get, what they must not, and what nbgrader says of both copies.

Most of it on a tiny lab. The labs of this repository are released and looked through as well; that
they run is `python -m labs.release --check`; `make labs-test` runs them where nothing of ours is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell

from book.portable import bundle
from labs import release
from labs.assignments import Assignment, all_assignments
from labs.kit import blanks, question, unsandboxed
from labs.releasing import copies, held_back, leaks, package, validating
from tests import clean_env
from tests.labs import tiny_lab
from tests.labs.tiny_lab import LAB

LABS = all_assignments()
SECRET = "a line that nobody guesses"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> tuple[Path, Assignment]:
    """A repository with one small lab."""
    root, _ = tiny_lab.make(tmp_path_factory.mktemp("tiny"))
    return root, Assignment(LAB, root / tiny_lab.FOLDER / f"{LAB}.ipynb")


@pytest.fixture(scope="session")
def made(tiny) -> copies.Copies:
    """Its two copies."""
    root, lab = tiny
    return release.make(lab, root)


@pytest.fixture(scope="session")
def python(tmp_path_factory) -> Path:
    """An interpreter that has what a hosted notebook has, and nothing of ours."""
    return clean_env.build(tmp_path_factory.mktemp("clean") / "env")


@pytest.fixture
def questions(tiny):
    """The file of its questions, which a test may overwrite."""
    path = tiny[0] / tiny_lab.FOLDER / "questions.py"
    yield path
    path.write_text(tiny_lab.QUESTIONS, encoding="utf-8")


def held_back_in(tiny) -> tuple[str, ...]:
    """What may not travel with its students' copies."""
    return held_back.modules(tiny[1].master.parent, tiny[0])


def read(text: str) -> nbformat.NotebookNode:
    return nbformat.reads(text, 4)


def cell(notebook: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    (found,) = [one for one in notebook.cells if one.id == name]
    return found


# ------------------------------------------------------------------------------- the two copies


def test_a_student_gets_the_master_with_blanks(made):
    student = read(made.student)
    nbformat.validate(student)
    kernel = cell(student, "tiny-kernel").source.split("\n")
    assert kernel[0] == "# [tiny-kernel] your kernel and its launcher"
    assert kernel[4:9] == [
        "    # your code here",
        "    raise NotImplementedError",
        "    y = x * 2",
        "    # your code here",
        "    raise NotImplementedError",
    ]
    assert blanks.blanks(cell(student, "tiny-kernel").source) == [6, 9, 15]
    assert cell(student, "tiny-kernel-test").source == 'check("tiny-kernel-test")'
    assert not any(one.get("outputs") for one in student.cells)
    assert student.metadata.colab.name == f"{LAB}.ipynb" and student.metadata.kernelspec.name == "python3"
    assert student.metadata.inference_roofline == {"lab": LAB, "version": made.version}
    assert (made.title, made.minutes) == ("A tiny lab", "15 to 20")


def test_the_set_up_cell_is_below_the_title_and_read_only(made):
    for text in (made.student, made.instructor):
        setup = read(text).cells[1]
        assert (setup.id, setup.metadata.nbgrader.grade_id) == (bundle.CELL_ID, bundle.CELL_ID)
        told = setup.metadata.nbgrader
        assert told.locked and not (told.grade or told.solution)


def test_the_same_sources_make_the_same_copies(tiny, made):
    root, lab = tiny
    assert release.make(lab, root) == made


def test_cells_without_ids_get_lasting_ones(tiny):
    old = tiny_lab.master()
    old.nbformat_minor = 4
    for one in old.cells:
        del one["id"]
    first, second = (copies.instructor_copy(LAB, old, held_back_in(tiny), tiny[0])[0] for _ in range(2))
    assert [one.id for one in first.cells] == [one.id for one in second.cells]
    assert len({one.id for one in first.cells}) == len(first.cells)


def test_the_key_travels_with_the_instructor_only(tiny, made):
    assert "37" in tiny_lab.KEY and "labs.lab9_tiny.key" in made.instructor
    hidden = cell(read(made.instructor), "tiny-kernel-test").source
    assert (
        hidden.index("BEGIN HIDDEN TESTS") < hidden.index("_unpack_key(") < hidden.index("END HIDDEN TESTS")
    )
    assert read(made.instructor).cells[1].source == read(made.student).cells[1].source
    assert not [name for name in made.files if "key" in name or name.endswith(".ipynb")]


def test_a_module_that_holds_the_solution_stays_behind_or_stops_the_release(tiny, made, questions):
    root, lab = tiny
    assert "kernels/linear.py" in made.files
    solved = tiny_lab.QUESTIONS.replace("SOLVED_BY = ()", 'SOLVED_BY = ("linear",)')
    questions.write_text(solved, encoding="utf-8")
    assert "kernels/linear.py" not in release.make(lab, root).files, "only a function imports it"
    questions.write_text("from kernels import gemv\n" + solved, encoding="utf-8")
    with pytest.raises(ValueError, match=r"kernels\.\w+ must not travel .*labs/lab9_tiny/questions\.py"):
        release.make(lab, root)


# --------------------------------------------------------------------------------------- leaks


def left_a_solution(master, student):
    cell(student, "imports").source += "\ntl.store(y_ptr + offsets, y, mask=inside_of_the_tensor)"


def changed_a_line(master, student):
    cell(student, "tiny-kernel").source = cell(student, "tiny-kernel").source.replace("y = x * 2", "y = x")


def moved_a_blank(master, student):
    lines = cell(student, "tiny-kernel").source.split("\n")
    lines[6], lines[7] = lines[7], lines[6]
    cell(student, "tiny-kernel").source = "\n".join(lines)


def lost_a_cell(master, student):
    del student.cells[3]


def named_the_key(master, student):
    cell(student, "title").source += "\nSee labs.lab9_tiny.key."


def imported_the_key(master, student):
    cell(student, "imports").source += "\nfrom labs.lab9_tiny import questions, key"


def left_a_hidden_test(master, student):
    cell(student, "tiny-value-test").source = cell(master, "tiny-value-test").source


def solution_without_region(master, student):
    cell(master, "tiny-value").source = "size = 3"


def region_left_open(master, student):
    cell(master, "tiny-value").source = "### BEGIN SOLUTION\nsize = 3"


@pytest.mark.parametrize(
    "harm, words",
    [
        (left_a_solution, r"imports: it holds the lines of a solution region of tiny-kernel"),
        (changed_a_line, r"tiny-kernel: it differs from the master outside the regions, at line 7"),
        (moved_a_blank, r"tiny-kernel: it differs .* at line 7"),
        (lost_a_cell, r"the master has 7 cells and the student's copy 6"),
        (named_the_key, r"title: it says 'labs\.lab9_tiny\.key'"),
        (imported_the_key, r"imports: it says 'labs\.lab9_tiny import questions, key'"),
        (left_a_hidden_test, r"tiny-value-test: it says 'BEGIN HIDDEN TESTS'"),
        (solution_without_region, r"tiny-value: it is a solution without a '### BEGIN SOLUTION'"),
        (region_left_open, r"the master can't be read: 'BEGIN SOLUTION': its END is missing"),
    ],
)
def test_a_copy_that_tells_too_much_or_something_else_is_found(tiny, made, harm, words):
    master, student = tiny_lab.master(), read(made.student)
    assert leaks.problems(master, student, held_back_in(tiny)) == []
    harm(master, student)
    assert any(re.search(words, line) for line in leaks.problems(master, student, held_back_in(tiny)))


def test_what_the_set_up_cell_carries_is_looked_through_as_well(tiny, made, monkeypatch):
    root, _ = tiny
    master, student = tiny_lab.master(), read(made.student)
    assert set(leaks.carried(student)) == set(made.files)
    everything = bundle.pack([one.source for one in master.cells if one.cell_type == "code"], root)
    student.cells[1] = bundle.cell(everything, graded=True)
    found = leaks.problems(master, student, held_back_in(tiny))
    assert "labs/lab9_tiny/key.py: it is in the set-up cell, and no student may have it." in found
    student = solved_in_a_module(read(made.student), monkeypatch)
    (found,) = leaks.problems(master, student, held_back_in(tiny))
    assert found.startswith("labs/kit/solved.py: it holds the lines of a solution region of tiny-kernel")


def solved_in_a_module(student, monkeypatch):
    source = "def solved():\n" + "\n".join(f"    {line}" for line in tiny_lab.LONG_SOLUTION)
    monkeypatch.setattr(leaks, "carried", lambda notebook: {"labs/kit/solved.py": source})
    return student


def test_nbgrader_says_why_it_refuses_a_master(tiny):
    wrong = tiny_lab.master()
    cell(wrong, "tiny-value").metadata.nbgrader.grade_id = "tiny-value-test"
    with pytest.raises(ValueError, match=r"nbgrader can't release it: Duplicate grade id: tiny-value-test$"):
        copies.make(LAB, wrong, held_back_in(tiny), tiny[0])


# ----------------------------------------------------------------------------- files and archive


def test_the_archive_has_the_same_bytes_each_time_and_what_nbgrader_expects(tiny, tmp_path):
    root, lab = tiny
    for out in ("one", "two"):
        (made,) = release.release([lab], tmp_path / out, root)
    first, second = (tmp_path / out / package.ARCHIVE for out in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        inside = {name: archive.read(name).decode() for name in archive.namelist()}
    notebook = f"{LAB}/{LAB}.ipynb"
    assert set(inside) == {
        "README.txt",
        "course/nbgrader_config.py",
        *(f"{folder}/{notebook}" for folder in ("student", "instructor", "course/source", "course/release")),
    }
    assert inside[f"student/{notebook}"] == inside[f"course/release/{notebook}"] == made.student
    assert (
        "A tiny lab (15 to 20 minutes)" in inside["README.txt"] and "NOT FOR STUDENTS" in inside["README.txt"]
    )
    assert (tmp_path / "one" / "instructor" / notebook).read_text(encoding="utf-8") == made.instructor
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == [
        "README.txt", package.ARCHIVE, "instructor", "student"
    ]  # fmt: skip


def test_nbgrader_makes_the_students_copy_from_the_course_folder(tiny, made, tmp_path):
    """With its own command, its gradebook and the settings that travel along."""
    for name, text in package.files([made]).items():
        if name.startswith("course/") and "/release/" not in name:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    tools = Path(sys.executable).parent
    variables = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", LAB],
        cwd=tmp_path / "course",
        env=variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    theirs = nbformat.read(tmp_path / "course" / "release" / LAB / f"{LAB}.ipynb", 4)
    assert theirs.cells == read(made.student).cells
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{tmp_path}/course/gradebook.db", "inference-roofline") as book:
        notebook = book.find_notebook(LAB, LAB)
        assert notebook.max_score == 4
        assert bundle.CELL_ID in {one.name for one in notebook.source_cells}


def test_a_release_that_fails_leaves_the_last_one_in_place(tiny, tmp_path, monkeypatch):
    root, lab = tiny
    release.release([lab], tmp_path, root)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(package, "write_archive", lambda path, contents: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        release.release([lab], tmp_path, root)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_each_student_of_a_roster_gets_numbers_of_their_own(tiny, made, tmp_path, monkeypatch):
    from nbgrader.utils import compute_checksum

    from labs.grading.variants import variant_of

    root, lab = tiny
    (tmp_path / "roster.csv").write_text("student,name\nada,Ada\nbo@x.org,Bo\n", encoding="utf-8")
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    monkeypatch.setattr(release, "find", lambda name: lab)
    monkeypatch.setattr(release, "make", lambda one, root=None: made)
    arguments = ["--lab", LAB, "--out", str(tmp_path / "out"), "--roster", str(tmp_path / "roster.csv")]
    assert release.main([*arguments, "--secret", str(tmp_path / "secret.txt")]) == 0
    found = set()
    for student in ("ada", "bo@x.org"):
        notebook = nbformat.read(tmp_path / "out" / "students" / student / f"{LAB}.ipynb", 4)
        setup = cell(notebook, "tiny-setup")
        assert f"LAB.start(globals(), variant={variant_of(student, SECRET)})" in setup.source
        assert setup.metadata.nbgrader.checksum == compute_checksum(setup)
        found.add(setup.source)
    assert len(found) == 2
    with pytest.raises(SystemExit):
        release.main(arguments)


def test_a_mistake_on_the_command_line_is_told_in_a_sentence(capsys, monkeypatch):
    assert release.main(["--lab", "lab77"]) == 1
    assert capsys.readouterr().err.startswith("lab = 'lab77': there is no such lab; choose from lab1")

    def leaking(lab, root=None):
        raise ValueError(f"{lab.name}, title: it says 'labs.lab1.key', which no student's copy may.")

    monkeypatch.setattr(release, "make", leaking)
    assert release.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert (
        all(f"{name}, title: it says 'labs.lab1.key'" in said for name in LABS) and "All is well" not in said
    )


def test_bad_ids_and_a_set_up_without_a_variant_are_told(made):
    with pytest.raises(ValueError, match=r"student = '\.\./ada': this id can't name a folder"):
        package.folder_of("../ada")
    notebook = read(made.student)
    cell(notebook, "tiny-setup").source = "LAB.start(globals())"
    with pytest.raises(ValueError, match=r"'variant=0': 0 cells of the notebook say it; exactly one"):
        copies.with_variant(notebook, 7)


def test_the_site_gets_the_students_copies_and_makes_each_once(tiny, made, questions, tmp_path, monkeypatch):
    root, lab = tiny
    again = {"root": root, "cache": tmp_path / "cache"}
    (first,) = release.students(tmp_path / "out", [lab], **again)
    assert first == (LAB, tmp_path / "out" / f"{LAB}.ipynb", "A tiny lab", "15 to 20")
    assert first.path.read_text(encoding="utf-8") == made.student
    changed = first.path.stat().st_mtime_ns
    monkeypatch.setattr(copies, "make", lambda *a: 1 / 0)
    assert release.students(tmp_path / "out", [lab], **again) == [first]
    assert first.path.stat().st_mtime_ns == changed, "a file that is right is left alone"
    questions.write_text(tiny_lab.QUESTIONS + "\n# another version\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        release.students(tmp_path / "out", [lab], **again)


# ------------------------------------------------------------------------------- they are run


def test_a_check_on_a_blank_starts_no_child_and_says_where_it_is(monkeypatch):
    import linecache
    import types

    source = (
        "# [q] yours\ndef double(x):\n    # your code here\n    raise NotImplementedError\n    return x\n"
    )
    linecache.cache["<q>"] = (len(source), None, source.splitlines(True), "<q>")
    names = {"__name__": "__main__"}
    exec(compile(source, "<q>", "exec"), names)
    monkeypatch.setattr(unsandboxed, "run", lambda *a: pytest.fail("a child was started"))
    lab = types.ModuleType("lab9")
    exec(tiny_lab.QUESTIONS, vars(lab))
    with pytest.raises(question.NotYet, match=r"double is not answered yet: .* on line 4 .*'# \[q\] yours'"):
        question.check(lab.LAB.questions[0], names, {"factor": 2})
    kept = source.replace("raise NotImplementedError", 'raise NotImplementedError("only for fp16")')
    assert blanks.blanks(kept) == [], "an author's own error is no blank"


def test_an_untouched_copy_gets_nothing_and_a_test_that_passes_anyway_is_named(made):
    student = read(made.student)
    student.cells.append(tiny_lab.graded("tiny-gift", "assert True", points=2))
    student.cells.append(tiny_lab.graded("tiny-broken", "import no_such_module", points=2))
    ran = validating.untouched(LAB, copies.write(student))
    tests = ("tiny-kernel-test", "tiny-value-test", "tiny-gift", "tiny-broken")
    assert {name: score[0] for name, score in ran.scores.items()} == dict(
        zip(tests, (0, 0, 2, 0), strict=True)
    )
    assert ran.problems[0] == f"{LAB}, tiny-gift: it gives 2 points for no answer."
    assert ran.problems[1].startswith(f"{LAB}, tiny-broken: it fails, but not for want of an answer: Module")
    assert len(ran.problems) == 2


def test_a_master_with_a_wrong_solution_is_named(tiny):
    wrong = tiny_lab.master()
    wrong.cells = [one for one in wrong.cells if "kernel" not in one.id]
    cell(wrong, "tiny-value").source = "### BEGIN SOLUTION\nsize = 3\n### END SOLUTION"
    wrong.cells.append(new_code_cell("print('noise', file=__import__('sys').stderr)", id="noise"))
    instructor, _ = copies.instructor_copy(LAB, wrong, held_back_in(tiny), tiny[0])
    ran = validating.solved(LAB, copies.write(instructor))
    assert ran.scores == {"tiny-value-test": (0, 1)}
    assert ran.problems == (
        f"{LAB}, tiny-value-test: it fails with the solutions in place: NotYet: size is 3.",
        f"{LAB}, cell noise: it fails with the solutions in place: it wrote to standard error: noise",
    )


def assert_stops_at_its_first_blank(student, python, home):
    with pytest.raises(CellExecutionError) as stopped:
        clean_env.run(student, python, home)
    assert stopped.value.ename in ("NotYet", "NotImplementedError"), stopped.value


# ----------------------------------------------------------------------------- the labs themselves


@pytest.mark.parametrize("lab", LABS.values(), ids=LABS)
def test_each_lab_is_released_without_leaks_and_small(lab):
    made = release.make(lab)  # raises ValueError for a leak
    assert made.minutes, "its first cells say how many minutes it takes"
    without = held_back.modules(lab.master.parent)
    assert not set(made.files) & {f"{name.replace('.', '/')}.py" for name in without}
    assert len(made.student) < 400_000


@pytest.mark.skipif(not os.environ.get("FULL_CLASS"), reason="takes minutes; `make labs-test` does it")
@pytest.mark.parametrize("lab", LABS.values(), ids=LABS)
def test_each_lab_runs_in_a_bare_environment(lab, python, tmp_path):
    """The hidden cases run too, and children find the modules that were unpacked."""
    made = release.make(lab)
    assert_stops_at_its_first_blank(read(made.student), python, tmp_path / "student")
    clean_env.run(read(made.instructor), python, tmp_path / "solved")

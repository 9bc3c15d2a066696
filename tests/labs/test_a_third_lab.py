"""Another lab is one folder, and nothing is registered elsewhere: it is found, released, checked and graded.

By the commands that an instructor uses, in a repository that has this one more folder. The folder
below is the smallest that a lab can be.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from labs.grading import master
from tests.labs import tiny_lab
from tests.labs.submissions.made import without_marks

LAB = "lab8-small"
QUESTIONS = """
from labs.kit.ask_and_answer import Calls
from labs.kit.lab import Lab
from labs.kit.question import Question, Verdict

SOLVED_BY = ()
VISIBLE = ((1,), (2,))

def questions(calls):
    asks = lambda draw: {"f": Calls("twice", calls)}
    return (Question("small-test", "Twice", ("small-code",), asks, judge),)

def judge(answers, asks, draw):
    returns = [value for value, _ in answers["f"].returns]
    right = [draw.numbers["factor"] * x for (x,) in asks["f"].calls]
    return Verdict(returns == right, f"twice returns {returns}.")

LAB = Lab("lab8-small", questions(VISIBLE), lambda variant: {"factor": 2})
"""
KEY = """
from dataclasses import replace
from labs.lab8_small import questions

HIDDEN = ((3,), (40,))
LAB = replace(questions.LAB, questions=questions.questions(HIDDEN))
"""
SETUP = """from labs.lab8_small.questions import LAB
notebook = LAB.start(globals(), variant=0)
check = notebook.check"""
CODE = """# [small-code] twice as much
def twice(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION"""
TEST = """check("small-test")
### BEGIN HIDDEN TESTS
from labs.lab8_small.key import LAB as key
notebook.check("small-test", key)
### END HIDDEN TESTS"""


def notebook(change=lambda source: source):
    cells = [
        new_markdown_cell("# A small lab\n\n5 minutes.", id="title"),
        tiny_lab.graded("small-setup", SETUP),
        tiny_lab.graded("small-code", change(CODE), solution=True),
        tiny_lab.graded("small-test", TEST, points=4),
    ]
    return new_notebook(cells=cells)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The modules and labs that are here, and one more folder."""
    root = tiny_lab.repository(tmp_path_factory.mktemp("third"))
    folder = root / "labs" / "lab8_small"
    folder.mkdir()
    for name, text in (("__init__", ""), ("questions", QUESTIONS), ("key", KEY)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    nbformat.write(notebook(), folder / f"{LAB}.ipynb")
    return root


def command(root: Path, *words: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "INFERENCE_ROOFLINE_CACHE": str(root / "_build" / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_released_beside_the_others_without_its_key(root, tmp_path):
    told = command(root, "labs.release", "--lab", LAB, "--out", str(tmp_path))
    assert told.startswith(LAB)
    text = (tmp_path / "student" / LAB / f"{LAB}.ipynb").read_text(encoding="utf-8")
    assert "HIDDEN" not in text and "return 2 * x" not in text and "# your code here" in text


def test_it_is_checked(root):
    told = command(root, "labs.release", "--check", "--lab", "lab8")
    assert "1 of 1 tests pass" in told and "1 of 1 tests fail without answers, as they should" in told


def test_it_is_graded(root, tmp_path):
    nbformat.write(notebook(without_marks), tmp_path / "ada.ipynb")
    by_heart = "# [small-code] twice as much\ndef twice(x):\n    return {1: 2, 2: 4}.get(x)"
    nbformat.write(notebook(lambda source: by_heart), tmp_path / "bob.ipynb")
    words = ["--lab", "lab8", "--out", str(tmp_path / "grades"), "--no-gradebook"]
    assert f"{LAB}: 2 graded" in command(root, "labs.grading", str(tmp_path), *words)
    folder = tmp_path / "grades" / LAB
    with (folder / "grades.csv").open(encoding="utf-8-sig") as table:
        rows = {row["student"]: row for row in csv.DictReader(table)}
    assert rows["ada"]["total (of 4)"] == "4" and rows["ada"]["comments"] == "All right."
    assert rows["bob"]["total (of 4)"] == "0" and "twice returns [None, None]" in rows["bob"]["comments"]
    kept = json.loads((folder / "students" / "ada.json").read_text(encoding="utf-8"))["grade"]
    assert kept["versions"].keys() == set(master.PACKAGES) and not kept["problems"]

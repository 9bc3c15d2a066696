"""Another lab is one folder, and nothing is registered elsewhere: it is found, released, checked and graded.

By the commands that an instructor uses, in a repository that has this one more folder.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import nbformat
import pytest

from labs.grading import master
from tests.labs import tiny_lab
from tests.labs.submissions.made import without_marks


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A repository with the labs of this one, and the tiny lab's folder."""
    root, _ = tiny_lab.make(tmp_path_factory.mktemp("third"))
    return root


def command(root, *words):
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_checked_and_released_beside_the_others(root, tmp_path):
    told = command(root, "labs.release", "--check", "--lab", "lab9")
    assert "2 of 2 tests pass" in told and "2 of 2 tests fail without answers, as they should" in told
    command(root, "labs.release", "--lab", "lab9", "--out", str(tmp_path))
    student = nbformat.read(tmp_path / "student" / tiny_lab.LAB / f"{tiny_lab.LAB}.ipynb", 4)
    assert student.metadata.inference_roofline.lab == tiny_lab.LAB


def test_it_is_graded_and_right_answers_get_full_marks(root, tmp_path):
    handed_in = tiny_lab.master()
    for cell in handed_in.cells:
        cell.source = without_marks(cell.source)
    nbformat.write(handed_in, tmp_path / "ada.ipynb")
    wrong = tiny_lab.master()
    wrong.cells = [cell for cell in wrong.cells if cell.id != "tiny-value"]
    nbformat.write(wrong, tmp_path / "bob.ipynb")
    told = command(root, "labs.grading", str(tmp_path), "--lab", "lab9", "--out", str(tmp_path / "grades"))
    assert f"{tiny_lab.LAB}: 2 graded" in told
    folder = tmp_path / "grades" / tiny_lab.LAB
    with (folder / "grades.csv").open(encoding="utf-8-sig") as table:
        rows = {row["student"]: row for row in csv.DictReader(table)}
    assert rows["ada"]["total (of 4)"] == "4" and rows["ada"]["comments"] == "All right."
    assert rows["bob"]["total (of 4)"] == "3" and "tiny-value is missing" in rows["bob"]["comments"]
    kept = json.loads((folder / "students" / "ada.json").read_text(encoding="utf-8"))["grade"]
    assert kept["versions"].keys() == set(master.PACKAGES) and not kept["problems"]

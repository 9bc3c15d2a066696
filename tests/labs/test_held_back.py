"""What no student's copy may carry is found by looking: keys, the grader, and kernels that solve a lab."""

import pytest

from book.portable.bundle import ROOT
from book.portable.dependencies import askers
from labs.assignments import all_assignments
from labs.releasing import held_back

LABS = all_assignments()
KERNELS = {
    "linear": "import torch\n",
    "gemv": "from kernels import linear\n",
    "step": "import torch\nfrom kernels.gemv import gemv_kernel\n",
    "stream": "def compare():\n    from kernels import linear\n",  # importing it runs no kernel of the lab
}


@pytest.fixture
def root(tmp_path):
    """A repository of four kernels and two labs, the second with a key that is a folder."""
    for name, text in KERNELS.items():
        path = tmp_path / "kernels" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, key in (("lab1_one", "key.py"), ("lab2_two", "key/__init__.py")):
        path = tmp_path / "labs" / name / key
        path.parent.mkdir(parents=True)
        path.write_text("ANSWER = 42\n", encoding="utf-8")
        (tmp_path / "labs" / name / "questions.py").write_text('SOLVED_BY = ("linear",)\n', encoding="utf-8")
    return tmp_path


def test_every_labs_key_is_held_back_from_every_lab(root):
    assert held_back.keys(root) == ("labs.lab1_one.key", "labs.lab2_two.key")
    assert held_back.keys() == tuple(f"{lab.package}.key" for lab in LABS.values())


def test_a_kernel_that_imports_a_solving_one_gives_the_lab_away_too(root):
    assert held_back.solutions(["linear"], root) == ("kernels.gemv", "kernels.linear", "kernels.step")
    assert held_back.solutions(["stream"], root) == ("kernels.stream",)
    assert held_back.solutions([], root) == ()


def test_a_labs_statement_is_read_from_its_questions(root):
    found = held_back.modules(root / "labs" / "lab1_one", root)
    assert set(found) > {"labs.grading", "labs.lab2_two.key", "kernels.step"}
    (root / "labs" / "lab1_one" / "questions.py").write_text("LAB = None\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"questions\.py: it has no SOLVED_BY; name the files of kernels/"):
        held_back.modules(root / "labs" / "lab1_one", root)


def test_a_statement_about_a_kernel_that_is_gone_is_refused(root):
    with pytest.raises(ValueError, match=r"SOLVED_BY = 'matmul': kernels/ has no such file"):
        held_back.solutions(["linear", "matmul"], root)


@pytest.mark.parametrize("lab", LABS.values(), ids=LABS)
def test_what_a_labs_notebook_imports_holds_no_kernel_that_solves_it(lab):
    without = held_back.modules(lab.master.parent)
    files = {path.relative_to(ROOT).as_posix() for path in askers([f"import {lab.package}"], ROOT, without)}
    assert f"{lab.package.replace('.', '/')}/questions.py" in files
    for name in held_back.solved_by(lab.master.parent / "questions.py"):
        assert f"kernels.{name}" in without and f"kernels/{name}.py" not in files
    assert not [name for name in files if name.endswith("/key.py") or name.startswith("labs/grading")]

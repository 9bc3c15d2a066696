"""Lab 2's notebook: valid for nbgrader, a cell for each question, stubs that differ only in blanks."""

import ast
import copy

import nbformat
import pytest
from nbgrader.preprocessors import CheckCellMetadata, ClearHiddenTests, ClearSolutions
from traitlets.config import Config

from labs import assignments
from labs.keys import lab2 as key
from labs.kit import lab2
from labs.kit.blanks import STUB, blanks


@pytest.fixture(scope="module")
def master():
    return nbformat.read(assignments.find("lab2-linear").master, as_version=4)


@pytest.fixture(scope="module")
def stub(master):
    made = copy.deepcopy(master)
    config = Config({"ClearSolutions": {"code_stub": {"python": STUB}}})
    for step in (ClearSolutions(config=config), ClearHiddenTests()):
        made, _ = step.preprocess(made, {})
    return made


def told(cell):
    return cell.metadata.get("nbgrader", {})


def test_nbgraders_metadata_are_valid(master):
    nbformat.validate(master)
    CheckCellMetadata().preprocess(copy.deepcopy(master), {})


def test_each_question_has_its_cell_and_its_points(master):
    graded = {told(c)["grade_id"]: c for c in master.cells if told(c).get("grade")}
    written = {told(c)["grade_id"]: c for c in master.cells if told(c).get("solution")}
    assert list(graded) == [q.id for q in lab2.LAB.questions] == [q.id for q in key.LAB.questions]
    assert sum(told(c)["points"] for c in graded.values()) == 40
    assert set(written) == {need for q in lab2.LAB.questions for need in q.needs}
    for name, cell in graded.items():
        lines = cell.source.split("\n")
        assert lines[0] == f'check("{name}")' and f'key.check("{name}")' in lines
        assert f"| {name} | {told(cell)['points']} |" in master.cells[0].source
    for name, cell in written.items():
        assert cell.source.startswith(f"# [{name}] ")


def test_a_stub_is_the_master_but_for_its_blanks(master, stub):
    """Both are cut where regions begin and end; what lies between has to be the same, line for line."""
    for ours, theirs in zip(master.cells, stub.cells, strict=True):
        rest, inside = [], False
        for line in ours.source.split("\n"):
            if "### BEGIN" in line:
                inside = True
                indent = line[: len(line) - len(line.lstrip())]
                rest += [indent + one for one in STUB.split("\n")] if "SOLUTION" in line else []
            elif "### END" in line:
                inside = False
            elif not inside:
                rest.append(line)
        assert theirs.source == "\n".join(rest)


def test_a_stub_is_python_with_a_blank_in_every_solution_and_no_key(stub):
    for cell in stub.cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)
            assert bool(blanks(cell.source)) == bool(told(cell).get("solution"))
        assert "labs.keys" not in cell.source


def test_the_notebook_is_clean(master):
    for cell in master.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
        else:
            assert ":::" not in cell.source and "{math}" not in cell.source  # hosted notebooks show neither


def test_the_students_modules_leave_our_own_kernels_out():
    from book.portable.bundle import ROOT
    from book.portable.dependencies import askers
    from labs.releasing.copies import left_out

    cells = ["from labs.kit import lab2"]
    files = {path.relative_to(ROOT).as_posix() for path in askers(cells, ROOT, left_out("lab2-linear"))}
    assert "labs/kit/lab2_here.py" in files
    ours = {f"kernels/{name}.py" for name in ("linear", "matmul", "gemv", "mlp")}
    assert not files & ours and not any(name.startswith("labs/keys") for name in files)

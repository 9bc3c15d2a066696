"""Every lab's master: valid for nbgrader, a cell for each question, stubs that differ only in blanks.

That the solutions pass the visible and the hidden cases is seen where the masters are run ("labs'
masters" of `make test`), and once more by `make labs-check`.
"""

import ast
import copy

import nbformat
import pytest
from nbgrader.preprocessors import CheckCellMetadata, ClearHiddenTests, ClearSolutions
from traitlets.config import Config

from labs.assignments import all_assignments
from labs.kit.blanks import STUB, blanks
from labs.releasing.leaks import KEY_NAMED

LABS = all_assignments()


@pytest.fixture(scope="module", params=LABS.values(), ids=LABS)
def lab(request):
    return request.param


@pytest.fixture(scope="module")
def master(lab):
    return nbformat.read(lab.master, as_version=4)


@pytest.fixture(scope="module")
def stub(master):
    made = copy.deepcopy(master)
    config = Config({"ClearSolutions": {"code_stub": {"python": STUB}}})
    for step in (ClearSolutions(config=config), ClearHiddenTests()):
        made, _ = step.preprocess(made, {})
    return made


def told(cell):
    return cell.metadata.get("nbgrader", {})


def named(notebook, kind):
    return {told(cell)["grade_id"]: cell for cell in notebook.cells if told(cell).get(kind)}


def test_nbgraders_metadata_are_valid(master):
    nbformat.validate(master)
    CheckCellMetadata().preprocess(copy.deepcopy(master), {})
    ids = [told(cell)["grade_id"] for cell in master.cells if told(cell)]
    assert len(ids) == len(set(ids))


def test_each_question_has_its_cell_and_the_points_that_the_first_cell_promises(lab, master):
    graded, first = named(master, "grade"), master.cells[0].source
    assert list(graded) == [question.id for question in lab.questions().LAB.questions]
    for name, cell in graded.items():
        assert cell.source.startswith(f'check("{name}")\n### BEGIN HIDDEN TESTS') and told(cell)["locked"]
        assert f"from {lab.package}.key import LAB as key\n" in cell.source
        assert f'notebook.check("{name}", key)' in cell.source.split("\n")
        assert f"| {name} | {told(cell)['points']} |" in first
    assert f"{sum(told(cell)['points'] for cell in graded.values())} points" in first


def test_each_solution_is_asked_for_and_says_its_name_in_its_first_line(lab, master):
    written = named(master, "solution")
    assert set(written) == {need for question in lab.questions().LAB.questions for need in question.needs}
    for name, cell in written.items():
        assert cell.source.startswith(f"# [{name}] ")


def test_the_key_asks_the_same_questions_and_judges_them_alike(lab):
    pairs = zip(lab.questions().LAB.questions, lab.key().LAB.questions, strict=True)
    for visible, hidden in pairs:
        assert (visible.id, visible.title, visible.needs) == (hidden.id, hidden.title, hidden.needs)
        assert visible.judge.__qualname__ == hidden.judge.__qualname__
    assert lab.key().LAB.name == lab.questions().LAB.name == lab.name


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
        assert not KEY_NAMED.search(cell.source)


def test_cells_are_short_plain_and_without_outputs(master):
    for cell in master.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
            assert len(cell.source.splitlines()) <= (45 if told(cell).get("solution") else 15)
        else:  # hosted notebooks show none of these
            assert not any(mark in cell.source for mark in (":::", "{eq}", "{math}"))

"""Lab 1's notebook: valid for nbgrader, a cell for each question, stubs that differ only in blanks."""

import ast
import json

import nbformat
import pytest
from nbgrader.preprocessors import CheckCellMetadata, ClearHiddenTests, ClearSolutions
from traitlets.config import Config

from labs import assignments
from labs.keys import lab1 as key
from labs.kit import lab1, local
from labs.kit.asking import Cell, answer
from labs.kit.blanks import STUB
from labs.kit.question import Draw

MASTER = assignments.find("lab1").master


@pytest.fixture(scope="module")
def master():
    return nbformat.read(MASTER, as_version=4)


def told(cell):
    return cell.metadata.get("nbgrader", {})


def solutions(notebook):
    return [cell for cell in notebook.cells if told(cell).get("solution")]


def stub_of(notebook):
    copy = nbformat.from_dict(json.loads(json.dumps(notebook)))
    config = Config({"ClearSolutions": {"code_stub": {"python": STUB}}})
    for step in (ClearSolutions(config=config), ClearHiddenTests()):
        copy, _ = step.preprocess(copy, {})
    return copy


def test_nbgraders_metadata_are_valid(master):
    nbformat.validate(master)
    CheckCellMetadata().preprocess(master, {})
    ids = [told(cell)["grade_id"] for cell in master.cells if told(cell)]
    assert len(ids) == len(set(ids))


def test_every_question_has_its_cells_and_its_points(master):
    graded = {told(c)["grade_id"]: c for c in master.cells if told(c).get("grade")}
    written = [told(c)["grade_id"] for c in solutions(master)]
    assert list(graded) == [q.id for q in lab1.LAB.questions]
    assert sum(told(c)["points"] for c in graded.values()) == 30
    for question in lab1.LAB.questions:
        assert set(question.needs) <= set(written)
        cell = graded[question.id]
        assert cell.source.startswith(f'check("{question.id}")\n### BEGIN HIDDEN TESTS')
        assert f'key.check("{question.id}")' in cell.source and told(cell)["locked"]
    text = master.cells[0].source
    for name, cell in graded.items():
        assert f"| {name} | {told(cell)['points']} |" in text


def test_each_solution_says_its_name_in_its_first_line(master):
    for cell in solutions(master):
        assert cell.source.startswith(f"# [{told(cell)['grade_id']}] ")


def test_a_stub_is_the_solution_line_for_line_except_the_blanks(master):
    for cell, stub in zip(master.cells, stub_of(master).cells, strict=True):
        wanted, inside, hidden = [], False, False
        for line in cell.source.split("\n"):
            if "### BEGIN SOLUTION" in line:
                indent = line[: len(line) - len(line.lstrip())]
                wanted += [indent + one for one in STUB.split("\n")]
            inside = (inside or "### BEGIN SOLUTION" in line) and "### END SOLUTION" not in line
            hidden = (hidden or "### BEGIN HIDDEN" in line) and "### END HIDDEN" not in line
            if not inside and not hidden and "### END" not in line:
                wanted.append(line)
        assert stub.source == "\n".join(wanted)
        assert "labs.keys" not in stub.source
        if cell.cell_type == "code":
            ast.parse(stub.source)


def test_every_solution_has_a_blank(master):
    for cell in solutions(stub_of(master)):
        assert "raise NotImplementedError" in cell.source


def test_cells_are_short_and_the_master_holds_no_outputs(master):
    for cell in master.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
            assert len(cell.source.splitlines()) <= (15 if not told(cell).get("solution") else 40)
            assert max(map(len, cell.source.splitlines())) <= 88
        else:
            assert ":::" not in cell.source and "{eq}" not in cell.source  # plain Markdown, for Colab


def test_the_masters_solutions_pass_the_hidden_cases_in_child_processes(master):
    cells = [Cell(told(c)["grade_id"], c.source) for c in solutions(master)]
    import numpy as np

    draw = Draw(np.random.default_rng(5), lab1.numbers(0))
    asked = {q.id: q.asks(draw) for q in key.LAB.questions}
    flat = {f"{id} {name}": ask for id, asks in asked.items() for name, ask in asks.items()}
    answers = answer(cells, flat, local.run)
    assert not answers.cell_errors
    for question in key.LAB.questions:
        mine = {name: answers.answers[f"{question.id} {name}"] for name in asked[question.id]}
        told_ = question.judge(mine, asked[question.id], draw)
        assert told_.right, (question.id, told_.comment)

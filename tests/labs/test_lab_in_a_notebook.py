"""A lab at work in a notebook: whose names are checked, and one run of a kernel for several questions."""

from dataclasses import replace

import pytest

from labs.kit import question
from labs.kit.ask_and_answer import Case, Kernel, KernelAnswer, Values
from labs.kit.ask_in_processes import Answers, Cell
from labs.kit.lab import Lab
from labs.kit.question import NotYet, Question, Verdict


def asks(draw):
    return {"run": Kernel("linear", (Case({"m": 1}, {"x": draw.rng.random((1, 1))}),))}


def judge(right):
    def judged(answers, its, draw):
        assert answers["run"].error == str(its["run"].cases[0].inputs["x"])  # its own run, and no other
        return Verdict(right, "no")

    return judged


@pytest.fixture
def lab(monkeypatch):
    """A lab in a notebook, the asks of each conversation, and the code of its one cell."""
    runs, code = [], ["first"]

    def answered(cells, its, runner):
        runs.append(sorted(its))
        made = {name: KernelAnswer(error=str(ask.cases[0].inputs["x"])) for name, ask in its.items()}
        return Answers(made, {"cell": "SyntaxError"} if cells[0].source == "broken" else {})

    monkeypatch.setattr(question, "answer", answered)
    monkeypatch.setattr(question, "cells_of", lambda function: [Cell("cell", code[0])])
    names = {"a": True, "b": False, "alone": True}
    made = tuple(Question(name, name, (), asks, judge(right)) for name, right in names.items())
    lab = Lab("made-up", made, lambda variant: {"variant": variant}, (("a", "b"),))
    return (
        lab.start({"linear": str.upper}, variant=7),
        runs,
        code,
    )  # what linear is doesn't matter: no run is real


def test_one_run_serves_the_group_until_the_code_changes(lab):
    notebook, runs, code = lab
    notebook.check("a")
    with pytest.raises(NotYet, match="no"):
        notebook.check("b")
    assert runs == [["a run", "b run"]]
    code[0] = "second"
    notebook.check("a")
    notebook.check("alone")
    assert runs == [["a run", "b run"]] * 2 + [["alone run"]]


def test_a_run_that_failed_is_not_kept(lab):
    notebook, runs, code = lab
    code[0] = "broken"
    for _ in range(2):
        with pytest.raises(NotYet, match="SyntaxError"):
            notebook.check("a")
    assert len(runs) == 2


def test_hidden_cases_are_checked_apart_from_the_visible_ones_and_with_the_same_numbers(lab):
    notebook, runs, _ = lab

    def asks_more(draw):
        assert draw.numbers == notebook.mine == {"variant": 7}
        return asks(draw)

    key = replace(notebook.lab, questions=tuple(replace(q, asks=asks_more) for q in notebook.lab.questions))
    for _ in range(2):
        notebook.check("a")
        notebook.check("a", key)
    assert runs == [["a run", "b run"]] * 2


def test_what_the_notebook_defines_later_is_what_is_checked():
    names = {}
    judge = lambda answers, its, draw: Verdict(answers["v"].values.get("size") == 3, "no")  # noqa: E731
    question = Question("size", "Size", (), lambda draw: {"v": Values(("size",))}, judge)
    notebook = Lab("made-up", (question,), lambda variant: {}).start(names)
    with pytest.raises(NotYet):
        notebook.check("size")
    names["size"] = 3
    notebook.check("size")
    with pytest.raises(NotYet, match="question = 'other': not in this lab; choose from size"):
        notebook.check("other")

"""Questions that are checked together: one run of the kernel for all, until its code changes."""

import pytest

from labs.kit import question
from labs.kit.asking import Answers, Cell
from labs.kit.asks import Case, Kernel, KernelAnswer
from labs.kit.lab import Lab
from labs.kit.question import NotYet, Question, Verdict

linear = str.upper  # what it is doesn't matter: the run is made up


def asks(draw):
    return {"run": Kernel("linear", (Case({"m": 1}, {"x": draw.rng.random((1, 1))}),))}


def judge(right):
    def judged(answers, its, draw):
        assert answers["run"].error == str(its["run"].cases[0].inputs["x"])  # its own run, and no other
        return Verdict(right, "no")

    return judged


@pytest.fixture
def lab(monkeypatch):
    """A lab whose code is `lab.code[0]`, and the asks of each conversation in `lab.runs`."""
    runs, code = [], ["first"]

    def answered(cells, its, runner):
        runs.append(sorted(its))
        made = {name: KernelAnswer(error=str(ask.cases[0].inputs["x"])) for name, ask in its.items()}
        return Answers(made, {"cell": "SyntaxError"} if cells[0].source == "broken" else {})

    monkeypatch.setattr(question, "answer", answered)
    monkeypatch.setattr(question, "cells_of", lambda function: [Cell("cell", code[0])])
    names = {"a": True, "b": False, "alone": True}
    made = tuple(Question(name, name, (), asks, judge(right)) for name, right in names.items())
    return Lab("made-up", made, lambda variant: {}, (("a", "b"),)), runs, code


def test_one_run_serves_the_group_until_the_code_changes(lab):
    lab, runs, code = lab
    lab.check("a")
    with pytest.raises(NotYet, match="no"):
        lab.check("b")
    assert runs == [["a run", "b run"]]
    code[0] = "second"
    lab.check("a")
    lab.check("alone")
    assert runs == [["a run", "b run"]] * 2 + [["alone run"]]


def test_a_run_that_failed_is_not_kept(lab):
    lab, runs, code = lab
    code[0] = "broken"
    for _ in range(2):
        with pytest.raises(NotYet, match="SyntaxError"):
            lab.check("a")
    assert len(runs) == 2

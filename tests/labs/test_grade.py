"""One submission's grade: points, comments that are fit to show, and a key that fails."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import pytest

from labs.grading import safe_text, sandbox, sandboxed_programs, submission
from labs.grading.grade import grade
from labs.grading.running_program import SandboxFailed
from labs.kit import ask_in_processes
from labs.kit.ask_in_processes import Ran
from labs.kit.question import Verdict
from tests.labs import toy


@pytest.fixture
def lab(tmp_path):
    return toy.assignment(tmp_path / "master")


@pytest.fixture
def graded(lab, tmp_path):
    """Grade sources with a runner that has no processes."""

    def make(sources=None, *, runner=toy.pretend, seed=1, variant=0, lab=lab, **changed):
        path = toy.hand_in(tmp_path / "in.ipynb", sources, **changed)
        return grade(submission.read(path, lab), lab, runner, seed, variant)

    return make


def _points(made):
    return {score.question: score.points for score in made.scores}


def _comment(made, question):
    return next(score.comment for score in made.scores if score.question == question)


# ------------------------------------------------------------------------- in the sandbox, for real


@pytest.fixture(scope="module")
def held():
    return sandboxed_programs.runner(sandbox.find())


def test_a_submission_that_does_its_worst_harms_only_itself(graded, held):
    made = graded(
        runner=held,
        toy_values="# [toy-values]\nimport labs.grading",
        toy_calls="# [toy-calls]\nprint('x' * 2_000_000)\ndef twice(x):\n    import os\n    os._exit(0)",
        toy_kernel=toy.BLANKS["toy-kernel"],
    )
    assert made.total == 0 and not made.needs_look
    assert "No module named 'labs'" in _comment(made, "toy-bytes")
    assert _comment(made, "toy-twice")
    assert any("It printed" in note for note in made.notes)


# ------------------------------------------------------------------------------ without processes


def test_points_come_from_the_master(graded):
    made = graded(toy_calls="# [toy-calls]\ndef twice(x): return x")
    assert _points(made) == {"toy-bytes": 2, "toy-twice": 0, "toy-copied": 0}
    assert re.match(r"twice\(\d+\) is \d+, and \d+ is right\.", _comment(made, "toy-twice"))


def test_an_untouched_stub_is_not_answered(graded):
    made = graded(toy.BLANKS)
    assert made.total == 0 and {s.comment for s in made.scores} == {
        "Not answered: the code is as it was handed out."
    }


def test_nothing_runs_for_an_untouched_stub(graded):
    def runner(program, request):
        raise AssertionError("it ran")

    assert graded(toy.BLANKS, runner=runner).problems == ()


def test_a_blank_that_was_left_is_named(graded):
    source = "# [toy-values]\nother = 3\nraise NotImplementedError\n"
    assert _comment(graded(toy_values=source), "toy-bytes").startswith(
        "Line 3 of toy-values is still a blank."
    )


def test_a_missing_cell_costs_its_questions_only(lab, tmp_path):
    path = toy.hand_in(tmp_path / "in.ipynb")
    notebook = toy.as_json(path)
    notebook["cells"] = [c for c in notebook["cells"] if "toy-values" not in json.dumps(c)]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    made = grade(submission.read(path, lab), lab, toy.pretend, 1)
    assert _points(made)["toy-twice"] == 3
    assert "toy-values is missing" in _comment(made, "toy-bytes")


def test_an_unreadable_file_gets_0_and_the_reason(lab, tmp_path):
    path = tmp_path / "in.ipynb"
    path.write_text('{"cells": [', encoding="utf-8")
    made = grade(submission.read(path, lab), lab, toy.pretend, 1)
    assert made.total == 0 and made.most == 10 and not made.needs_look
    assert all("ends in the middle" in score.comment for score in made.scores)


def test_a_name_from_a_cell_that_is_not_graded(lab, tmp_path):
    path = toy.hand_in(tmp_path / "in.ipynb", toy_values="# [toy-values]\nsize = 2 * eight")
    notebook = toy.as_json(path)
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": "eight = 8"})
    path.write_text(json.dumps(notebook), encoding="utf-8")
    made = grade(submission.read(path, lab), lab, toy.pretend, 1)
    assert _comment(made, "toy-bytes").startswith("eight: defined in another cell")
    assert any(note.startswith("eight: defined in another cell") for note in made.notes)


def test_the_variant_decides_the_numbers(graded):
    assert _points(graded(variant=7))["toy-bytes"] == 0
    assert _points(graded(variant=7, toy_values="size = 23"))["toy-bytes"] == 2


def test_the_same_seed_makes_the_same_grade_and_another_one_other_numbers(graded):
    source = "def twice(x): return x"
    made = [replace(graded(seed=seed, toy_calls=source), seconds=0, seed=0) for seed in (5, 5, 6)]
    assert made[0] == made[1] != made[2]


def test_a_question_draws_the_same_whatever_else_is_asked(graded, lab):
    source = "def twice(x): return x"
    alone = replace(lab, lab=replace(lab.lab, questions=toy.QUESTIONS[1:2]))
    assert _comment(graded(toy_calls=source), "toy-twice") == _comment(
        graded(toy_calls=source, lab=alone), "toy-twice"
    )


# ---------------------------------------------------------------------------------- a key that fails


def _raises(*arguments):
    raise ZeroDivisionError("the key's mistake")


@pytest.mark.parametrize(
    "broken", [{"judge": _raises}, {"asks": _raises}, {"judge": lambda *a: True}, {"judge": lambda *a: None}]
)
def test_a_question_whose_key_fails_needs_a_look(graded, lab, broken):
    questions = (replace(toy.QUESTIONS[0], **broken), *toy.QUESTIONS[1:])
    made = graded(lab=replace(lab, lab=replace(lab.lab, questions=questions)))
    assert _points(made) == {"toy-bytes": 0, "toy-twice": 3, "toy-copied": 0}
    assert [score.look for score in made.scores] == [True, False, False]
    assert made.needs_look and "toy-bytes could not be" in made.problems[0]
    assert "your instructor will look at it" in _comment(made, "toy-bytes")


def test_a_question_missing_on_either_side_needs_a_look(graded, lab):
    fewer = replace(lab, lab=replace(lab.lab, questions=toy.QUESTIONS[:2]))
    assert "toy-copied: the key has no such question." in graded(lab=fewer).problems
    more = (*toy.QUESTIONS, replace(toy.QUESTIONS[0], id="toy-more"))
    made = graded(lab=replace(lab, lab=replace(lab.lab, questions=more)))
    assert made.needs_look and "toy-more: the master has no test cell" in made.problems[0]


def test_a_conversation_that_fails_needs_a_look(graded, monkeypatch):
    monkeypatch.setattr(ask_in_processes, "_conversation", _raises)
    made = graded()
    assert made.total == 0 and all(score.look for score in made.scores)
    assert "grade it by hand" in made.problems[0]


def test_a_sandbox_that_fails_is_no_grade(graded):
    def runner(program, request):
        raise SandboxFailed("no user namespaces today")

    with pytest.raises(SandboxFailed):
        graded(runner=runner)


JUNK = [
    None,
    3,
    "x",
    [],
    {},
    [1],
    {"a": 1},
    1e308,
    float("nan"),
    True,
    [[]] * 3,
    {"values": 3},
    "toy-bytes: size",
]


@pytest.mark.parametrize("junk", JUNK)
def test_whatever_the_process_tells_is_survived(graded, junk):
    names = ["toy-bytes: size", "toy-twice: twice", "toy-copied: copy"]
    keys = ("values", "errors", "returns", "plans", "error")
    told = [{"done": name, **dict.fromkeys(keys, junk)} for name in names]
    told += [{"done": junk}, {"begin": junk}]
    for runner in (lambda p, r: Ran(told), lambda p, r: Ran([{"done": n, "plans": [junk]} for n in names])):
        made = graded(runner=runner)
        assert made.total == 0 and len(made.scores) == 3


def test_a_plan_of_any_shape_is_survived(graded):
    good = {"buffers": [], "steps": [], "returns": {"buffer": "x"}}
    for key in good:
        for junk in JUNK:
            plan = good | {key: junk}
            told = [{"done": "toy-copied: copy", "plans": [plan]}]
            assert graded(runner=lambda p, r, told=told: Ran(told)).total == 0


def test_all_runs_together_have_a_limit(lab, tmp_path):
    def slow(program, request):
        time.sleep(0.05)
        return Ran([{"begin": request["asks"][0]["id"]}], "timeout", "It ran longer than 20 s.")

    limits = sandboxed_programs.ProgramLimits(total_seconds=0.06)
    read = submission.read(toy.hand_in(tmp_path / "in.ipynb"), lab)
    made = grade(read, lab, slow, 1, limits=limits)
    assert "ran longer than 0.06 s; the rest was not run" in _comment(made, "toy-copied")


# ------------------------------------------------------------------------------------------- words


def test_comments_are_fit_to_show(graded):
    nasty = "=HYPERLINK(1)\\n<script>alert(1)</script>\\x1b[31m\\u202e[a](javascript:1) " + "long " * 500
    made = graded(toy_calls=f"def twice(x): raise ValueError('{nasty}')")
    comment = _comment(made, "toy-twice")
    assert len(comment) <= 500 and comment.endswith("…")
    assert not re.search(r"[\x00-\x1f\x7f\u202e]|<[a-z/]|\]\(", comment)


def test_a_verdict_may_say_anything(graded, lab):
    judge = lambda *a: Verdict(False, "\x00\ud800")  # noqa: E731
    questions = (replace(toy.QUESTIONS[0], judge=judge),)
    made = graded(lab=replace(lab, lab=replace(lab.lab, questions=questions)))
    assert json.dumps(made.scores[0].comment, ensure_ascii=False).encode()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1"])
def test_formulas_are_defused(text):
    assert safe_text.cell(text).startswith("'")


def test_ordinary_text_stays():
    for text in ("m < 17 and k > 3", "a - b", "§ 7 – ü", "x = 3"):
        assert safe_text.cell(safe_text.tidy(text)) == text

"""A kernel or a function that never ends costs its author's questions, and the grader little time."""

from __future__ import annotations

import numpy as np

from labs.kit import ask_in_processes
from labs.kit.ask_and_answer import Calls, Case, Kernel, Values
from labs.kit.ask_in_processes import Cell, Ran

SOURCE = "@triton.jit\ndef k(x_ptr):\n    pass\n"
VIEW = {"buffer": "y", "offset": 0, "shape": [1], "strides": [1], "dtype": "float32"}
PLAN = {
    "buffers": [
        {"id": "x", "bytes": 4, "fill": "input", "made_by": ""},
        {"id": "y", "bytes": 4, "fill": "empty", "made_by": "empty"},
    ],
    "steps": [{"kernel": "k", "grid": [1], "args": {}, "options": {}}],
    "returns": VIEW,
}


def _runner(hangs, log):
    """Process S makes a plan for each case, and hangs in the functions of `hangs`; process T in its cases."""

    def run(program, request):
        log.append(program)
        events = []
        for one in request["asks"] if program == "answer" else request["cases"]:
            events.append({"begin": one["id"]})
            if hangs(program, one):
                return Ran(events, "timeout", "It ran longer than 9 s and was stopped.")
            plans = [PLAN] * len(one.get("calls", ()))
            events.append(
                {"done": one["id"], "plans": plans, "returns": [{"value": 1}] * len(plans), "error": "done"}
            )
            if program == "answer":
                events[-1].pop("error")
        return Ran(events)

    return run


def _kernels(number, cases):
    case = Case({"n": 1}, {"x": np.ones(1, np.float32)})
    return {f"q{i}: linear": Kernel("linear", (case,) * cases) for i in range(number)}


def test_a_question_whose_kernel_hung_once_is_not_run_at_its_other_sizes():
    log = []
    runner = _runner(lambda program, one: program == "replay" and one["id"] == "q1: linear 0", log)
    told = ask_in_processes.answer([Cell("c", SOURCE)], _kernels(3, 4), runner)
    assert log == ["answer", "replay", "replay"]
    assert [r.error for r in told.answers["q0: linear"].runs] == ["done"] * 4
    assert [r.error for r in told.answers["q2: linear"].runs] == ["done"] * 4
    first, *others = (run.error for run in told.answers["q1: linear"].runs)
    assert first == "It ran longer than 9 s and was stopped."
    assert set(others) == {f"Not run, since at another size this happened: {first}"}


def test_a_kernel_that_hangs_in_three_questions_is_given_up():
    log = []
    told = ask_in_processes.answer(
        [Cell("c", SOURCE)], _kernels(7, 4), _runner(lambda program, one: program == "replay", log)
    )
    assert log == ["answer"] + ["replay"] * ask_in_processes.MOST_HUNG
    assert all("was stopped" in run.error for answer in told.answers.values() for run in answer.runs)


def test_a_function_that_hangs_in_three_questions_is_given_up_and_others_are_asked():
    log = []
    asks = {f"q{i}: f": Calls("f", ((1,),)) for i in range(6)} | {"q9: g": Calls("g", ((1,),))}
    runner = _runner(lambda program, one: one["function"] == "f", log)
    told = ask_in_processes.answer([], asks, runner)
    assert log == ["answer"] * (ask_in_processes.MOST_HUNG + 1)
    assert told.answers["q9: g"].returns == ((1, ""),)
    assert all("was stopped" in told.answers[f"q{i}: f"].error for i in range(6))


def test_values_that_no_judge_could_work_with_are_made_harmless():
    deep = []
    for _ in range(900):
        deep = [deep]
    sent = {"a": 10**4000, "b": [-(10**400)], "c": "x" * 10**6, "d": deep, "e": {"f": 1.5}}

    def runner(program, request):
        (ask,) = request["asks"]
        return Ran([{"done": ask["id"], "values": sent, "errors": {}}])

    told = ask_in_processes.answer([], {"v": Values((*sent, "gone"))}, runner).answers["v"]
    assert told.values["a"] == float("inf") and told.values["b"] == [float("-inf")]
    assert len(told.values["c"]) == 1000 and len(repr(told.values["d"])) < 50
    assert told.values["e"] == {"f": 1.5}
    assert told.errors == {"gone": "no answer came out."}


def test_an_endless_sum_in_a_kernel_is_refused():
    source = SOURCE.replace("pass", "y = " + "+".join(["1"] * 2000))
    told = ask_in_processes.answer([Cell("c", source)], _kernels(1, 1), _runner(lambda *_: False, []))
    assert told.answers["q0: linear"].error == "an expression is nested too deeply."

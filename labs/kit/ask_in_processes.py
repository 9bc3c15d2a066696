"""Puts asks to somebody's code through child processes, and survives whatever that code does.

A `Runner` starts one of the three programs: "answer" (process S, `run_submitted_code.py`), "replay" and
"compile" (process T, `run_kernels.py`). A student's notebook runs them as plain child processes
(`unsandboxed.py`); a grader runs each in a sandbox of its own (`labs.grading`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from book.say import say
from labs.kit import kernel_source, launch_plan
from labs.kit.arrays import harmless, packed, unpacked
from labs.kit.ask_and_answer import (
    Answer,
    Ask,
    Calls,
    CallsAnswer,
    Kernel,
    KernelAnswer,
    Run,
    Values,
    ValuesAnswer,
)

MOST_HUNG = 3  # asks whose kernel met the time limit, before the others are left out


@dataclass(frozen=True)
class Cell:
    """A piece of submitted code. name: as its author knows it, for messages."""

    name: str
    source: str


@dataclass(frozen=True)
class Ran:
    """How a program went. events: what it told; status: "ok", or how it ended; detail: in a sentence."""

    events: Sequence[Mapping[str, Any]]
    status: str = "ok"
    detail: str = ""
    printed: int = 0


class Runner(Protocol):
    """Runs "answer", "replay" or "compile" on a request."""

    def __call__(self, program: str, request: Mapping[str, Any]) -> Ran: ...


@dataclass(frozen=True)
class Answers:
    """answers by ask; cell_errors: why a cell failed; printed: bytes of output in all."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    cell_errors: Mapping[str, str] = field(default_factory=dict)
    printed: int = 0


def answer(cells: Sequence[Cell], asks: Mapping[str, Ask], runner: Runner) -> Answers:
    """Answer every ask, with a sentence in place of what could not be had."""
    told, cell_errors, printed = _conversation(cells, asks, runner)
    found: dict[str, Answer] = {}
    kernels: dict[str, Kernel] = {}
    for name, ask in asks.items():
        error = str(told[name].get("error") or "")
        try:
            if isinstance(ask, Values):
                values, errors = _pair(told[name], "values", "errors")
                values = {n: harmless(value) for n, value in values.items()}
                lost = {n: say("no answer came out.") for n in ask.names if n not in values}
                found[name] = ValuesAnswer(values, lost | {n: str(why) for n, why in errors.items()}, error)
            elif isinstance(ask, Calls):
                found[name] = CallsAnswer(_returns(ask, told[name]) if not error else (), error)
            elif error:
                found[name] = KernelAnswer(error=error)
            else:
                kernels[name] = ask
        except (KeyError, TypeError, ValueError, AttributeError):
            found[name] = _failed(ask, say("the answer can't be read: something wrote over it."))
    if kernels:
        found |= _kernels(cells, kernels, {name: told[name].get("plans") for name in kernels}, runner)
    return Answers(found, cell_errors, printed)


def _failed(ask: Ask, error: str) -> Answer:
    kind = (
        ValuesAnswer if isinstance(ask, Values) else CallsAnswer if isinstance(ask, Calls) else KernelAnswer
    )
    return kind(error=error)


def _pair(told: Mapping[str, Any], *names: str) -> list[dict[str, Any]]:
    return [dict(told.get(name) or {}) for name in names]


def _returns(ask: Calls, told: Mapping[str, Any]) -> tuple[tuple[Any, str], ...]:
    returns = [(harmless(one.get("value")), str(one.get("error") or "")) for one in told["returns"]]
    if len(returns) != len(ask.calls):
        raise ValueError("an answer for each call was expected")
    return tuple(returns)


def _request(name: str, ask: Ask) -> dict[str, Any]:
    if isinstance(ask, Values):
        return {"id": name, "kind": "values", "names": list(ask.names)}
    if isinstance(ask, Calls):
        return {"id": name, "kind": "calls", "function": ask.function, "calls": [list(c) for c in ask.calls]}
    return {
        "id": name,
        "kind": "plans",
        "function": ask.function,
        "calls": [case.specification() for case in ask.cases],
        "scalars": [dict(case.scalars) for case in ask.cases],
    }


def _conversation(
    cells: Sequence[Cell], asks: Mapping[str, Ask], runner: Runner
) -> tuple[dict[str, Mapping[str, Any]], dict[str, str], int]:
    """What process S told for each ask. Whatever stops it is left out, and the rest is asked again."""
    told: dict[str, Mapping[str, Any]] = {}
    cell_errors: dict[str, str] = {}
    cells, printed = list(cells), 0
    hung: dict[str | None, int] = {}
    while waiting := [name for name in asks if name not in told]:
        request = {
            "cells": [vars(cell) | {"id": cell.name} for cell in cells],
            "asks": [_request(name, asks[name]) for name in waiting],
        }
        ran = runner("answer", request)
        printed += ran.printed
        culprit = None
        for event in ran.events:
            if "begin" in event:
                culprit = event["begin"]
                continue
            culprit, name = None, event.get("done")
            if name in waiting:
                told.setdefault(name, event)
            elif any(cell.name == name for cell in cells) and event.get("error"):
                cell_errors.setdefault(name, str(event["error"]))
        why = ran.detail or say("the process ended early, without an error.")
        if any(cell.name == culprit for cell in cells):
            cell_errors[culprit] = why
            cells = [cell for cell in cells if cell.name != culprit]
        elif culprit in waiting:
            told[culprit] = {"error": why}
            if ran.status == "timeout":  # it takes the whole limit each time
                function = getattr(asks[culprit], "function", None)
                hung[function] = hung.get(function, 0) + 1
                if function and hung[function] == MOST_HUNG:
                    told |= {
                        n: {"error": why}
                        for n in waiting
                        if getattr(asks[n], "function", None) == function and n not in told
                    }
        else:  # it came to its end, or died where nothing can be named
            told |= {name: {"error": why} for name in waiting if name not in told}
    return told, cell_errors, printed


# --------------------------------------------------------------------------------------- kernels


def _kernels(
    cells: Sequence[Cell], asks: Mapping[str, Kernel], plans: Mapping[str, Any], runner: Runner
) -> dict[str, KernelAnswer]:
    try:
        kernels = kernel_source.extract(_readable(cells))
    except kernel_source.NotTriton as error:
        return {name: KernelAnswer(error=str(error)) for name in asks}
    except RecursionError:
        return {name: KernelAnswer(error=say("an expression is nested too deeply.")) for name in asks}
    runs: dict[tuple[str, int], Run] = {}
    cases: list[dict[str, Any]] = []
    compiling: list[dict[str, Any]] = []
    for name, ask in asks.items():
        made = plans[name] if isinstance(plans[name], list) else []
        made = made + [{"error": say("no plan came out.")}] * (len(ask.cases) - len(made))
        for i, (case, one) in enumerate(zip(ask.cases, made, strict=False)):
            error, one = _checked(one, kernels.names, case)
            runs[name, i] = Run(case, error=error)
            if not error:
                memory = {key: packed(array) for key, array in case.memory().items()}
                cases.append({"id": f"{name} {i}", "plan": one, "inputs": memory})
        if ask.targets and cases and not runs[name, len(ask.cases) - 1].error:
            compiling.append({"id": name, "plan": cases[-1]["plan"], "targets": list(ask.targets)})
    told = _each(runner, "replay", kernels.text, cases)
    for case in cases:
        name, _, i = case["id"].rpartition(" ")
        runs[name, int(i)] = _run(runs[name, int(i)], case["plan"], told[case["id"]], asks[name].result)
    facts = _each(runner, "compile", kernels.text, compiling)
    return {
        name: KernelAnswer(
            tuple(runs[name, i] for i in range(len(ask.cases))),
            {
                t: facts[f"{name} {t}"].get("compiled") or str(facts[f"{name} {t}"].get("error"))
                for t in ask.targets
                if f"{name} {t}" in facts
            },
        )
        for name, ask in asks.items()
    }


def _readable(cells: Sequence[Cell]) -> list[str]:
    """The sources that are Python at all; the others were reported when they were run."""
    good = []
    for cell in cells:
        try:
            compile(cell.source, cell.name, "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        good.append(cell.source)
    return good


def _checked(made: Any, kernels: Sequence[str], case: Any) -> tuple[str, dict[str, Any]]:
    """(why the plan is refused or "", the plan)."""
    if not isinstance(made, Mapping):
        return say("the launcher's plan can't be read."), {}
    if made.get("error"):
        return str(made["error"]), {}
    try:
        return "", launch_plan.check(made, kernels, case.specification())
    except launch_plan.BadPlan as error:
        return str(error), {}


def _each(runner: Runner, program: str, kernels: str, cases: list[dict]) -> dict[str, Mapping[str, Any]]:
    """What process T told for each case (and target). A case that stops it is left out, and the rest run."""
    names = (
        [c["id"] for c in cases]
        if program == "replay"
        else [f"{c['id']} {t}" for c in cases for t in c["targets"]]
    )
    told: dict[str, Mapping[str, Any]] = {}
    hung = 0
    while waiting := [name for name in names if name not in told]:
        if program == "replay":
            rest = [c for c in cases if c["id"] in waiting]
        else:
            rest = [{**c, "targets": [t for t in c["targets"] if f"{c['id']} {t}" in waiting]} for c in cases]
        ran = runner(program, {"kernels": kernels, "cases": rest})
        begun = None
        for event in ran.events:
            begun = event.get("begin")
            if event.get("done") in waiting:
                told[event["done"]] = event
        why = ran.detail or say("the process ended early, without an error.")
        culprits = [begun] if begun in waiting else waiting
        told |= {n: {"error": why} for n in culprits if n not in told}
        if ran.status == "timeout" and begun in waiting:
            # Each of these takes as long as the limit allows. A question with one is lost already, and
            # a kernel that hangs in three will hang again.
            hung += 1
            ask = begun.rpartition(" ")[0]
            lost = [n for n in waiting if hung == MOST_HUNG or n.rpartition(" ")[0] == ask]
            told |= {
                n: {"error": say("Not run, since at another size this happened: {why}", why=why)}
                for n in lost
                if n not in told
            }
    return told


def _run(run: Run, made: Mapping[str, Any], told: Mapping[str, Any], result: str) -> Run:
    if told.get("error"):
        return replace(run, error=str(told["error"]))
    traffic: dict[str, dict[str, dict[str, int]]] = {}
    for buffer, verbs in told["traffic"].items():
        name = buffer if buffer in run.case.inputs else "scratch"
        name = result if buffer == made["returns"]["buffer"] else name
        for verb, kinds in verbs.items():
            sums = traffic.setdefault(name, {}).setdefault(verb, dict.fromkeys(kinds, 0))
            for kind, size in kinds.items():
                sums[kind] += size
    launches = tuple(
        (
            step["kernel"],
            tuple(step["grid"]),
            {key: value["scalar"] for key, value in step["args"].items() if "scalar" in value},
        )
        for step in made["steps"]
        if "kernel" in step
    )
    return replace(
        run,
        output=unpacked(told["output"]),
        traffic=traffic,
        dot_flops=told["dot_flops"],
        alu_flops=told["alu_flops"],
        programs=told["programs"],
        race=str(told["race"]),
        extra=tuple(map(str, told["extra"])),
        launches=launches,
    )

"""A tiny lab to grade: one question about values, one about a function, one about a kernel."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from labs.kit import run_submitted_code
from labs.kit.ask_and_answer import Calls, Case, Kernel, Values
from labs.kit.ask_in_processes import Ran
from labs.kit.lab import Lab
from labs.kit.question import Question, Verdict

NAME = "toy-lab"
STUB = "# your code here\nraise NotImplementedError"
VALUES = "# [toy-values] How many bytes?\n{}\n"
CALLS = "# [toy-calls] Twice, please\ndef twice(x):\n{}\n"
KERNEL = """# [toy-kernel] Copy a vector
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
{}

def copy(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""
RIGHT = {
    "toy-values": VALUES.format("size = 2 * 8"),
    "toy-calls": CALLS.format("    return 2 * x"),
    "toy-kernel": KERNEL.format("    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)"),
}
BLANKS = {
    "toy-values": VALUES.format(STUB),
    "toy-calls": CALLS.format("    # your code here\n    raise NotImplementedError"),
    "toy-kernel": KERNEL.format("    # your code here\n    raise NotImplementedError"),
}
SOLVED = {
    "toy-values": VALUES.format("### BEGIN SOLUTION\nsize = 2 * 8\n### END SOLUTION"),
    "toy-calls": CALLS.format("    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"),
    "toy-kernel": RIGHT["toy-kernel"]
    .replace("    tl.store", "    ### BEGIN SOLUTION\n    tl.store")
    .replace("\n\ndef", "\n    ### END SOLUTION\n\ndef"),
}
POINTS = {"toy-bytes": 2, "toy-twice": 3, "toy-copied": 5}


def _bytes(answers, asks, draw):
    answer = answers["size"]
    if answer.error or answer.errors:
        return Verdict(False, answer.error or answer.errors["size"])
    right = answer.values["size"] == draw.numbers["size"]
    return Verdict(right, "" if right else f"size is {answer.values['size']}; count the bytes of 8 numbers.")


def _twice(answers, asks, draw):
    (name,) = asks
    if answers[name].error:
        return Verdict(False, answers[name].error)
    for (x,), (value, error) in zip(asks[name].calls, answers[name].returns, strict=True):
        if error or value != 2 * x:
            return Verdict(False, error or f"twice({x}) is {value}, and {2 * x} is right.")
    return Verdict(True)


def _copied(answers, asks, draw):
    answer = answers["copy"]
    for run in answer.runs:
        if run.error or not np.array_equal(run.output, run.case.inputs["x"]):
            return Verdict(False, run.error or f"wrong at {run.case}.")
    return Verdict(not answer.error, answer.error)


def _cases(draw):
    x = draw.rng.standard_normal(100).astype(np.float32)
    return {"copy": Kernel("copy", (Case({"n": 100}, {"x": x}),), targets=("sm_80",))}


QUESTIONS = (
    Question("toy-bytes", "Bytes", ("toy-values",), lambda d: {"size": Values(("size",))}, _bytes),
    Question(
        "toy-twice",
        "Twice",
        ("toy-calls",),
        lambda d: {"twice": Calls("twice", ((int(d.rng.integers(1000)),), (0.5,)))},
        _twice,
    ),
    Question("toy-copied", "A copy", ("toy-kernel",), _cases, _copied),
)


def numbers(variant: int) -> dict[str, int]:
    """Variant 0 asks for 16 bytes, variant 7 for 23."""
    return {"size": 16 + variant}


@dataclass(frozen=True)
class Assignment:
    """As labs.assignments.Assignment, with its lab given."""

    name: str
    master: Path
    lab: Lab

    @property
    def short(self) -> str:
        """As in labs.assignments."""
        return "toy"

    def questions(self) -> Any:
        """The same as the key."""
        return self.key()

    def key(self) -> Any:
        """Something that has a LAB and a name."""
        return SimpleNamespace(LAB=self.lab, __name__=__name__)


def assignment(folder: Path, questions: tuple[Question, ...] = QUESTIONS, name: str = NAME) -> Assignment:
    """The lab with its master written into `folder`."""
    master = folder / f"{name}.ipynb"
    master.parent.mkdir(parents=True, exist_ok=True)
    master.write_text(json.dumps(notebook(SOLVED), indent=1), encoding="utf-8")
    return Assignment(name, master, Lab(name, questions, numbers))


def notebook(sources: dict[str, str]) -> dict[str, Any]:
    """A notebook with these solution cells and the lab's test cells."""
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "# A toy"}]
    cells.append(_code("check = print", _about("toy-setup", locked=True)))
    for (name, source), (test, points) in zip(sources.items(), POINTS.items(), strict=False):
        cells.append(_code(source, _about(name, solution=True)))
        hidden = f"### BEGIN HIDDEN TESTS\nkey.check({test!r})\n### END HIDDEN TESTS"
        about = _about(test, grade=True, locked=True, points=points)
        cells.append(_code(f"check({test!r})\n{hidden}", about))
    for number, cell in enumerate(cells):
        cell["id"] = f"toy-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _code(source: str, about: dict[str, Any]) -> dict[str, Any]:
    cell = {"cell_type": "code", "execution_count": None, "outputs": [], "source": source}
    return cell | {"metadata": {"nbgrader": about}}


def _about(name: str, **more: Any) -> dict[str, Any]:
    about = {"grade": False, "grade_id": name, "locked": False, "schema_version": 3, "solution": False}
    return {**about, "task": False, **more}


def hand_in(path: Path, sources: dict[str, str] | None = None, **changed: str) -> Path:
    """Write a submission; `changed` maps grade_ids (with _ for -) to other sources."""
    sources = dict(sources or RIGHT) | {name.replace("_", "-"): text for name, text in changed.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook(sources), indent=1), encoding="utf-8")
    return path


def as_json(path: Path) -> dict[str, Any]:
    """A submission as a plain dict, to be damaged."""
    return json.loads(path.read_text(encoding="utf-8"))


def pretend(program: str, request: dict[str, Any]) -> Ran:
    """A Runner without processes, for tests of what surrounds it. It knows no kernels, so those fail."""
    events: list[dict[str, Any]] = []
    names: dict[str, Any] = {}
    for cell in request["cells"]:
        error = (
            None
            if "triton" in cell["source"]
            else run_submitted_code.run_cell(cell["id"], cell["source"], names)
        )
        events += [{"begin": cell["id"]}, {"done": cell["id"], "error": error}]
    for ask in request["asks"]:
        try:
            answers = {"values": run_submitted_code.values, "calls": run_submitted_code.calls}[ask["kind"]](
                ask, names
            )
        except KeyError:
            answers = {"error": "no kernels here"}
        except run_submitted_code.Problem as problem:
            answers = {"error": str(problem)}
        events += [{"begin": ask["id"]}, {"done": ask["id"], **answers}]
    return Ran(events)

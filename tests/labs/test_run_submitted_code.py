"""Process S: what foreign code makes of itself. One child answers for the whole file."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from kernels.contract.processes import ROOT
from labs.kit import unsandboxed
from labs.kit.ask_and_answer import Calls, Case, Kernel, Values
from labs.kit.ask_in_processes import Cell, answer

KERNEL = """
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=inside), mask=inside)


def started(x, y):
    copy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), BLOCK=16, num_warps=2)
    return y


def honest(x):
    return started(x, torch.empty_like(x))


def zeroed(x):
    return started(x, torch.empty_like(x).zero_())


def a_view(x):
    return started(x.reshape(-1), torch.empty(x.numel(), dtype=x.dtype)).view(x.shape)


def by_torch(x):
    return x * 1


def copied(x):
    return started(x.contiguous().clone(), torch.empty_like(x))


def overwritten(x):
    y = started(x, torch.empty_like(x))
    y.copy_(x)
    return y


def input_changed(x):
    x.mul_(2)
    return started(x, torch.empty_like(x))


KEPT = torch.empty(7, dtype=torch.float16)


def cached(x):
    return started(x, KEPT)


def a_slice_of_it(x):
    return started(x, KEPT[: x.numel()])


class Lazy(torch.Tensor):
    pass


def lazy(x):
    return started(x, torch.empty_like(x)).as_subclass(Lazy)


def no_tensor(x):
    started(x, torch.empty_like(x))


def no_grid(x):
    copy_kernel(x, x, 3, 16)


def wrong_arguments(x):
    copy_kernel[(1,)](x)
    return x


def an_object(x):
    copy_kernel[(1,)](x, x, [1], BLOCK=16)
    return x


def not_a_kernel(x):
    y = torch.empty_like(x)
    triton.jit(by_torch)[(1,)](x)
    return y
"""
PLAIN = """
a, b, c = 3, np.float32(2.5), torch.tensor([1.0, 2.0])
big = np.zeros(1_000_000)
blank = ...


def double(x):
    if x == "stop":
        raise SystemExit
    return 2 * x


def oracle(x):
    return object()
"""
KERNELS = ["honest", "zeroed", "a_view", "by_torch", "copied", "overwritten", "input_changed"]
KERNELS += [
    "cached",
    "a_slice_of_it",
    "lazy",
    "no_tensor",
    "no_grid",
    "wrong_arguments",
    "an_object",
    "not_a_kernel",
]


@pytest.fixture(scope="module")
def told():
    case = Case({"n": 7}, {"x": np.arange(7, dtype=np.float16)})
    cells = [
        Cell("plain", PLAIN),
        Cell("kernels", KERNEL),
        Cell("broken", "1 / 0"),
        Cell("unfinished", "def f(:"),
        Cell("importing", "import nothing_like_it"),
    ]
    asks = {
        "values": Values(("a", "b", "c", "big", "blank", "absent")),
        "calls": Calls("double", ((4,), ("x",), (None,))),
        "stop": Calls("double", (("stop",),)),
        "oracle": Calls("oracle", ((1,),)),
        "absent": Calls("absent", ((1,),)),
        **{name: Kernel(name, (case,)) for name in KERNELS},
    }
    return answer(cells, asks, unsandboxed.run)


def test_values_come_out_as_numbers_and_what_is_none_gets_a_sentence(told):
    found = told.answers["values"]
    assert found.values == {"a": 3, "b": 2.5, "c": [1.0, 2.0]}
    assert found.errors["big"].startswith("big: ") and "too large" in found.errors["big"]
    assert "not defined" in found.errors["blank"] and "not defined" in found.errors["absent"]


def test_calls_come_out_one_by_one_with_the_line_of_an_error(told):
    (four, _), (text, _), (_, error) = told.answers["calls"].returns
    assert (four, text) == (8, "xx")
    assert error.startswith("TypeError") and "line 10 of plain" in error


def test_a_call_that_exits_ends_only_its_own_ask(told):
    assert "SystemExit" in told.answers["stop"].error
    assert "object is no number" in told.answers["oracle"].returns[0][1]
    assert "not defined" in told.answers["absent"].error


def test_a_broken_cell_is_named_and_the_others_count(told):
    assert told.cell_errors["broken"] == "ZeroDivisionError: division by zero (line 1 of broken)"
    assert told.cell_errors["unfinished"] == "SyntaxError: invalid syntax (line 1 of unfinished)"
    assert told.cell_errors["importing"].startswith(
        "ModuleNotFoundError: No module named 'nothing_like_it'; graded"
    )


@pytest.mark.parametrize("name", ["honest", "zeroed", "a_view"])
def test_an_honest_launcher_is_replayed_on_the_grader_s_numbers(told, name):
    (run,) = told.answers[name].runs
    assert run.error == ""
    assert run.output.ravel().tolist() == list(range(7))
    assert run.bytes("x", "reads") == run.bytes("y", "writes") == 14
    assert run.launches[0][1] == (1,)


@pytest.mark.parametrize(
    "name, word",
    [
        ("by_torch", "computed by torch.mul"),
        ("copied", "x_ptr was computed by torch.clone on the host"),
        ("overwritten", "computed by torch.copy_"),
        ("input_changed", "x was changed on the host, by torch.mul_"),
        ("cached", "did not make"),
        ("a_slice_of_it", "did not make"),
        ("lazy", "Lazy: only a plain torch.Tensor"),
        ("no_tensor", "returned NoneType"),
        ("no_grid", "called without a grid"),
        ("wrong_arguments", "missing a required argument: 'y_ptr'"),
        ("an_object", "argument n: a list"),
        ("not_a_kernel", "by_torch is launched, and is no @triton.jit kernel"),
    ],
)
def test_work_done_elsewhere_than_in_a_kernel_is_refused_with_its_reason(told, name, word):
    (run,) = told.answers[name].runs
    assert run.output is None
    assert word in run.error


def test_torch_is_not_imported_for_cells_that_say_no_name_of_it():
    """It takes more than a second, for each submission. That it's there for others is seen above."""
    cell = {"id": "cell", "source": "import sys\ndef imported(name):\n    return name in sys.modules"}
    ask = {"id": "ask", "kind": "calls", "function": "imported", "calls": [["numpy"], ["torch"]]}
    done = subprocess.run(
        [sys.executable, ROOT / "labs" / "kit" / "run_submitted_code.py"],
        input=json.dumps({"cells": [cell], "asks": [ask]}).encode(),
        env={**os.environ, "ROOFLINE_ANSWER_FD": "1"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    returns = unsandboxed.events(done.stdout)[-1]["returns"]
    assert [one["value"] for one in returns] == [True, False]


def test_watching_a_launcher_does_not_bring_torchs_compiler_along():
    """It takes a second to import, for each question about a kernel."""
    code = (
        "import json, sys, torch\n"
        "from labs.kit import run_submitted_code\n"
        "given = {'x': {'shape': [4], 'strides': [1], 'dtype': 'float32'}}\n"
        "made = run_submitted_code.plan(lambda x: torch.empty_like(x), given, {})\n"
        "print(json.dumps([len(made['buffers']), 'torch._dynamo' in sys.modules]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [2, False]

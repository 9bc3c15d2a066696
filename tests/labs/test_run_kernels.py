"""Process T, called in this process: what kernels put out and touch, whatever the plan looks like."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import numpy as np
import pytest

from labs.kit import kernel_source, run_kernels
from labs.kit.arrays import unpacked

SOURCE = """
@triton.jit
def k(x_ptr, y_ptr, n, START: tl.constexpr, BLOCK: tl.constexpr):
    offsets = START + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def adds(x_ptr, y_ptr):
    tl.store(y_ptr, tl.atomic_add(x_ptr, 1.0))


@triton.jit
def passes_on(x_ptr, y_ptr):
    i = tl.program_id(0)
    tl.store(y_ptr + i + 1, tl.load(x_ptr + i) if i == 0 else tl.load(y_ptr + i))


@triton.jit
def numbers_in_order_of_arrival(x_ptr, y_ptr):
    tl.store(y_ptr + tl.program_id(0), tl.atomic_add(x_ptr, 1.0))
"""


@pytest.fixture(scope="module")
def module():
    return run_kernels.load(kernel_source.extract([SOURCE]).text)


def view(buffer, size, offset=0):
    return {"buffer": buffer, "offset": offset, "shape": [size], "strides": [1], "dtype": "float32"}


def plan(kernel="k", *, x=None, fill="empty", programs=1, **scalars):
    args = {"x_ptr": {"view": x or view("x", 8)}, "y_ptr": {"view": view("b", 8)}}
    args |= {name: {"scalar": value} for name, value in scalars.items()}
    return {
        "buffers": [{"id": "x", "bytes": 32, "fill": "input"}, {"id": "b", "bytes": 32, "fill": fill}],
        "steps": [{"kernel": kernel, "grid": [programs], "args": args, "options": {}}],
        "returns": view("b", 8),
    }


X = np.arange(8, dtype=np.float32)


def test_outputs_and_traffic_come_out(module):
    out = run_kernels.replay(module, plan(n=8, START=0, BLOCK=8), {"x": X.copy()})
    assert unpacked(out["output"]).tolist() == X.tolist()
    assert out["traffic"]["x"]["reads"]["unique"] == 32
    assert out["traffic"]["b"]["writes"]["unique"] == 32
    assert out["programs"] == 1


@pytest.mark.parametrize("fill, empty", [("empty", np.isnan), ("zeros", lambda y: y == 0)])
def test_where_nothing_was_written_there_is_nan_or_the_zeros_that_were_asked_for(module, fill, empty):
    y = unpacked(
        run_kernels.replay(module, plan(fill=fill, n=5, START=0, BLOCK=8), {"x": X.copy()})["output"]
    )
    assert y[:5].tolist() == X[:5].tolist()
    assert empty(y[5:]).all()


def test_a_view_in_the_middle_of_a_buffer_counts_for_the_buffer(module):
    out = run_kernels.replay(module, plan(x=view("x", 4, 4), n=4, START=0, BLOCK=4), {"x": X.copy()})
    assert unpacked(out["output"])[:4].tolist() == X[4:].tolist()
    assert out["traffic"]["x"]["reads"]["unique"] == 16


def test_an_access_outside_the_tensor_stops_it_and_names_the_line(module):
    with pytest.raises(Exception) as stopped:
        run_kernels.replay(module, plan(n=9, START=1, BLOCK=8), {"x": X.copy()})
    said = run_kernels.said(stopped.value)
    assert "OutOfBounds: x" in said and "element 8" in said
    assert "in `x = tl.load(x_ptr + offsets" in said


def test_an_atomic_can_t_read_unseen(module):
    out = run_kernels.replay(module, plan("adds"), {"x": X.copy()})
    assert out["traffic"]["x"]["reads"]["unique"] == 4
    assert out["traffic"]["x"]["writes"]["unique"] == 4


def test_a_race_comes_out_as_a_sentence_and_none_as_nothing(module):
    out = run_kernels.replay(module, plan("passes_on", programs=3), {"x": X.copy()})
    assert out["race"].startswith("program 1 reads y[1], which 0 of the same launch writes")
    assert run_kernels.replay(module, plan(n=8, START=0, BLOCK=8), {"x": X.copy()})["race"] == ""


def test_a_result_that_depends_on_who_comes_first_comes_out_too(module):
    out = run_kernels.replay(module, plan("numbers_in_order_of_arrival", programs=3), {"x": X.copy()})
    assert out["race"].startswith("result[0] is 0 when the programs run in order, and 2 when they run")
    assert unpacked(out["output"])[:3].tolist() == [0, 1, 2], "the second run starts from the same numbers"


def test_what_was_read_again_comes_out_with_its_reason(module):
    out = run_kernels.replay(module, plan(n=8, START=0, BLOCK=8, programs=1), {"x": X.copy()})
    assert out["extra"] == []
    out = run_kernels.replay(module, plan("adds", programs=3), {"x": X.copy()})
    assert out["extra"][0].startswith("x: changed by 3 atomics")


def test_the_launcher_s_process_imports_nothing_of_ours():
    text = Path(importlib.import_module("labs.kit.run_submitted_code").__file__).read_text(encoding="utf-8")
    assert not any(
        line.startswith(("from book", "from kernels", "from labs", "import book"))
        for line in text.splitlines()
    )


def test_what_the_compiler_says_is_told_without_a_page_of_source():
    from triton.compiler.errors import CompilationError

    node = ast.parse("a = 1\nb = c").body[1]
    outer = CompilationError("def k():\n    b = tl.dot(a, c)", node)
    assert run_kernels.said(CompilationError("def k():\n    b = c", node, "c is not defined")) == (
        "CompilationError: c is not defined (in `b = c`)"
    )
    outer.__cause__ = ValueError("ranks differ")
    assert run_kernels.said(outer) == "ValueError: ranks differ (in `b = tl.dot(a, c)`)"

"""Kernels are read on a page: the lines of every @triton.jit function fit its width."""

import ast
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
WIDEST = 88


def jit_functions(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", [])]
        if "triton.jit" in decorators:
            yield node


FILES = [p for p in sorted(KERNELS.glob("*.py")) if any(jit_functions(p))]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_kernel_fits_the_page(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    wide = [
        f"{path.name}:{number}: {len(lines[number - 1])} characters"
        for function in jit_functions(path)
        for number in range(function.lineno, function.end_lineno + 1)
        if len(lines[number - 1]) > WIDEST
    ]
    assert not wide, "\n".join(wide)


def test_the_kernels_were_found():
    assert {"stream", "fma_chain", "matmul", "linear"} <= {p.stem for p in FILES}

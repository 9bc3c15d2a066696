"""Kernels come out of submitted text as text, and nothing that isn't Triton's language comes along."""

from __future__ import annotations

import ast

import pytest

from labs.kit.kernel_source import NotTriton, extract

GOOD = '''
import os
BLOCK: tl.constexpr = 64
SCALE = 0.5
launches = []

@triton.jit
def half(x):
    return x * SCALE

@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK_N: tl.constexpr = 16):
    """Copies."""
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = offsets < n
    for _ in tl.static_range(2):
        x = half(tl.load(x_ptr + offsets, mask=inside, other=0.0))
    if n > BLOCK:
        x += tl.math.exp2(x).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + offsets, x, mask=inside)

def copy(x):
    launches.append(os.getcwd())
'''


def kernel(*body: str, signature: str = "x_ptr, n", decorator: str = "@triton.jit") -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"{decorator}\ndef k({signature}):\n{lines}\n"


def test_kernels_and_their_constants_come_out_and_nothing_else():
    found = extract([GOOD])
    assert found.names == ("half", "copy_kernel")
    tree = ast.parse(found.text)
    kinds = [type(node).__name__ for node in tree.body]
    assert kinds == ["Import", "Import", "AnnAssign", "Assign", "FunctionDef", "FunctionDef"]
    for word in ("os", "launches", "getcwd"):
        assert word not in {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def test_of_two_kernels_with_one_name_the_later_counts():
    found = extract([kernel("tl.store(x_ptr, 1.0)"), kernel("tl.store(x_ptr, 2.0)")])
    assert found.names == ("k",)
    assert "2.0" in found.text and "1.0" not in found.text


def test_text_without_kernels_gives_none():
    assert extract(["def linear(x, w):\n    return x @ w\n"]).names == ()


def test_decorators_annotations_and_defaults_are_not_carried_over():
    source = kernel(
        "tl.store(x_ptr, n)", signature="x_ptr: print('a'), n: int = 3", decorator="@triton.jit(repr=print)"
    )
    text = extract([source]).text
    assert "print" not in text and "@triton.jit\n" in text


@pytest.mark.parametrize(
    "body, word",
    [
        ("import os", "import os"),
        ("from os import system", "from os"),
        ("open('x')", "open"),
        ("eval('1')", "eval"),
        ("getattr(tl, 'core')", "getattr"),
        ("print(n)", "print"),
        ("globals()", "globals"),
        ("x = tl.core", "tl.core"),
        ("x = tl.load.__globals__", "__globals__"),
        ("x = tl.__builtins__", "__builtins__"),
        ("x = n.__class__", "__class__"),
        ("x = n.handle", "handle"),
        ("x = tl.tensor(n, n)", "tl.tensor"),
        ("tl.device_print('a', n)", "device_print"),
        ("x = tl.inline_asm_elementwise('', '', [n], n, True, 1)", "inline_asm"),
        ("x = triton.runtime", "triton.runtime"),
        ("x = tl.math.core", "tl.math.core"),
        ("tl.load = n", "can't be set"),
        ("n.data = 3", "can't be set"),
        ("tl = n", "own name"),
        ("x = [i for i in range(3)]", "ListComp"),
        ("x = {i for i in range(3)}", "SetComp"),
        ("x = (i for i in range(3))", "GeneratorExp"),
        ("x = lambda: 1", "Lambda"),
        ("x = f'{n}'", "JoinedStr"),
        ("x = (y := 3)", "NamedExpr"),
        ("x = {'a': n}", "Dict"),
        ("x = (*n, 1)", "Starred"),
        ("def inner(): pass", "def inner"),
        ("class A: pass", "class A"),
        ("global n", "global n"),
        ("del n", "del n"),
        ("with n: pass", "with n"),
        ("try:\n        pass\n    except Exception:\n        pass", "try"),
        ("raise ValueError", "raise"),
        ("yield n", "Yield"),
        ("await n", "Await"),
        ("x = np.load('key')", "np"),
    ],
)
def test_what_is_not_triton_is_refused_and_named(body, word):
    with pytest.raises(NotTriton, match="kernel k, line") as refused:
        extract([kernel(body)])
    assert word in str(refused.value)


@pytest.mark.parametrize(
    "signature, word",
    [("*args", "args"), ("**kwargs", "kwargs"), ("x_ptr, n=open('x')", "default"), ("__x", "__x")],
)
def test_a_signature_that_does_something_is_refused(signature, word):
    with pytest.raises(NotTriton, match=word if word.startswith("_") else "named arguments|default"):
        extract([kernel("pass", signature=signature)])


@pytest.mark.parametrize(
    "line", ["BLOCK = open('x')", "BLOCK: print(1) = 3", "BLOCK = [1]", "__x = 1", "a = b = 1"]
)
def test_a_module_level_line_that_is_no_plain_number_does_not_come_along(line):
    source = line + "\n" + kernel("tl.store(x_ptr, BLOCK)")
    with pytest.raises(NotTriton, match="BLOCK is neither"):
        extract([source])


def test_a_book_of_kernels_is_refused():
    with pytest.raises(NotTriton, match="at most"):
        extract([kernel(*["tl.store(x_ptr, n)"] * 3000)])

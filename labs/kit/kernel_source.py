"""Takes the Triton kernels out of submitted text, and refuses what is not Triton.

In Triton's interpreter a kernel is Python, so a kernel that reaches outside Triton's language could
reach the counter. A real one can't: the compiler takes `tl.*`, arithmetic, loops and names. The
same is asked of it here, from the syntax tree, before anything runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from book.say import say

HEADER = "import triton\nimport triton.language as tl\n"
LONGEST = 40_000  # characters of kernels

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Return)
_STATEMENTS += (ast.Pass, ast.Assert)
_EXPRESSIONS = (ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute)
_EXPRESSIONS += (ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Constant, ast.Name, ast.keyword)
_GRAMMAR = (ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.expr_context)
_BUILTINS = {"range", "min", "max", "abs", "float", "int", "bool", "len", "sum"}
# What of triton.language a kernel may use. Assembly, printing and raw modules are left out.
_TL = {
    "abs", "arange", "associative_scan", "assume", "atomic_add", "atomic_max", "atomic_min", "bfloat16",
    "broadcast", "broadcast_to", "cast", "cat", "cdiv", "ceil", "clamp", "constexpr", "cos", "cumsum",
    "debug_barrier", "div_rn", "dot", "erf", "exp", "exp2", "expand_dims", "fdiv", "flip", "float16",
    "float32", "float64", "floor", "fma", "full", "gather", "int1", "int16", "int32", "int64", "int8",
    "interleave", "join", "load", "log", "log2", "math", "max", "max_constancy", "max_contiguous",
    "maximum", "min", "minimum", "multiple_of", "num_programs", "permute", "program_id", "range",
    "ravel", "reduce", "reshape", "rsqrt", "sigmoid", "sin", "softmax", "split", "sqrt", "sqrt_rn",
    "static_assert", "static_range", "store", "sum", "swizzle2d", "trans", "uint16", "uint32", "uint64",
    "uint8", "view", "where", "xor_sum", "zeros", "zeros_like",
}  # fmt: skip
_MATH = {
    "abs",
    "ceil",
    "cos",
    "erf",
    "exp",
    "exp2",
    "floor",
    "fma",
    "log",
    "log2",
    "max",
    "min",
    "rsqrt",
    "sin",
    "sqrt",
}
# Members of a block or a pointer. (`shape` and `dtype` are needed to write a general kernel.)
_MEMBERS = {
    "T", "abs", "advance", "argmax", "argmin", "broadcast_to", "cast", "cdiv", "cumsum", "dtype",
    "element_ty", "exp", "expand_dims", "logical_and", "logical_or", "max", "min", "numel", "permute",
    "ravel", "reduce", "reshape", "scalar", "shape", "split", "sum", "to", "trans", "type", "value",
    "view",
}  # fmt: skip


class NotTriton(ValueError):
    """The text holds no kernel, or one that is not written in Triton's language."""


@dataclass(frozen=True)
class KernelSource:
    """text: a module with nothing but the kernels and their constants. names: the kernels'."""

    text: str
    names: tuple[str, ...]


def extract(sources: Iterable[str]) -> KernelSource:
    """The kernels in these cells, in order; of two with one name the later counts.

    Raises NotTriton, naming the kernel and the line, for anything outside Triton's language, and
    SyntaxError as Python does.
    """
    kernels: dict[str, ast.FunctionDef] = {}
    constants: dict[str, ast.stmt] = {}
    for source in sources:
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and _is_kernel(node):
                kernels[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign) and (name := _constant(node)):
                constants[name] = node
    known = {*kernels, *constants}
    for kernel in kernels.values():
        _check(kernel, known)
        kernel.decorator_list = [ast.parse("triton.jit", mode="eval").body]
    text = HEADER + "\n\n".join(ast.unparse(node) for node in [*constants.values(), *kernels.values()]) + "\n"
    if len(text) > LONGEST:
        raise NotTriton(
            say(
                "the kernels have {count:,} characters; {most:,} at most.",
                count=len(text),
                most=LONGEST,
            )
        )
    return KernelSource(text, tuple(kernels))


def _is_kernel(node: ast.FunctionDef) -> bool:
    names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    return any(name in ("triton.jit", "jit") for name in names)


def _constant(node: ast.Assign | ast.AnnAssign) -> str:
    """The name of a module-level number that kernels may use: `BLOCK: tl.constexpr = 64`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name) or node.value is None:
        return ""
    value = node.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "tl.constexpr" and len(value.args) == 1:
        value = value.args[0]
    if not isinstance(value, ast.Constant) or not isinstance(value.value, int | float | bool):
        return ""
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) not in (
        "tl.constexpr",
        "int",
        "float",
    ):
        return ""
    return "" if targets[0].id.startswith("_") else targets[0].id


def _check(kernel: ast.FunctionDef, known: set[str]) -> None:
    arguments = kernel.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        raise NotTriton(
            say(
                "{kernel}: a kernel takes named arguments, no *args and no **kwargs.",
                kernel=kernel.name,
            )
        )
    every = [*arguments.args, *arguments.kwonlyargs]
    for argument in every:
        if argument.annotation is not None and ast.unparse(argument.annotation) not in (
            "tl.constexpr",
            "constexpr",
        ):
            argument.annotation = None
        if argument.arg.startswith("_"):
            raise _at(
                kernel,
                argument,
                say(
                    "the argument {arg} begins with an underscore; rename it.",
                    arg=argument.arg,
                ),
            )
    for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
        if not isinstance(default, ast.Constant):
            raise _at(kernel, default, say("a default value must be a number."))
    kernel.returns = None
    names = known | {a.arg for a in every} | {"tl", "triton"} | _BUILTINS
    names |= {n.id for n in ast.walk(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for statement in kernel.body:
        for node in _walk(statement):
            _look(kernel, node, names)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield from ast.walk(node)


def _look(kernel: ast.FunctionDef, node: ast.AST, names: set[str]) -> None:
    if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
        raise _at(
            kernel,
            node,
            say(
                "`{node}` is no statement of Triton's language.",
                node=_first_line(node),
            ),
        )
    if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS, *_GRAMMAR)):
        raise _at(
            kernel,
            node,
            say(
                "{name__} is not part of Triton's language.",
                name__=type(node).__name__,
            ),
        )
    if isinstance(node, ast.Name):
        if node.id.startswith("__") or node.id not in names:
            raise _at(
                kernel,
                node,
                say(
                    "{node} is neither an argument, nor set here, nor part of Triton.",
                    node=node.id,
                ),
            )
        if isinstance(node.ctx, ast.Store) and node.id in {"tl", "triton"}:
            raise _at(kernel, node, say("{node} is Triton's own name; choose another.", node=node.id))
    if isinstance(node, ast.Attribute):
        _look_at_member(kernel, node)


def _look_at_member(kernel: ast.FunctionDef, node: ast.Attribute) -> None:
    owner = ast.unparse(node.value)
    if not isinstance(node.ctx, ast.Load):
        raise _at(
            kernel,
            node,
            say(
                "{owner}.{attr} can't be set: Triton has no objects.",
                owner=owner,
                attr=node.attr,
            ),
        )
    allowed = node.attr in _MEMBERS
    if owner == "tl":
        allowed = node.attr in _TL
    elif owner == "tl.math":
        allowed = node.attr in _MATH
    elif owner == "triton":
        allowed = node.attr in ("cdiv", "next_power_of_2")
    if not allowed:
        raise _at(
            kernel,
            node,
            say(
                "{owner}.{attr} is not part of Triton's language.",
                owner=owner,
                attr=node.attr,
            ),
        )


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0][:60]


def _at(kernel: ast.FunctionDef, node: ast.AST, sentence: str) -> NotTriton:
    return NotTriton(f"kernel {kernel.name}, line {getattr(node, 'lineno', '?')}: {sentence}")

"""The language in which a tensor's shape is written: axes by name, "m k" or "k/128 n".

An axis is a size's name or arithmetic on sizes: +, -, * and /, where / rounds up (the last group of
a ragged axis is a group, too). Everything that is made of shapes (random tensors, refusals, bytes)
reads them here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from functools import cache

from book.cost.base import ceil_div

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: ceil_div}


def axes(shape: str) -> tuple[str, ...]:
    """The axes of a shape: "k/128 n" has two. Raises ValueError for what is no arithmetic on names."""
    return _axes(shape)


@cache
def _axes(shape: str) -> tuple[str, ...]:
    found = tuple(shape.split())
    for axis in found:
        names(axis)
    return found


@cache
def _tree(axis: str) -> ast.expr:
    try:
        tree = ast.parse(axis, mode="eval").body
    except SyntaxError:
        tree = None
    allowed = (ast.Name, ast.BinOp, ast.Constant, ast.Load, *_OPERATORS)
    if tree is None or not all(isinstance(node, allowed) and _whole(node) for node in ast.walk(tree)):
        raise ValueError(f"axis = {axis!r}: write a size's name, or + - * / on names and whole numbers.")
    return tree


def _whole(node: ast.AST) -> bool:
    return not isinstance(node, ast.Constant) or (type(node.value) is int and node.value > 0)


@cache
def names(axis: str) -> frozenset[str]:
    """The sizes that an axis depends on."""
    return frozenset(node.id for node in ast.walk(_tree(axis)) if isinstance(node, ast.Name))


def length(axis: str, sizes: Mapping[str, int]) -> int:
    """How long an axis is at these sizes. Raises KeyError for a size that isn't given."""
    return _value(_tree(axis), sizes)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.Name):
        return sizes[node.id]
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return node.value


def shape_of(shape: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The lengths of all axes."""
    return tuple(length(axis, sizes) for axis in axes(shape))


def solved(axis: str, value: int, sizes: Mapping[str, int]) -> tuple[str, int] | None:
    """(name, size) of the one size that `sizes` lacks, if `axis` has it and `value` decides it; else None.

    For axes that are linear in it, as (heads+2*kv_heads)*head_dim is. A rounded quotient decides nothing.
    """
    unknown = names(axis) - set(sizes)
    if len(unknown) != 1 or (axis not in unknown and "/" in axis):
        return None
    (name,) = unknown
    at_zero, at_one = (length(axis, {**sizes, name: n}) for n in (0, 1))
    slope = at_one - at_zero
    if slope == 0 or (value - at_zero) % slope:
        return None
    found = (value - at_zero) // slope
    return (name, found) if found > 0 and length(axis, {**sizes, name: found}) == value else None

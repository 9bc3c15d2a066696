"""What Triton's interpreter does again and again, and need not: a third of the time of a count.

It is what makes room for a second run, in the other order of the programs.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def take(wrap: Callable[[Any, str, Any], None], interpreter: Any) -> None:
    """Take them all. wrap(object, name, make): its attribute becomes make(attribute) until the count ends."""
    core, patched = interpreter.tl.core, set[str]()
    wrap(interpreter, "_get_np_dtype", remembered)
    wrap(core.block_type, "__init__", typed_once)
    wrap(core.tensor, "__init__", shaped_once)
    wrap(type(interpreter.interpreter_semantic), "broadcast_impl_value", unless_alike)
    wrap(interpreter.GridExecutor, "__call__", lambda f: afresh(f, patched))
    wrap(interpreter, "_patch_lang", lambda f: once_a_launch(f, patched))


def remembered(original: Any) -> Any:
    """NumPy's dtype for one of Triton's, which it looks up in a table that it makes every time."""
    known: dict[str, Any] = {}

    def hook(dtype: Any) -> Any:
        if type(dtype).__name__ != "dtype":  # a pointer or a block, whose names say less
            return original(dtype)
        if dtype.name not in known:
            known[dtype.name] = original(dtype)
        return known[dtype.name]

    return hook


def typed_once(original: Any) -> Any:
    """A block's type: its shape is unwrapped, checked, and spelt for its name at every step."""
    known: dict[tuple[int, tuple[int, ...]], dict[str, Any]] = {}
    shapes: dict[tuple[int, ...], Any] = {}  # equal ones are the same one: `unless_alike` looks for that

    def hook(self: Any, element_ty: Any, shape: Any) -> None:
        lengths = tuple(getattr(n, "value", n) for n in shape)
        key = id(element_ty), lengths  # the type itself, which the entry keeps alive: a name says less
        if key not in known:
            original(self, element_ty, shape)
            self.shape = shapes.setdefault(lengths, self.shape)
            known[key] = dict(vars(self))
        vars(self).update(known[key])

    return hook


def shaped_once(original: Any) -> Any:
    """A tensor's shape, which is made of its type's at every step, and is the same for each."""
    known: dict[tuple[int, int], tuple[Any, dict[str, Any]]] = {}

    def hook(self: Any, handle: Any, type: Any) -> None:
        # by the shape and the scalar themselves: each entry keeps its type alive, and that keeps these
        key = id(type.shape if type.is_block() else None), id(type.scalar)
        if key not in known:
            original(self, handle, type)
            rest = {name: value for name, value in vars(self).items() if name not in ("handle", "type")}
            known[key] = type, rest
        vars(self).update(known[key][1], handle=handle, type=type)

    return hook


def unless_alike(original: Any) -> Any:
    """Two blocks of one shape need no broadcast, which takes a comparison of each axis to find out."""

    def hook(self: Any, mine: Any, theirs: Any) -> Any:
        if mine.type.is_block() and theirs.type.is_block() and mine.type.shape is theirs.type.shape:
            return mine, theirs
        return original(self, mine, theirs)

    return hook


def afresh(original: Any, patched: set[str]) -> Any:
    """A launch begins: nothing of Triton's language is patched."""

    def hook(self: Any, *args: Any, **options: Any) -> Any:
        patched.clear()
        return original(self, *args, **options)

    return hook


def once_a_launch(original: Any, patched: set[str]) -> Any:
    """It puts its own functions into Triton's language at every call of a helper; once a launch will do."""

    def hook(function: Any) -> Any:
        languages = {v for v in function.__globals__.values() if isinstance(v, types.ModuleType)}
        languages = {v.__name__ for v in languages if v.__name__.startswith("triton.language")}
        if languages <= patched:
            return None
        patched.update(languages)
        return original(function)

    return hook

"""What Triton's interpreter does again and again, and need not: a quarter of the time of a count.

It is what makes room for a second run, in the other order of the programs.
"""

from __future__ import annotations

import types
from typing import Any


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

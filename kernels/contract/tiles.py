"""The tile of a plan: what shapes a program's code, apart from how many programs there are.

Large sizes choose large tiles, and executing large sizes takes hours; a large tile on small tensors takes a
second, and waits, copies and multiplies as it does everywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from kernels.contract import checks

Tile = tuple[tuple[str, Any], ...]


def tile(plan: Any) -> Tile:
    """The fields of a plan, and of the plans in it, that are called block_ or num_ something.

    Splits are left out: how a sum is cut follows from sizes.
    """
    found = []
    for field in fields(plan):
        value = getattr(plan, field.name)
        if is_dataclass(value):
            found.append((field.name, tile(value)))
        elif field.name.startswith(("block", "num_")):
            found.append((field.name, value))
    return tuple(found)


def with_tile(plan: Any, wanted: Tile) -> Any:
    """`plan` with this tile in place of its own."""
    changed = {name: with_tile(getattr(plan, name), v) if isinstance(v, tuple) else v for name, v in wanted}
    return replace(plan, **changed)


@contextlib.contextmanager
def imposed(model: Any) -> Iterator[None]:
    """Inside, plans of the same kind as `model` have its tile."""
    wanted = tile(model)
    with checks.replanned(lambda made: with_tile(made, wanted) if type(made) is type(model) else made):
        yield

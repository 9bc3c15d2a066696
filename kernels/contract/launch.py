"""One kernel launch as data: what is started, on what, with which compile-time arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Launch:
    """One kernel launch as the compiler sees it: `kernel[grid](*args, **options)`.

    args: tensors (on the meta device when nothing is to be run) and scalars, in the kernel's order;
    options: its constexpr arguments with num_warps and num_stages. names: what counting calls the
    tensors of arguments whose own name would not do, {"y": "qkv"} for y_ptr: a part of a larger
    operation writes into something that has a name there.
    """

    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

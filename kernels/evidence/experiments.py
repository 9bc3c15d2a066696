"""Every experiment that a kernel file under `kernels` ends with, found by looking."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

import kernels
from kernels.experiment import Experiment

_NOT_KERNELS = frozenset({"measure", "experiment", "targets", "devices", "checks"})


def all_experiments() -> dict[str, Experiment]:
    """name -> experiment, in alphabetical order of the kernel files."""
    found: dict[str, Experiment] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(kernels.__path__) if not m.ispkg):
        if module in _NOT_KERNELS:
            continue
        for value in vars(importlib.import_module(f"kernels.{module}")).values():
            if isinstance(value, Experiment) and value.run.__module__ == f"kernels.{module}":
                found[value.name] = value
    return found


def choose(names: Iterable[str] | None) -> dict[str, Experiment]:
    """The experiments called `names`, or all. Raises ValueError listing the known ones."""
    known = all_experiments()
    if names is None:
        return known
    for name in names:
        if name not in known:
            raise ValueError(f"kernels = {name!r}: there is no such kernel; choose from {', '.join(known)}.")
    return {name: known[name] for name in names}

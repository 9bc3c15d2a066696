"""Every experiment that a kernel file under `kernels` ends with, found by looking."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

import kernels
from kernels.contract.experiment import Experiment


def all_experiments() -> dict[str, Experiment]:
    """key -> experiment, by the name of the kernel file, its main experiment first."""
    found: dict[str, Experiment] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(kernels.__path__) if not m.ispkg):
        where = importlib.import_module(f"kernels.{module}")
        mine = [v for v in vars(where).values() if isinstance(v, Experiment)]
        found |= {one.key: one for one in mine if one.run.__module__ == where.__name__}
    return found


def choose(names: Iterable[str] | None) -> dict[str, Experiment]:
    """The experiments with these keys, or all. Raises ValueError listing the known ones."""
    known = all_experiments()
    if names is None:
        return known
    for name in names:
        if name not in known:
            raise ValueError(f"kernels = {name!r}: there is no such kernel; choose from {', '.join(known)}.")
    return {name: known[name] for name in names}

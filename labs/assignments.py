"""Which labs there are, found by looking: a folder, its master notebook, its questions, its key.

`labs/lab2-linear/lab2-linear.ipynb` goes with the modules `labs.kit.lab2` (what students have) and
`labs.keys.lab2` (hidden cases).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Assignment:
    """name: as in "lab2-linear". master: the notebook with solutions and hidden tests."""

    name: str
    master: Path

    @property
    def short(self) -> str:
        """As in "lab2"."""
        return self.name.partition("-")[0]

    def kit(self) -> ModuleType:
        """The module whose LAB holds the visible questions."""
        return importlib.import_module(f"labs.kit.{self.short}")

    def key(self) -> ModuleType:
        """The module whose LAB holds the same questions with hidden cases."""
        return importlib.import_module(f"labs.keys.{self.short}")


def all_assignments() -> dict[str, Assignment]:
    """name -> assignment, in order."""
    masters = sorted(HERE.glob("lab*-*/*.ipynb"))
    return {m.stem: Assignment(m.stem, m) for m in masters if m.stem == m.parent.name}


def find(name: str) -> Assignment:
    """The assignment called `name` ("lab2-linear", or "lab2"); ValueError lists the known ones."""
    known = all_assignments()
    for one in known.values():
        if name in (one.name, one.short):
            return one
    raise ValueError(f"lab = {name!r}: there is no such lab; choose from {', '.join(known)}.")

"""Which labs there are, found by looking: a folder with a master notebook, questions and a key.

`labs/lab2_linear/lab2-linear.ipynb` is the master of lab2-linear. Beside it, `questions.py` has the
`LAB` that students get, and `key.py` the same with hidden cases. Adding such a folder adds a lab.
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

    @property
    def package(self) -> str:
        """As in "labs.lab2_linear"."""
        return f"labs.{self.master.parent.name}"

    def questions(self) -> ModuleType:
        """The module whose LAB has the visible questions."""
        return importlib.import_module(f"{self.package}.questions")

    def key(self) -> ModuleType:
        """The module whose LAB has the same questions with hidden cases. It never travels to students."""
        return importlib.import_module(f"{self.package}.key")


def all_assignments() -> dict[str, Assignment]:
    """name -> assignment, in order."""
    masters = sorted(HERE.glob("lab*_*/*.ipynb"))
    return {m.stem: Assignment(m.stem, m) for m in masters if m.stem.replace("-", "_") == m.parent.name}


def find(name: str) -> Assignment:
    """The assignment called `name` ("lab2-linear", or "lab2"); ValueError lists the known ones."""
    known = all_assignments()
    for one in known.values():
        if name in (one.name, one.short):
            return one
    raise ValueError(f"lab = {name!r}: there is no such lab; choose from {', '.join(known)}.")

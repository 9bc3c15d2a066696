"""The chapters' formulas: `ch02_linear_layers.py` holds those of chapter 02, and so on.

Each is made by calling `book.cost`, `book.serving` and `book.roofline` with symbols. A chapter
imports its own file, so that a change in another chapter's formulas is none of its business.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

from book.formulas.formula import Formula

_CHAPTER = re.compile(r"ch\d\d_\w+\Z")


def all_formulas() -> dict[str, Formula]:
    """name -> formula, in chapter order, found by looking. Raises ValueError for a name twice."""
    found: dict[str, Formula] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__) if _CHAPTER.match(m.name)):
        where = importlib.import_module(f"{__name__}.{module}")
        for formula in (v for v in vars(where).values() if isinstance(v, Formula)):
            if formula.name in found:
                raise ValueError(f"formula {formula.name!r}: {module} has it again; give it another name.")
            found[formula.name] = formula
    return found

"""The toolbox that the chapters import. Run from anywhere: this puts the repository root first.

What every chapter needs can be had from here, `from book import explore, numeric, boxed, source, si`;
each name is imported from its module only when it is asked for.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def _put_root_first() -> None:
    """Make `import kernels` find this repository's package before any installed one."""
    root = str(ROOT)
    sys.path[:] = [root, *(entry for entry in sys.path if entry != root)]


def _check_kernels() -> None:
    """Raise ImportError if `kernels` is not ours. Hugging Face has a distribution of that name."""
    ours = ROOT / "kernels" / "__init__.py"
    if not ours.exists():
        return  # a notebook that carries none: whose kernels there are is none of its business
    loaded = sys.modules.get("kernels")
    if loaded is not None:
        origin = getattr(loaded, "__file__", None)
    else:
        # PathFinder looks, and imports nothing: no torch, no Triton.
        spec = PathFinder.find_spec("kernels")
        origin = spec.origin if spec else None
    if origin is None or Path(origin).resolve() != ours:
        raise ImportError(
            f"`kernels` is {origin or 'a namespace package'}, not this book's {ours}. "
            "Restart Python and import `book` before anything that imports the other one, "
            "or remove that one from this environment: pip uninstall kernels."
        )


_put_root_first()
_check_kernels()

# What a notebook imports from here, and the module that has it (`book.portable` reads this table, too).
FACE = {
    "explore": "book.widgets.explorer",
    "numeric": "book.widgets.self_check",
    "choice": "book.widgets.choice",
    "boxed": "book.notebook.derivation",
    "math": "book.notebook.derivation",
    "source": "book.notebook.source",
    "si": "book.drawing.number_text",
    "gigabytes": "book.drawing.number_text",
    "gibibytes": "book.drawing.number_text",
    "table": "book.drawing.tables",
    "headline": "book.drawing.headline",
    "picture": "book.drawing.pictures",
    "symbol": "book.formulas.symbols",
}


def __getattr__(name: str) -> Any:
    if name not in FACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(FACE)}.")
    return getattr(importlib.import_module(FACE[name]), name)

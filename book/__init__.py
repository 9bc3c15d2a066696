"""The toolbox that the chapters import. Run from anywhere: this puts the repository root first."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def _put_root_first() -> None:
    """Make `import kernels` find this repository's package before any installed one."""
    root = str(ROOT)
    sys.path[:] = [root, *(entry for entry in sys.path if entry != root)]


def _check_kernels() -> None:
    """Raise ImportError if `kernels` is not ours. Hugging Face has a distribution of that name."""
    loaded = sys.modules.get("kernels")
    if loaded is not None:
        origin = getattr(loaded, "__file__", None)
    else:
        # PathFinder looks, and imports nothing: no torch, no Triton.
        spec = PathFinder.find_spec("kernels")
        origin = spec.origin if spec else None
    ours = ROOT / "kernels" / "__init__.py"
    if origin is None and ours.exists() or origin is not None and Path(origin).resolve() != ours:
        raise ImportError(
            f"`kernels` is {origin or 'a namespace package'}, not this book's {ours}. "
            "Restart Python and import `book` before anything that imports the other one, "
            "or remove that one from this environment: pip uninstall kernels."
        )


_put_root_first()
_check_kernels()

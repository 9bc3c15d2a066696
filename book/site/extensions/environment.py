"""Sphinx extension: notebooks run with the repository root first on the import path."""

from __future__ import annotations

import os

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Sets the environment that every notebook's kernel inherits."""
    # First, so that `kernels` is this book's package and not the distribution of the same name.
    rest = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(app.srcdir), rest)))
    # ipykernel imports a debugger that warns on stderr about frozen modules; that is no output of ours.
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Sphinx extension: a notebook runs again when, and only when, something it depends on changed.

jupyter-cache knows a notebook by its code cells alone. This adds what those cells import: before
a build the notebooks whose closure (book/portable/dependencies.py) has another fingerprint than at their last
good run lose their cached outputs, and Sphinx is told to read them again.

They run one at a time, since a chapter times this machine; with $BOOK_JOBS that many run at once.
"""

from __future__ import annotations

import json
import logging as plain_logging
import os
import platform
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.core.execute import create_client
from myst_nb.core.read import create_nb_reader
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from book.portable.dependencies import fingerprint
from book.say import LANGUAGE

STORE = "fingerprints.json"
JOBS = "BOOK_JOBS"
LOGGER = logging.getLogger(__name__)
DISTRIBUTIONS = ("torch", "triton", "numpy", "sympy", "matplotlib", "ipywidgets", "anywidget")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the two moments of a build: before reading, and after each page that was read."""
    app.connect("env-get-outdated", forget_stale)
    app.connect("doctree-read", remember)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def forget_stale(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    """Drops the cached outputs of notebooks whose dependencies changed; returns their names."""
    known = fingerprints(env.mystnb_config.execution_cache_path)
    stale, notebooks = [], {}
    for docname in sorted(env.found_docs):
        notebook = _read(env, docname)
        if notebook is None or known.get(docname) == fingerprint_of(notebook, Path(app.srcdir)):
            continue
        stale.append(docname)
        notebooks[docname] = notebook
        cache = get_cache(env.mystnb_config.execution_cache_path)
        with suppress(KeyError):
            cache.remove_cache(cache.match_cache_notebook(notebook).pk)
    if stale:
        LOGGER.info("notebooks to run: %s", ", ".join(stale))
    if (jobs := jobs_asked_for()) > 1:
        with ThreadPoolExecutor(jobs) as pool:  # each waits for a process of its own
            list(pool.map(lambda docname: _run(env, docname, notebooks[docname]), stale))
    return [docname for docname in stale if docname not in added]


def jobs_asked_for() -> int:
    """How many notebooks run at once. Raises ValueError if $BOOK_JOBS is no number of them."""
    asked = os.environ.get(JOBS, "1")
    if not asked.isdecimal() or int(asked) < 1:
        raise ValueError(f"{JOBS} = {asked!r}: say how many notebooks may run at once, such as 2.")
    return int(asked)


class _Quiet(plain_logging.LoggerAdapter):
    """Says nothing: a notebook that fails here is run again where Sphinx reads it, and says why there."""

    def log(self, level: int, msg: object, *arguments: object, **options: Any) -> None:
        pass


def _run(env: BuildEnvironment, docname: str, notebook: NotebookNode) -> None:
    """Runs a notebook as the build will, so that the build finds its outputs in the cache."""
    quiet = _Quiet(plain_logging.getLogger(__name__), {})
    with create_client(notebook, env.doc2path(docname), env.mystnb_config, quiet):
        pass


def remember(app: Sphinx, doctree: nodes.document) -> None:
    """Records the fingerprint of a notebook that has just run without error."""
    env = app.env
    if not (env.nb_metadata.get(env.docname, {}).get("exec_data") or {}).get("succeeded"):
        return
    notebook = _read(env, env.docname)
    if notebook is None:
        return
    folder = Path(env.mystnb_config.execution_cache_path)
    known = {**fingerprints(folder), env.docname: fingerprint_of(notebook, Path(app.srcdir))}
    temporary = folder / (STORE + ".new")
    temporary.write_text(json.dumps(known, indent=1), encoding="utf-8")
    temporary.replace(folder / STORE)


def fingerprints(cache: str | Path) -> dict[str, str]:
    """Of each page in a cache folder the fingerprint at its last good run; {} if there is none."""
    with suppress(OSError, ValueError):
        return json.loads((Path(cache) / STORE).read_text(encoding="utf-8"))
    return {}


def _read(env: BuildEnvironment, docname: str) -> NotebookNode | None:
    """The page as a notebook, read just as it will be for running; None if it has no code."""
    path = Path(env.doc2path(docname))
    text = path.read_text(encoding="utf-8")
    reader = create_nb_reader(str(path), env.myst_config, env.mystnb_config, text)
    notebook = reader.read(text) if reader else None
    has_code = notebook is not None and any(cell.cell_type == "code" for cell in notebook.cells)
    return notebook if has_code else None


def fingerprint_of(notebook: NotebookNode, root: Path) -> str:
    """A hash of all that decides the outputs of a notebook of the book at `root`."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return fingerprint(cells, root, *_machine())


def _machine() -> list[str]:
    """What else decides the outputs: Python, the libraries' versions, a GPU if one is here, the language."""
    versions = []
    for name in DISTRIBUTIONS:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    devices = [path for path in ("/dev/nvidia0", "/dev/kfd") if os.path.exists(path)]
    return [platform.python_version(), *versions, *devices, *filter(None, [LANGUAGE])]

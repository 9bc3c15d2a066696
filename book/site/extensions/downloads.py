"""Sphinx extension: the notebook behind a page's download button runs anywhere, on Colab too.

The theme's button leads to the page's source in `_sources`. At the end of a build each notebook
there is replaced by its self-contained version (see book/portable/bundle.py): without outputs, except those
that the tests compare, and with the modules that it needs in a cell of its own.

With `repository.url` in `_config.yml` such pages also get a button that opens this version on
Colab, out of the branch that the site is published from, `repository.site_branch` (gh-pages if it
isn't given). With no address, or one that Colab can't open, there is no button.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import yaml
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from book.portable import bundle, unpack
from book.portable.dependencies import fingerprint
from book.site.outputs import stripped

LOGGER = logging.getLogger(__name__)
COLAB = "https://colab.research.google.com"
SOURCES = "_sources"
STAMP = "inference_roofline"  # in a written notebook's metadata: what it was made from


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the reading of the configuration and to the end of a build."""
    app.connect("config-inited", add_launch_button)
    app.connect("html-page-context", drop_other_pages, priority=900)
    app.connect("build-finished", replace_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def colab_url(repository: dict[str, Any], path: str) -> str:
    """The address that opens a notebook of the published site on Colab; "" if there is none.

    repository: {url, site_branch} as in _config.yml. path: from the site's root. Colab opens
    notebooks from GitHub alone.
    """
    place, _, name = _address(repository).partition("github.com/")
    if not place.startswith("http") or name.count("/") != 1:
        return ""
    return f"{COLAB}/github/{name}/blob/{_site_branch(repository)}/{path}"


def add_launch_button(app: Sphinx, config: Config) -> None:
    """Sets the theme's options for its Colab button, or leaves them empty."""
    repository = _repository(Path(app.confdir))
    if not colab_url(repository, ""):
        return
    config.html_theme_options = {
        **config.html_theme_options,
        "repository_url": _address(repository),
        "repository_branch": _site_branch(repository),
        "path_to_docs": SOURCES,
        "launch_buttons": {"colab_url": COLAB},
    }


def drop_other_pages(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """A Markdown page that computes something is a notebook to the theme; it is none to a reader."""
    if context.get("page_source_suffix") == ".ipynb":
        return
    buttons = [b for b in context.get("header_buttons", ()) if b.get("label") != "launch-buttons"]
    for group in buttons:
        if group.get("label") == "download-buttons":
            kept = [b for b in group["buttons"] if b["label"] != "download-notebook-button"]
            group["buttons"] = kept
    context["header_buttons"] = buttons


def replace_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Writes the self-contained version of every notebook page that doesn't have it yet."""
    if exception is not None or app.builder.format != "html":
        return
    names = sorted(app.env.found_docs)
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # packing is most of it, and lets others run
        replaced = threads.map(lambda name: _replace(app, name), names)
        made = [name for name, was in zip(names, replaced, strict=True) if was]
    if made:
        LOGGER.info("notebooks made self-contained: %s", ", ".join(made))


def _replace(app: Sphinx, docname: str) -> bool:
    """Whether the notebook of this page was written."""
    source = Path(app.env.doc2path(docname))
    target = Path(app.outdir) / SOURCES / f"{docname}.ipynb"
    if source.suffix != ".ipynb" or not target.exists():
        return False
    root = Path(app.srcdir)
    notebook = stripped(nbformat.read(source, as_version=4))
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    maker = [inspect.getsource(module) for module in (bundle, unpack)]
    parts = [nbformat.writes(notebook), fingerprint(code, root, *maker, whole=True)]
    stamp = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    # Sphinx may copy the source anew, so what was made is kept outside the site.
    kept = Path(app.doctreedir) / "downloads" / f"{docname}.ipynb"
    if not kept.exists() or nbformat.read(kept, as_version=4).metadata.get(STAMP) != stamp:
        whole = bundle.self_contained(notebook, root)
        whole.metadata[STAMP] = stamp
        kept.parent.mkdir(parents=True, exist_ok=True)
        _write(kept, nbformat.writes(whole).encode() + b"\n")
    if target.read_bytes() == kept.read_bytes():
        return False
    _write(target, kept.read_bytes())
    return True


def _write(path: Path, content: bytes) -> None:
    """In one step, so that nobody finds half a notebook."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(content)
    temporary.replace(path)


def _repository(folder: Path) -> dict[str, Any]:
    """`repository` of _config.yml; Jupyter Book passes on only the keys that it knows."""
    with suppress(FileNotFoundError):
        return yaml.safe_load((folder / "_config.yml").read_text(encoding="utf-8")).get("repository") or {}
    return {}


def _address(repository: dict[str, Any]) -> str:
    return (repository.get("url") or "").rstrip("/").removesuffix(".git")


def _site_branch(repository: dict[str, Any]) -> str:
    return repository.get("site_branch") or "gh-pages"

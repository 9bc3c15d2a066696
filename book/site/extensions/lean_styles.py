"""Sphinx extension: of the themes' stylesheets the site keeps what its pages and scripts use.

The book's own stylesheets are left alone: a class that nobody uses there is a fault of ours.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from book.site.node import NodeProgram

THEIRS = (
    "styles/bootstrap.css",
    "styles/pydata-sphinx-theme.css",
    "styles/sphinx-book-theme.css",
    "basic.css",
    "mystnb.*.css",
    "sphinx-design.min.css",
    "togglebutton.css",
)


class Purge(NodeProgram):
    """PurgeCSS, run by node."""

    script = "lean_styles.mjs"


def setup(app: Sphinx) -> dict[str, bool]:
    """Runs once all pages are written."""
    app.connect("build-finished", lean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def lean(app: Sphinx, exception: Exception | None) -> None:
    """Rewrites the themes' stylesheets in the built site. Raises NodeFailed with what went wrong."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    styles = sorted({str(path.relative_to(app.outdir)) for name in THEIRS for path in static.glob(name)})
    with Purge() as purge:
        purge.ask({"folder": str(app.outdir), "styles": styles})

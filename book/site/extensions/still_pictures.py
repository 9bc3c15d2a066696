"""Sphinx extension: each explorer's element holds what its script will draw first (`book.site.stills`)."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from book.site.stills import Stills


def setup(app: Sphinx) -> dict[str, bool]:
    """Pages with an explorer get its picture as they are written; node runs once in a build."""
    app.connect("html-page-context", fill)
    app.connect("build-finished", close)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def fill(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Puts the pictures into the page's body. Raises NodeFailed, which ends the build."""
    if 'class="rl-live"' not in context.get("body", ""):
        return
    running = getattr(app, "_stills", None)
    if running is None:
        running = app._stills = Stills().__enter__()
    context["body"] = running.fill(context["body"])


def close(app: Sphinx, exception: Exception | None) -> None:
    """Lets node go."""
    if running := getattr(app, "_stills", None):
        running.__exit__(None, None, None)
        del app._stills

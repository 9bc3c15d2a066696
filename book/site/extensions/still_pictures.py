"""Sphinx extension: each explorer's element holds what its script will draw first (`book.site.stills`).

Cells with an explorer or a table are marked, so that the style sheet can give them the page's width. It could
find them by `:has`, but then a browser would look for them again whenever a slider moves.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from book.site.stills import Stills

EXPLORER = 'data-kind="explorer"'


def setup(app: Sphinx) -> dict[str, bool]:
    """Pages with an explorer get its picture as they are written; node runs once in a build."""
    app.connect("doctree-resolved", mark_wide)
    app.connect("html-page-context", fill)
    app.connect("build-finished", close)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def mark_wide(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Classes for the containers of what is wider than a line of text."""
    for box in doctree.findall(nodes.container):
        html = [raw.astext() for raw in box.findall(nodes.raw)]
        if any(EXPLORER in text for text in html):
            box["classes"] += ["rl-wide", "rl-holds-explorer"]
        elif any("<table" in text for text in html) or next(box.findall(nodes.table), None) is not None:
            box["classes"].append("rl-wide")


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

"""Sphinx extension: the sentence on what a reader serves, on top of chapters and where a page asks for it.

`{serve}` puts it where it stands; a chapter has it above its title. Its data are one script of the site.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

SCRIPT = "serve.js"
FOLDER = "chapters/"


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive and the script, and puts the sentence on top of the chapters."""
    sys.path.insert(0, str(app.srcdir))
    app.add_directive("serve", Serve)
    app.add_js_file(SCRIPT, priority=100, defer="defer")  # before the front-end, which reads it
    app.connect("builder-inited", write_script)
    app.connect("html-page-context", put_on_top)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Serve(Directive):
    """`{serve}`: the sentence with its controls."""

    def run(self) -> list[nodes.Node]:
        from book.widgets import serve

        return [nodes.raw("", serve.static_html(), format="html")]


def write_script(app: Sphinx) -> None:
    """The catalog's cards and models, and the formula, for all pages."""
    if app.builder.format != "html":
        return
    from book.widgets import serve

    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / SCRIPT).write_text(serve.script(), encoding="utf-8")


def put_on_top(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """A chapter begins with the sentence."""
    if not pagename.startswith(FOLDER) or "body" not in context:
        return
    from book.widgets import serve

    context["body"] = serve.static_html() + context["body"]

"""Sphinx extension: math is set as the page is written (`book.site.mathml`), so that no script need do it."""

from __future__ import annotations

import html

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

from book.site.mathml import Typesetter
from book.site.node import NodeFailed

LOGGER = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the renderer "mathml" of `html_math_renderer`; node runs once in a build."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", close)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def typeset(app: Sphinx, node: nodes.Node, display: bool) -> str:
    """A node's formula as MathML. One that can't be set is a warning, and stands there as TeX."""
    running = getattr(app, "_typesetter", None)
    if running is None:
        running = app._typesetter = Typesetter().__enter__()
    tex = " ".join(node.astext().split())
    try:
        return running.set(tex, display)
    except NodeFailed as error:
        LOGGER.warning("math that can't be set: %s (%s)", tex, error, location=node)
        return f"<code>{html.escape(tex)}</code>"


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """$...$ in a line."""
    app = self.builder.app
    self.body.append(f'<span class="math notranslate">{typeset(app, node, display=False)}</span>')
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula of its own, with its number where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math notranslate"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "")
        self.body.append("</span>")
    self.body.append(typeset(self.builder.app, node, display=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def close(app: Sphinx, exception: Exception | None) -> None:
    """Lets node go."""
    if running := getattr(app, "_typesetter", None):
        running.__exit__(None, None, None)
        del app._typesetter

"""Sphinx extension: prose that names a figure, "Figure 2.1", leads to it, in its chapter and from any page.

The figures are outputs of code cells, which Sphinx knows nothing of: `book.drawing.captions` gives each
an id by its number, and the number's first part says which chapter it stands in.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

NO_PROSE = (nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.raw)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the moment when a page's references are known."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the figures that this page's prose names by links."""
    if app.builder.format != "html":
        return
    sys.path.insert(0, str(app.srcdir))
    from book.drawing import captions

    pages = chapters(app.env.found_docs)

    def uri(number: str) -> str:
        page = pages.get(int(number.partition(".")[0]))
        if page is None:
            return ""
        before = "" if page == docname else app.builder.get_relative_uri(docname, page)
        return f"{before}#{captions.anchor(number)}"

    named = re.compile(re.escape(captions.title("@")).replace("@", rf"({captions.NUMBER.pattern})"))
    for text in list(doctree.findall(nodes.Text)):
        if not inside(text, NO_PROSE) and (made := linked(text, named, uri)):
            text.parent.replace(text, made)


def chapters(docnames: Iterable[str]) -> dict[int, str]:
    """Number of a chapter -> the page it stands on."""
    found = ((re.match(r"chapters/(\d+)-", name), name) for name in docnames)
    return {int(match[1]): name for match, name in found if match}


def linked(text: str, named: re.Pattern[str], uri: Callable[[str], str]) -> list[nodes.Node]:
    """The same words with figures linked, or [] if there is nothing to link.

    named: how a figure is called. uri: a figure's number -> where it is, or "".
    """
    made: list[nodes.Node] = []
    end = 0
    for found in named.finditer(text):
        if where := uri(found[1]):
            made.append(nodes.Text(text[end : found.start()]))
            made.append(nodes.reference("", found[0], refuri=where, internal=True))
            end = found.end()
    return [*made, nodes.Text(text[end:])] if made else []


def inside(node: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a node is, or stands in, one of these kinds."""
    while node is not None:
        if isinstance(node, kinds):
            return True
        node = node.parent
    return False

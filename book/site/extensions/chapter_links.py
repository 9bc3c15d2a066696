"""Sphinx extension: prose that names a chapter, "chapter 04" or "chapters 02, 03 and 05", leads to it.

On the site a chapter is called by the number that the menu gives it. A chapter that isn't there is a
warning, as a broken link is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from docutils import nodes
from figure_links import NO_PROSE, chapters, inside
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
NAMED = re.compile(r"\b([Cc]hapters?)(\s+)(\d+(?:(?:,| and| or| to|,? and)\s+\d+\b)*)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the moment when a page's references are known."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the chapters that this page's prose names by links; one that isn't there is warned of."""
    if app.builder.format != "html":
        return
    pages = chapters(app.env.found_docs)

    def uri(number: int) -> str:
        if number not in pages:
            LOGGER.warning(
                "chapter %d: there is none of that number; name one that is there, or say what it is about",
                number,
                location=docname,
            )
            return ""
        return "" if pages[number] == docname else app.builder.get_relative_uri(docname, pages[number])

    for text in list(doctree.findall(nodes.Text)):
        if not inside(text, NO_PROSE) and NAMED.search(text):
            text.parent.replace(text, linked(text, uri))


def linked(text: str, uri: Callable[[int], str]) -> list[nodes.Node]:
    """The same words with chapters linked, each called by its number as the menu has it.

    uri: a chapter's number -> where it is, or "" where no link is due.
    """
    made: list[nodes.Node] = []
    end = 0
    for found in NAMED.finditer(text):
        made.append(nodes.Text(text[end : found.start()]))
        word = found[1] + found[2]
        numbers = re.split(r"(\d+)", found[3])
        if len(numbers) == 3:  # one chapter: the word belongs to the link
            made.append(_reference(word + str(int(numbers[1])), uri(int(numbers[1]))))
        else:
            made.append(nodes.Text(word))
            for i, piece in enumerate(numbers):
                made.append(_reference(str(int(piece)), uri(int(piece))) if i % 2 else nodes.Text(piece))
        end = found.end()
    return [*made, nodes.Text(text[end:])]


def _reference(words: str, where: str) -> nodes.Node:
    return nodes.reference("", words, refuri=where, internal=True) if where else nodes.Text(words)

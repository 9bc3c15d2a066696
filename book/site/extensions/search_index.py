"""Sphinx extension: the search finds a word in the chapter that explains it, and gives no answer away.

Sphinx indexes the text of every cell: code, raw TeX, what an explorer carries along, the answers of
self-checks for readers without JavaScript. Here the index gets prose only. A word of the glossary leads
to the page that its definition names, under each of its names ("GQA", "grouped-query attention",
"quantization"), so that the glossary is where synonyms are declared. The results are shown by
book/site/static/search.js: each page once, with a sentence of its prose.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

UNREAD = (nodes.raw, nodes.literal_block, nodes.math, nodes.math_block, nodes.comment)
UNREAD_CLASSES = {"solution", "cell_input"}
Words = dict[str, list[str]]  # page: names of what it explains


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the builder, once its index exists, and to the search page."""
    app.connect("env-updated", watch_index)
    app.connect("html-page-context", load_results)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def load_results(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """The search page alone loads the script that shows results."""
    if pagename == "search":
        app.add_js_file("search.js", loading_method="defer")


def watch_index(app: Sphinx, env: Any) -> None:
    """What is fed to the index from now on is prose, with the words that the glossary sends there."""
    builder = app.builder
    if builder.format != "html" or not builder.search:
        return
    index_page = builder.index_page

    @cache
    def words() -> Words:
        found: Words = {}
        for docname in {at for (kind, _), (at, _) in env.get_domain("std").objects.items() if kind == "term"}:
            for page, names in explained(env.get_doctree(docname)).items():
                found.setdefault(page, []).extend(names)
        return found

    def index_prose(pagename: str, doctree: nodes.document, title: str) -> None:
        index_page(pagename, searchable(doctree, words().get(pagename, []), words()), title)

    builder.index_page = index_prose


def explained(glossary: nodes.document) -> Words:
    """Which page explains which words: the first that a word's definition links to."""
    found: Words = {}
    for item in glossary.findall(nodes.definition_list_item):
        names = [term.astext() for term in item.findall(nodes.term)]
        links = [link for link in item.findall(addnodes.pending_xref) if link.get("refdomain") == "doc"]
        if names and links:
            found.setdefault(links[0]["reftarget"].lstrip("/"), []).extend(names)
    return found


def searchable(doctree: nodes.document, names: list[str], elsewhere: Words) -> nodes.document:
    """A copy of a page with its prose only, under `names`; what is explained elsewhere is found there."""
    page = doctree.deepcopy()
    for node in list(page.findall(_unread)):
        if node.parent is not None:
            node.parent.remove(node)
    sent_away = {name for found in elsewhere.values() for name in found}
    for node in page.findall(addnodes.index):
        node["entries"] = [entry for entry in node["entries"] if entry[1] not in sent_away]
    page += addnodes.index(entries=[("single", name, "", "main", None) for name in names])
    page += nodes.inline("", " ".join(names))
    return page


def _unread(node: nodes.Node) -> bool:
    return isinstance(node, UNREAD) or (
        isinstance(node, nodes.Element) and not UNREAD_CLASSES.isdisjoint(node.get("classes", ()))
    )

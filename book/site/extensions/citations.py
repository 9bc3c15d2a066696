"""Sphinx extension: the list of references as a plain list to screen readers.

docutils marks each entry `doc-biblioentry` and each way back `doc-backlink`. ARIA has deprecated
the first, and a list may hold list items only.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the moment before a page is written."""
    app.connect("html-page-context", plain_roles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def plain_roles(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Replaces the roles in pages that have a list of references."""
    body = context.get("body", "")
    if 'class="citation-list"' in body:
        body = body.replace('role="doc-biblioentry"', 'role="listitem"').replace(' role="doc-backlink"', "")
        context["body"] = body

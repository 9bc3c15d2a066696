"""Sphinx extension: a chapter's code stands closed on the site, and opens all at once or cell by cell.

In the notebook all of it is open. Without scripts it is open here, too: what closes it is an attribute
that a script sets before the page is painted, so that nothing moves.
"""

from __future__ import annotations

import html
import re
import sys
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER = "chapters/"
CELL = '<div class="cell_input docutils container">'
_OPEN_CELL = re.compile(rf'(<div class="cell(?: [\w-]+)* docutils container">\s*)({re.escape(CELL)})')


def setup(app: Sphinx) -> dict[str, bool]:
    """Puts a button before each cell of a chapter, and the script that answers it on the page."""
    sys.path.insert(0, str(app.srcdir))
    app.connect("html-page-context", fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fold(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Cells that the notebook folds already, the notes of its checks, keep their own fold."""
    context["has_code"] = pagename.startswith(FOLDER)
    if not context["has_code"] or "body" not in context:
        return
    from book.say import say

    button = (
        f'<button type="button" class="rl-code" aria-expanded="false">{html.escape(say("code"))}</button>'
    )
    context["body"] = _OPEN_CELL.sub(rf"\g<1>{button}\g<2>", context["body"])
    context["code_switch"] = say("Show code")
    app.add_js_file("code.js", defer="defer")

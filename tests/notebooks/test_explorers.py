"""The explorers of the chapters, as a reader first sees them: none opens where nothing can be."""

import html
import json
import re

import nbformat
import pytest

from book.formulas import all_formulas
from book.site import contents
from book.widgets.applied import applied
from book.widgets.explorer import explore
from tests.notebooks.executed import ROOT, executed

CHAPTERS = [ROOT / f"{chapter.path}.ipynb" for chapter in contents.chapters()]
_LIVE = re.compile(r"data-kind=\"explorer\" data-payload='([^']*)' data-state='([^']*)'")


def explorers(notebook):
    """(payload, state) of every explorer that the outputs of a run hold."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            page = output.get("data", {}).get("text/html", "")
            for found in _LIVE.finditer("".join(page)):
                yield tuple(json.loads(html.unescape(part)) for part in found.groups())


def opened(payload, state):
    """The explorer that a page was given, in Python: the payload's own formula, cards and state."""
    formula = all_formulas()[payload["formula"]["name"]]
    cards = [a["id"] for a in payload["accelerators"]]
    explorer = explore(formula, cards, dtype=state["dtype"])
    moves = {n: v for n, v in state.items() if explorer.has_trait(n) and n not in ("evidence", "rungs")}
    return explorer, moves


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_explorer_opens_on_an_impossible_state(path):
    asked = "explore(" in "".join(c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code")
    found = list(explorers(executed(path)))
    assert bool(found) == asked
    for payload, state in found:
        explorer, moves = opened(payload, state)
        told = applied(explorer, **moves)
        assert explorer.payload["formula"] == payload["formula"], "the page was built from other formulas"
        assert told["memory"] in ("", "fits"), (payload["id"], explorer.summary())

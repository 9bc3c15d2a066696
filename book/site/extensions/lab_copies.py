"""Sphinx extension: the labs' student copies are part of the site, and a page lists them.

The directive `{labs}` shows each lab with its question, minutes and points, a link to its notebook and,
where `repository.url` in `_config.yml` leads to a place that Colab can open, one to Colab. At the end
of a build the notebooks are written to `labs/` beside the pages; a copy that is there and up to date
stays.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from downloads import _repository, colab_url
from sphinx.application import Sphinx
from sphinx.util import logging

from book.say import say

LOGGER = logging.getLogger(__name__)
FOLDER = "labs"


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive, and connects to the end of a build."""
    sys.path.insert(0, str(app.srcdir))
    app.add_directive("labs", Labs)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Labs(Directive):
    """`{labs}`: a list of the labs with their notebooks."""

    def run(self) -> list[nodes.Node]:
        from labs.assignments import all_assignments

        environment = self.state.document.settings.env
        up = "../" * environment.docname.count("/")
        repository = _repository(Path(environment.app.confdir))
        shown = []
        for one in all_assignments().values():
            environment.note_dependency(str(one.master))
            master = nbformat.read(one.master, as_version=4)
            lab = nodes.container("", ids=[one.name], classes=["rl-lab"])
            lab += nodes.raw("", heading(master), format="html")
            self.state.nested_parse(StringList(purpose(master).splitlines()), 0, lab)
            lab += nodes.raw("", links(master, one.name, up, repository), format="html")
            shown.append(lab)
        return shown


def heading(master: nbformat.NotebookNode) -> str:
    """The lab's title as HTML."""
    from labs.releasing.copies import title

    return f"<h2>{html.escape(title(master))}</h2>"


def purpose(master: nbformat.NotebookNode) -> str:
    """What one does in the lab: the paragraph below its title, as Markdown."""
    paragraphs = master.cells[0].source.split("\n\n")
    return paragraphs[1].removeprefix("**What you do.** ") if len(paragraphs) > 1 else ""


def links(master: nbformat.NotebookNode, lab: str, up: str, repository: dict[str, Any]) -> str:
    """Minutes, points and the ways to the notebook as HTML. up: the way from the page to the site's root."""
    from labs.releasing.copies import minutes

    where = f"{FOLDER}/{lab}.ipynb"
    points = sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in master.cells)
    found = [f'<a class="rl-lab-notebook" href="{up}{where}" download>{say("Download the notebook")}</a>']
    if address := colab_url(repository, where):
        found.append(f'<a class="rl-lab-colab" href="{html.escape(address)}">{say("Open on Colab")}</a>')
    facts = say("{minutes} minutes, {points:g} points", minutes=minutes(master), points=points)
    return f'<p class="rl-lab-facts">{facts}</p><p class="rl-lab-links">{"".join(found)}</p>'


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Writes the students' copies into the built site."""
    if exception is not None or app.builder.format != "html":
        return
    from labs.release import students

    made = students(Path(app.outdir) / FOLDER)
    LOGGER.info("labs: %s", ", ".join(one[0] for one in made))

"""What a chapter says beside times of the reader's own processor holds whatever they turn out to be.

A run may deny its roof: two points lie above it, and no roof is drawn. So no sentence that was written
beforehand takes one for drawn, or calls the two rates ceilings, unless it says "if" or "where".
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from book.drawing import captions
from book.notebook.sentences import sentences
from tests.notebooks.test_chapter_figures import notebook

CHAPTERS = sorted((Path(__file__).resolve().parents[2] / "chapters").glob("[0-9]*.ipynb"))
TAKEN = re.compile(r"\b(?:its|the|a) (?:two )?(?:roof|ridge)\b|\bceilings?\b", re.I)
OPEN = re.compile(r"\b(?:if|where|whether|meant as)\b", re.I)
FIGURE = re.compile(r"here\.figure\(.*?number=\"([\d.]+)\"", re.S)


def taken_for_granted(chapter: nbformat.NotebookNode) -> list[str]:
    """Sentences that take a roof of this processor for drawn: beside its cell, or naming its figure."""
    cells = chapter.cells
    live = [i for i, c in enumerate(cells) if c.cell_type == "code" and "cpu_roofline()" in c.source]
    numbers = [n for c in cells if c.cell_type == "code" for n in FIGURE.findall(c.source)]
    beside = set()
    for at in live:
        ends = (i for i in range(at, len(cells)) if cells[i].source.startswith("## "))
        beside |= set(range(at - 1, next(ends, len(cells))))
    found = []
    for i, cell in enumerate(cells):
        if cell.cell_type != "markdown":
            continue
        for paragraph in re.split(r"\n\n+", cell.source):
            if i in beside or any(captions.title(number) in paragraph for number in numbers):
                found += [s for s in sentences(paragraph) if TAKEN.search(s) and not OPEN.search(s)]
    return found


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_roof_of_this_processor_is_taken_for_granted(path):
    assert taken_for_granted(nbformat.read(path, as_version=4)) == []


LIVE = "here = cpu_roofline()"
DRAWN = 'here.figure("linear", number="2.3")'


@pytest.mark.parametrize(
    "cells",
    [
        ("# The same sweep of rows, on a processor with a roof of its own.", LIVE),
        ("# Timed with torch.", LIVE, DRAWN, "# Figure 2.3 has these times. Its roof is no fit to them."),
        ("# Timed.", LIVE, DRAWN, "#Here are the two ceilings as numbers."),
        ("# Timed.", LIVE, DRAWN, "### Exercises", "# Look at Figure 2.3. Where is it? It has the ridge."),
    ],
)
def test_one_that_is_would_be_found(cells):
    assert len(taken_for_granted(notebook(*cells))) == 1


def test_what_is_said_under_an_if_is_fine():
    fine = ("# Timed.", LIVE, DRAWN, "# If Figure 2.3 draws a roof, where is its ridge?")
    assert taken_for_granted(notebook(*fine)) == []
    assert taken_for_granted(notebook("# The roof of an H100.", "x = 1")) == []

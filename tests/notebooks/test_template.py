"""Every chapter has the ten parts in order, short cells, no stored output, and nothing typed twice."""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest
import yaml

from book.notebook import sentences
from tests.book import test_pictures
from tests.notebooks import test_chapter_figures
from tests.notebooks.lint import EXACT, code, complaints

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "site"))

import outputs  # noqa: E402

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))
TEMPLATE = ROOT / "chapters" / "_template.ipynb"
NOTEBOOKS = [*CHAPTERS, TEMPLATE]


def name(path: Path) -> str:
    return path.stem


@pytest.fixture(scope="module")
def chapter() -> nbformat.NotebookNode:
    return nbformat.read(CHAPTERS[0], as_version=4)


@pytest.mark.parametrize("path", CHAPTERS, ids=name)
def test_a_chapter_follows_the_style(path):
    found = complaints(nbformat.read(path, as_version=4))
    assert not found, "\n".join([path.name, *found])


def test_the_template_follows_the_style():
    assert complaints(nbformat.read(TEMPLATE, as_version=4), checks=1, choices=1) == []


def test_the_template_copied_as_a_chapter_passes_what_every_chapter_passes(tmp_path):
    number = max(int(path.stem[:2]) for path in CHAPTERS) + 1
    copied = tmp_path / f"{number}-topic.ipynb"
    filled = TEMPLATE.read_text(encoding="utf-8").replace("NN.", f"{number}.")
    copied.write_text(filled, encoding="utf-8")
    made = nbformat.read(copied, as_version=4)
    assert test_chapter_figures.complaints(number, made) == []
    test_pictures.test_a_chapter_draws_before_it_derives(copied)
    assert sentences.complaints(copied, root=tmp_path) == []
    assert not [words for cell in made.cells for words in re.findall(r"NN\.\d", cell.source)]


@pytest.mark.parametrize("path", CHAPTERS, ids=name)
def test_a_chapter_is_well_named_and_in_the_table_of_contents(path):
    assert re.fullmatch(r"\d\d-[a-z0-9]+(-[a-z0-9]+)*", path.stem)
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert f"chapters/{path.stem}" in [c["file"] for part in toc["parts"] for c in part["chapters"]]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_a_notebook_holds_no_output_and_no_trace_of_the_machine_that_saved_it(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert outputs.stripped(copy.deepcopy(notebook)) == notebook, "run `make format`"


def places(cells):
    """Where the right option stands in each question of understanding, and whether it is the longest."""
    found = []
    for cell in cells:
        for call in ast.walk(ast.parse(cell)) if re.search(r"\bchoice\(", cell) else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "choice":
                given = {k.arg: k.value for k in call.keywords}
                options = [ast.literal_eval(key) for key in given["options"].keys]
                answer = ast.literal_eval(given["answer"])
                found.append((options.index(answer), answer == max(options, key=len)))
    return found


def test_nobody_passes_by_picking_one_place_or_the_longest_option():
    cells = [cell.source for path in CHAPTERS for cell in code(nbformat.read(path, as_version=4))]
    at = places(cells)
    assert {place for place, _ in at} >= {0, 1, 2, 3}
    assert max(Counter(place for place, _ in at).values()) <= len(at) / 2
    assert sum(longest for _, longest in at) <= 0.6 * len(at)


def test_a_right_option_s_place_is_found():
    assert places(['choice("ex-1", options={"One": "No.", "Another": ""}, answer="Another")']) == [(1, True)]


# ------------------------------------------------------------------ each rule of the lint can fail


def first_code(notebook):
    return code(notebook)[0]


def cell_with(notebook, text):
    return next(cell for cell in notebook.cells if text in cell.source)


def replace(cell, old, new):
    assert old in cell.source
    cell.source = cell.source.replace(old, new)


BREAKS = {
    "does not begin with the title": lambda nb: replace(nb.cells[0], "# The", "The"),
    "minutes": lambda nb: replace(nb.cells[0], "**Time**", "Time"),
    "asks no question": lambda nb: replace(nb.cells[0], "?\n", ".\n"),
    "level-two headings": lambda nb: replace(cell_with(nb, "## Folklore"), "## Folklore", "## Myths"),
    "16 lines": lambda nb: setattr(first_code(nb), "source", "\n".join(["x = 1"] * 16)),
    "lines of code; ": lambda nb: [
        cell.metadata.update(tags=[t for t in cell.metadata.get("tags", []) if t != "hide-input"])
        for cell in code(nb)
    ],
    "81 characters": lambda nb: setattr(first_code(nb), "source", "x = " + "1" * 77),
    "shows its answers": lambda nb: cell_with(nb, "numeric(").metadata.update(tags=[]),
    "does not end in boxed": lambda nb: replace(cell_with(nb, "boxed("), "boxed(", "print("),
    "share a name": lambda nb: [
        setattr(cell, "source", 'numeric("same")') for cell in code(nb) if "numeric(" in cell.source
    ],
    "needs both tags": lambda nb: first_code(nb).metadata.update(tags=["keep_output"]),
    "has no stored output": lambda nb: first_code(nb).metadata.update(tags=sorted(EXACT)),
    "has a stored output": lambda nb: setattr(first_code(nb), "execution_count", 1),
    "not run or not compared": lambda nb: first_code(nb).metadata.update(tags=["nbval-skip"]),
    "pastes a kernel": lambda nb: setattr(first_code(nb), "source", "@triton.jit\ndef f(): ..."),
    "a peak of": lambda nb: setattr(first_code(nb), "source", "peak = 989.4e12"),
    "no cell calls confirm(": lambda nb: replace(cell_with(nb, "confirm("), "confirm(", "print("),
    "no confirm(...) shows what was executed": lambda nb: [
        replace(cell, "experiment, ", 'experiment, rungs=["counted"], ')
        for cell in code(nb)
        if "confirm(" in cell.source
    ],
    "self-checks; at least": lambda nb: [
        replace(cell, "numeric(", "print(") for cell in code(nb) if "numeric(" in cell.source
    ],
    "questions of understanding": lambda nb: [
        replace(cell, "choice(", "print(") for cell in code(nb) if "\nchoice(" in f"\n{cell.source}"
    ],
    "has no solution=": lambda nb: replace(cell_with(nb, "solution="), "solution=", "words="),
    "without a dropdown solution": lambda nb: replace(cell_with(nb, "{solution}"), ":class: dropdown", ""),
}


@pytest.mark.parametrize("complaint", BREAKS)
def test_the_lint_finds(complaint, chapter):
    broken = copy.deepcopy(chapter)
    BREAKS[complaint](broken)
    new = set(complaints(broken)) - set(complaints(chapter))
    assert any(complaint in found for found in new), new

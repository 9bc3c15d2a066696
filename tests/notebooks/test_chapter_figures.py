"""Every figure of a chapter has a number, a caption, and a sentence that refers to it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

from book.drawing import captions
from tests.notebooks.lint import code, prose

CHAPTERS = sorted((Path(__file__).resolve().parents[2] / "chapters").glob("[0-9]*.ipynb"))
DRAWS = ("show", "figure", "picture")  # figures.show, evidence.figure, picture


@dataclass(frozen=True)
class Drawn:
    """A figure as a cell asks for it."""

    call: str
    number: str
    caption: bool


def drawn(notebook: nbformat.NotebookNode) -> list[Drawn]:
    """The figures of a notebook, in order: every call of something that draws for the reader."""
    found = []
    for cell in code(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and _draws(node.func):
                given = {k.arg: k.value for k in node.keywords}
                number = given.get("number")
                found.append(
                    Drawn(
                        ast.unparse(node.func),
                        number.value if isinstance(number, ast.Constant) else "",
                        "caption" in given,
                    )
                )
    return found


def _draws(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in DRAWS and not (name == "show" and ast.unparse(function) != "figures.show")


def complaints(chapter: int, notebook: nbformat.NotebookNode) -> list[str]:
    """What is missing of the figures of this chapter, in sentences."""
    found, said = drawn(notebook), prose(notebook)
    wrong = [
        f"{one.call}(...) has no number and caption" for one in found if not (one.number and one.caption)
    ]
    expected = [f"{chapter}.{place}" for place in range(1, len(found) + 1)]
    if [one.number for one in found] != expected:
        wrong.append(f"numbers are {[one.number for one in found]}, in order they are {expected}")
    named = re.findall(captions.title(f"({captions.NUMBER.pattern})"), said)
    own = {number for number in named if number.startswith(f"{chapter}.")}
    wrong += [f"no sentence names {captions.title(one.number)}" for one in found if one.number not in own]
    wrong += [f"{captions.title(number)} is named and not drawn" for number in sorted(own - set(expected))]
    return wrong


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_figures_are_numbered_in_order_captioned_and_referred_to(path):
    found = complaints(int(path.stem[:2]), nbformat.read(path, as_version=4))
    assert not found, "\n".join([path.name, *found])


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_figure_of_another_chapter_that_is_named_stands_there(path):
    numbers = {one.number for other in CHAPTERS for one in drawn(nbformat.read(other, as_version=4))}
    said = prose(nbformat.read(path, as_version=4))
    assert set(re.findall(captions.title(f"({captions.NUMBER.pattern})"), said)) <= numbers


# ------------------------------------------------------------------------------------ it can fail


def notebook(*cells: str) -> nbformat.NotebookNode:
    """Markdown where a cell begins with #, code elsewhere."""
    new = nbformat.v4
    return new.new_notebook(
        cells=[
            new.new_markdown_cell(source[1:]) if source[0] == "#" else new.new_code_cell(source)
            for source in cells
        ]
    )


GOOD = ("# As Figure 2.1 shows.", 'evidence.figure(caption="One.", number="2.1")')


def test_a_chapter_with_a_figure_that_is_named_has_no_complaint():
    assert complaints(2, notebook(*GOOD)) == []
    assert complaints(2, notebook("# No figure.", "plot.show()")) == []


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ((*GOOD, "figures.show(drawing, alt='x')"), "no number and caption"),
        ((*GOOD, "evidence.figure(number='2.2')"), "no number and caption"),
        ((GOOD[0], GOOD[1].replace("2.1", "2.2")), "in order they are"),
        ((GOOD[1],), "no sentence names Figure 2.1"),
        ((*GOOD, "# And Figure 2.2."), "named and not drawn"),
    ],
)
def test_each_rule_can_fail(cells, words):
    assert any(words in complaint for complaint in complaints(2, notebook(*cells)))

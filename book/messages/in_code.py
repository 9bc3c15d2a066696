"""The messages of modules and of chapters' cells, each with the places where it is said.

In a module a message is the literal inside `say(...)`. In a cell that a reader reads there is no
`say`: what takes the words (`numeric`, `choice`, `show`, `table`, `Column`) looks them up, so they are found
by who takes them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract

from book.messages.escaped import called, is_text, with_parents
from book.say import DOMAIN

ROOT = Path(__file__).resolve().parents[2]
HOUSES = ("book", "kernels", "labs")
NOTEBOOKS = "chapters"

# Who looks up, in a cell, what it is given: positions and keywords.
CELLS: dict[str, tuple[int | str, ...]] = {
    "say": (0,),
    "numeric": ("question", "mistakes", "right", "hint", "solution"),
    "choice": ("question", "options", "right", "solution"),
    "show": (1, "alt", 2, "caption"),
    "roofline": ("alt",),
    "formula": ("alt",),
    "table": (1, "columns", 2, "caption"),
    "Column": (1, "label"),
}

Message = tuple[int, str]  # the line and the text


def catalog(root: Path = ROOT) -> Catalog:
    """Every message of modules and cells, with the files and lines where it stands."""
    made = Catalog(
        project="The Inference Roofline",
        domain=DOMAIN,
        copyright_holder="The Inference Roofline authors",
        header_comment=f"# What the code of The Inference Roofline says: {DOMAIN}.pot.\n#",
    )
    for path, found in messages(root):
        for line, text in found:
            made.add(text, locations=[(path.relative_to(root).as_posix(), line)])
    return made


def messages(root: Path = ROOT) -> Iterator[tuple[Path, list[Message]]]:
    """(file, its messages) for each module and each chapter, in the order of their names."""
    for house in HOUSES:
        for path in sorted((root / house).rglob("*.py")):
            if "node_modules" not in path.parts:
                yield path, of_module(path.read_bytes())
    for path in sorted((root / NOTEBOOKS).glob("[!_]*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield path, of_cells("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def of_module(source: bytes) -> list[Message]:
    """What a module says: the literals in its calls of `say`, by Babel."""
    found = extract("python", BytesIO(source), {"say": None}, (), {})
    return [(line, text) for line, text, _, _ in found if isinstance(text, str) and text]


def of_cells(cells: Iterable[str]) -> list[Message]:
    """What a notebook's cells give to those who say it. The line is the cell's number, from 1."""
    return [(number, text) for number, cell in enumerate(cells, 1) for text in _given(cell)]


def _given(cell: str) -> Iterator[str]:
    try:
        tree = with_parents(ast.parse(cell))
    except SyntaxError:  # a cell in IPython's own syntax
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (takes := CELLS.get(called(node))):
            given = [(i, value) for i, value in enumerate(node.args)]
            given += [(k.arg, k.value) for k in node.keywords if k.arg]
            for place, value in given:
                if place in takes:
                    yield from _texts(value, keys=place == "options")


def _texts(value: ast.expr, *, keys: bool = False) -> Iterator[str]:
    """The literals in what is given: of a dict its values (and its keys), of a list its elements."""
    if isinstance(value, ast.Dict):
        for key, one in zip(value.keys, value.values, strict=True):
            if keys and key is not None:
                yield from _texts(key)
            yield from _texts(one)
    elif isinstance(value, ast.List | ast.Tuple):
        for one in value.elts:
            yield from _texts(one)
    elif is_text(value) and isinstance(value, ast.Constant) and value.value:
        yield value.value

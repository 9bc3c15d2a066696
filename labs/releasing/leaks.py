"""Does a student's copy say what the master says, with blanks, and nothing that it must not?

Found by reading both, without nbgrader. Each problem is a sentence.
"""

from __future__ import annotations

import ast
import base64
import json
import lzma
import re
from collections.abc import Iterable, Mapping, Sequence

from nbformat import NotebookNode

from book.portable import bundle
from labs.releasing.held_back import KEY
from labs.releasing.regions import HIDDEN, SOLUTION, regions, released

TELLING = 12  # characters; a shorter line, such as `else:`, tells nobody anything
# Our modules may hold a solution of one or two lines, such as `return peak / bandwidth`: the book
# derives them. A longer one is a program.
LONG = 3  # telling lines
# A lab's key, as an import or a path names it.
KEY_NAMED = re.compile(rf"\blabs[./]\w+(?:[./]|\s+import\s[^\n]*\b){KEY}\b")


def problems(master: NotebookNode, student: NotebookNode, without: Sequence[str]) -> list[str]:
    """What is wrong with the student's copy, a sentence each; [] if nothing is.

    without: the modules that must not travel with it, as `held_back.modules` finds them.
    """
    try:
        return [
            *_differences(master, student),
            *_solutions_without_region(master),
            *_leaks(master, student, without),
        ]
    except ValueError as error:
        return [f"the master can't be read: {error}"]


def carried(notebook: NotebookNode) -> dict[str, str]:
    """path -> text of what a notebook's set-up cell unpacks; {} if it has no such cell."""
    for cell in notebook.cells:
        if cell.get("id") == bundle.CELL_ID:
            calls = [n for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.Call)]
            (call,) = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "_set_up"]
            letters = "".join(ast.literal_eval(call.args[1]).split())
            return json.loads(lzma.decompress(base64.b85decode(letters)))
    return {}


def _differences(master: NotebookNode, student: NotebookNode) -> list[str]:
    """Line for line: outside the regions both say the same, and each solution left one blank."""
    theirs = [cell for cell in student.cells if cell.get("id") != bundle.CELL_ID]
    if len(theirs) != len(master.cells):
        return [f"the master has {len(master.cells)} cells and the student's copy {len(theirs)}."]
    found = []
    for ours, cell in zip(master.cells, theirs, strict=True):
        wanted = released(ours.source) if ours.cell_type == "code" else ours.source
        is_answer = ours.cell_type == "markdown" and _told(ours).get("solution")
        if ours.cell_type != cell.cell_type or (wanted != cell.source and not is_answer):
            pairs = zip(wanted.split("\n"), cell.source.split("\n"), strict=False)
            line = next((n for n, (a, b) in enumerate(pairs, 1) if a != b), "the last")
            found.append(f"{_name(cell)}: it differs from the master outside the regions, at line {line}.")
    return found


def _solutions_without_region(master: NotebookNode) -> list[str]:
    """Of such a cell students would get nothing but a stub: not even the signature."""
    return [
        f"{_name(cell)}: it is a solution without a '### BEGIN {SOLUTION}'; mark what students write."
        for cell in master.cells
        if cell.cell_type == "code" and _told(cell).get("solution") and not regions(cell.source, SOLUTION)
    ]


def _leaks(master: NotebookNode, student: NotebookNode, without: Sequence[str]) -> list[str]:
    cells = {_name(cell): cell.source for cell in student.cells if cell.get("id") != bundle.CELL_ID}
    files = carried(student)
    found = []
    for name in files:
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if any(f"{module}.".startswith(f"{kept}.") for kept in without):
            found.append(f"{name}: it is in the set-up cell, and no student may have it.")
    for place, text in (cells | files).items():
        words = [word for word in (f"BEGIN {SOLUTION}", f"BEGIN {HIDDEN}") if word in text]
        words += [named[0] for named in KEY_NAMED.finditer(text)]
        found += [f"{place}: it says {word!r}, which no student's copy may." for word in words]
    for cell in master.cells:
        for kind in (SOLUTION, HIDDEN):
            for region in regions(cell.source, kind):
                found += [
                    f"{place}: it holds the lines of a {kind.lower()} region of {_name(cell)}, "
                    f"{region[0].strip()!r} and so on."
                    for place in (*_holding(region, cells), *_holding(region, files, LONG))
                ]
    return found


def _holding(region: Sequence[str], texts: Mapping[str, str], fewest: int = 1) -> Iterable[str]:
    """Where all of a region's telling lines stand. A line that is short or a comment tells nothing."""
    stripped = [line.strip() for line in region]
    telling = {line for line in stripped if len(line) >= TELLING and not line.startswith("#")}
    if len(telling) < fewest:
        return []
    return [place for place, text in texts.items() if telling <= {s.strip() for s in text.split("\n")}]


def _told(cell: NotebookNode) -> Mapping[str, object]:
    return cell.metadata.get("nbgrader", {})


def _name(cell: NotebookNode) -> str:
    return str(_told(cell).get("grade_id") or cell.get("id") or cell.source.split("\n")[0])

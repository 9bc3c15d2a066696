"""Reads what a student handed in. It is called .ipynb; it may be anything.

Nothing of it runs here. Out come the solution cells, by grade_id, and sentences on what was odd.
"""

from __future__ import annotations

import ast
import codecs
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from book.say import say
from labs.grading import master
from labs.grading.safe_text import several, tidy

LARGEST_FILE = 20_000_000  # bytes
LONGEST_CELL = 100_000  # characters; the parser takes about a kilobyte for ten of them
MOST_CELLS = 1000
MOST_EXTRA = 500  # cells of the student's own that are looked at for names
MARKER = re.compile(r"#\s*\[([\w.-]+)\]")
# Nothing in it is tried twice (*+): a line of a hundred thousand spaces must not take minutes.
MAGIC = re.compile(r"\s*+(%%?[A-Za-z_]|!|\?)|.*\w\?\??\s*$|\s*+[\w, ]*+=\s*+(!|%[A-Za-z_])")
TIMED = re.compile(r"(\s*)%(?:time|timeit)\s+(?!-)(.+)")
PIECE = re.compile(r"[\w.+\-\\]*")  # of a number, of true, false or null, of an escape
# How files begin that are handed in by mistake.
KINDS = {b"PK\x03\x04": say("a ZIP file"), b"%PDF": say("a PDF file"), b"\x1f\x8b": say("a gzip file")}
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Submission:
    """cells: source by grade_id, in the master's order. untouched: those as they were handed out.

    missing: why there is no such cell, by grade_id. elsewhere: names that only cells without
    an answer define. notes: what was odd. digest: of the file. unreadable: why there is nothing to grade.
    """

    cells: Mapping[str, str] = field(default_factory=dict)
    untouched: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    digest: str = ""
    unreadable: str = ""


class Unreadable(ValueError):
    """There is no notebook in the file; the sentence is for its author."""


@dataclass(frozen=True)
class _Cell:
    number: int  # as a person counts
    kind: str
    source: str
    by_metadata: str
    by_marker: str


def digest_of(path: Path) -> str:
    """The digest that `read` gives the file; OSError if it can't be opened."""
    with path.open("rb") as file:
        return _digest(file.read(LARGEST_FILE + 1))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(path: Path, assignment: master.Assignment) -> Submission:
    """The submission in a file. Never raises for what the file holds; OSError if it can't be opened."""
    size = path.stat().st_size
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    digest = _digest(data)
    wanted = master.read(assignment).solutions
    notes: list[str] = []
    try:
        if len(data) > LARGEST_FILE:
            raise Unreadable(
                say(
                    "The file has {size:,.0f} MB, and at most {most:.0f} MB are read. Clear "
                    "the outputs (Edit, Clear all outputs), save, and hand it in again.",
                    size=size / 1e6,
                    most=LARGEST_FILE / 1e6,
                )
            )
        cells = list(_cells(_notebook(data, notes), wanted, notes))
    except Unreadable as error:
        why = tidy(str(error))
        return Submission(
            missing=dict.fromkeys(wanted, why), notes=(*notes, why), digest=digest, unreadable=why
        )
    chosen, missing = {}, {}
    homes = _homes(cells, wanted, notes)
    for name, solution in wanted.items():
        try:
            chosen[name] = _chosen(name, homes.get(name, []), solution, notes)
        except Unreadable as error:
            missing[name] = str(error)
            notes.append(str(error))
    if not chosen and not any(homes.values()):
        notes.insert(
            0,
            say(
                "No cell of {assignment} was found in it; perhaps it is another notebook.",
                assignment=assignment.name,
            ),
        )
    untouched = frozenset(n for n, source in chosen.items() if master.is_stub(source, wanted[n]))
    found = {name: _python(source, name, notes) for name, source in chosen.items()}
    taken = {cell.number for home in homes.values() for cell in home}
    own = [cell for cell in cells if cell.number not in taken]
    elsewhere = frozenset(_names(own)) - _defined(found.values())
    return Submission(found, untouched, missing, elsewhere, tuple(dict.fromkeys(map(tidy, notes))), digest)


# ------------------------------------------------------------------------------------ bytes, JSON


def _notebook(data: bytes, notes: list[str]) -> Mapping[str, Any]:
    """The notebook in these bytes; Unreadable says why there is none."""
    if not data.strip():
        raise Unreadable(say("The file is empty. Save the notebook and hand it in again."))
    for start, kind in KINDS.items():
        if data.startswith(start):
            raise Unreadable(
                say(
                    "The file is {kind}, not a notebook. Hand in the .ipynb file itself.",
                    kind=kind,
                )
            )
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    text = data.decode(encoding, errors="replace")
    if encoding != "utf-8-sig" or data.startswith(codecs.BOM_UTF8) or "\ufffd" in text:
        notes.append(say("The file is not plain UTF-8 as notebooks are; it was read as far as it goes."))
    try:
        found = json.loads(text, strict=False)
    except RecursionError:
        raise Unreadable(say("The file is nested too deeply for a notebook.")) from None
    except ValueError as error:
        if text.lstrip().startswith("<"):
            raise Unreadable(
                say("The file is a web page, not a notebook. Hand in the .ipynb file.")
            ) from None
        json_error = isinstance(error, json.JSONDecodeError)
        cut = json_error and _ends_in_the_middle(text, error)
        what = say("The file ends in the middle") if cut else say("The file is not a notebook")
        where = say("line {line}", line=error.lineno) if json_error else say("a number")
        raise Unreadable(
            say(
                "{what} (its JSON breaks at {where}). Download it again and hand it in.",
                what=what,
                where=where,
            )
        ) from None
    if not isinstance(found, dict):
        raise Unreadable(say("The file holds JSON, but no notebook. Hand in the .ipynb file."))
    return found


def _ends_in_the_middle(text: str, error: json.JSONDecodeError) -> bool:
    """Whether what broke the reading of an object is its end: nothing but a piece of a word is left there."""
    left = text[error.pos :].strip()
    at_the_end = error.msg.startswith("Unterminated string") or PIECE.fullmatch(left) is not None
    return text.lstrip().startswith("{") and at_the_end


def _cells(notebook: Mapping[str, Any], wanted: Mapping[str, str], notes: list[str]) -> Iterator[_Cell]:
    """The notebook's cells of nbformat 3 or 4, whatever else is in them."""
    listed = notebook.get("cells")
    if listed is None and isinstance(notebook.get("worksheets"), list):
        notes.append(say("It was saved in the old notebook format 3; its cells were read all the same."))
        sheets = [sheet.get("cells") for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        listed = [cell for sheet in sheets if isinstance(sheet, list) for cell in sheet]
    if not isinstance(listed, list):
        raise Unreadable(say("The file is JSON, but it has no cells. Hand in the .ipynb file."))
    if len(listed) > MOST_CELLS:
        raise Unreadable(
            say(
                "The notebook has {count:,} cells, and at most {most:,} are read.",
                count=len(listed),
                most=MOST_CELLS,
            )
        )
    for number, cell in enumerate(listed, 1):
        if not isinstance(cell, dict):
            continue
        source = _text(cell.get("source", cell.get("input")))
        metadata = cell.get("metadata")
        about = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        by_metadata = about.get("grade_id") if isinstance(about, dict) else None
        by_metadata = by_metadata if isinstance(by_metadata, str) and by_metadata in wanted else ""
        # A magic such as %%time may stand above the marker.
        firsts = [line for line in source.lstrip().splitlines()[:5] if not line.startswith("%")]
        marked = MARKER.match(firsts[0].lstrip()) if firsts else None
        by_marker = marked.group(1) if marked and marked.group(1) in wanted else ""
        yield _Cell(number, str(cell.get("cell_type")), source, by_metadata, by_marker)


def _text(source: Any) -> str:
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return ""
    source = source.encode("utf-8", "replace").decode()  # half a character is none
    return source.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ").replace("\0", "")


# ------------------------------------------------------------------------------- which cell is which


def _homes(cells: list[_Cell], wanted: Mapping[str, str], notes: list[str]) -> dict[str, list[_Cell]]:
    """The cells that claim each grade_id, in the submission's order."""
    sure = {c.by_metadata for c in cells if c.by_metadata and c.by_metadata == c.by_marker}
    homes: dict[str, list[_Cell]] = {name: [] for name in wanted}
    bare: list[str] = []
    for cell in cells:
        name = cell.by_metadata or cell.by_marker
        if cell.by_metadata and cell.by_marker and cell.by_metadata != cell.by_marker:
            # A copied cell brings its metadata along: the text is right where the place is taken.
            name = cell.by_marker if cell.by_metadata in sure else cell.by_metadata
            notes.append(
                say(
                    "Cell {number} is {by_metadata} by its metadata and {by_marker} by its first line; "
                    "it was taken as {name}.",
                    number=cell.number,
                    by_metadata=cell.by_metadata,
                    by_marker=cell.by_marker,
                    name=name,
                )
            )
        elif cell.by_marker and not cell.by_metadata:
            bare.append(name)
        if name:
            homes[name].append(cell)
    if len(bare) == 1:
        notes.append(say("{cell} lost its metadata; it was recognised by its first line.", cell=bare[0]))
    elif bare:
        notes.append(
            say(
                "{count} answer cells lost their metadata; they were recognised by their first lines.",
                count=len(bare),
            )
        )
    order = [homes[name][-1].number for name in wanted if homes[name]]
    if order != sorted(order):
        notes.append(say("Cells were moved; they were run in the lab's order."))
    return homes


def _chosen(name: str, claims: list[_Cell], solution: str, notes: list[str]) -> str:
    """The source that counts for a grade_id; Unreadable if there is none."""
    if not claims:
        raise Unreadable(
            say(
                "The cell {name} is missing; it was deleted, or its first line was changed.",
                name=name,
            )
        )
    own = [cell for cell in claims if not master.is_stub(cell.source, solution)] or claims
    last = own[-1]
    if len({cell.source.strip() for cell in own}) > 1:
        numbers = several([str(cell.number) for cell in own])
        notes.append(
            say(
                "{name} is there {count} times (cells {numbers}); the last one was graded.",
                name=name,
                count=len(own),
                numbers=numbers,
            )
        )
    if last.kind != "code":
        notes.append(say("{name} is no code cell any more; its text was taken as code.", name=name))
    if len(last.source) > LONGEST_CELL:
        raise Unreadable(
            say(
                "The cell {name} has {count:,} characters; more than {most:,} are not read.",
                name=name,
                count=len(last.source),
                most=LONGEST_CELL,
            )
        )
    return last.source


# ------------------------------------------------------------------------------------------ Python


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except NOT_PYTHON:
        return None


def _python(source: str, name: str, notes: list[str]) -> str:
    """The cell without what only a notebook understands. Lines keep their numbers."""
    if _tree(source) is not None:
        return source
    lines, out = [], []
    for line in source.split("\n"):
        timed = TIMED.match(line)
        if timed:
            line = timed.group(1) + timed.group(2)
        elif MAGIC.match(line) and not line.lstrip().startswith("#"):
            out.append(line.split()[0])
            line = f"{line[: len(line) - len(line.lstrip())]}pass  # {line.lstrip()}"
        lines.append(line)
    made = "\n".join(lines)
    if _tree(made) is None:
        return source  # then it is a syntax error, and shown as it was written
    if out:
        notes.append(
            say(
                "{name}: lines for the notebook only ({lines}) were not run.",
                name=name,
                lines=several(list(dict.fromkeys(out))),
            )
        )
    return made


def _names(own: list[_Cell]) -> Iterator[str]:
    for cell in own[:MOST_EXTRA]:
        if cell.kind == "code" and len(cell.source) <= LONGEST_CELL:
            yield from _defined([_python(cell.source, "", [])])


def _defined(sources: Any) -> set[str]:
    """The names that these sources set at their top level, loops and conditions included."""
    found: set[str] = set()
    for source in sources:
        waiting: list[ast.AST] = list(getattr(_tree(source), "body", []))
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            if isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
            if not isinstance(node, ast.Lambda):
                waiting += ast.iter_child_nodes(node)
    return found

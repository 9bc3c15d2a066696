"""Sentences that claim something, and what holds them up.

A sentence with "at least", "the same", "seldom" or "every" in it is a claim. In a chapter it needs an
assertion of that kind (`comparatives`) in a code cell beside it, between the same two headings; a
sentence that code says needs one in its own cell, or another wording for another outcome. Elsewhere,
and where that can't be, it needs a reason in `reasons/NAME.yaml`: the sentence, and why it is true.

    python -m book.notebook.sentences                                   # all that have neither
    python -m book.notebook.sentences chapters/02-linear-layers.ipynb   # of one file
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from book.notebook.comparatives import Need, asserted, words

ROOT = Path(__file__).resolve().parents[2]
REASONS = Path(__file__).with_name("reasons")
# What a reason may be; the first four name what can be looked up.
KINDS = ("test", "cell", "equation", "cited", "definition", "arithmetic", "advice", "points")
PAGES = ("index.md", "book/pages")
LEDGER = "book/claims"
# What a cell shows. A question's givens are none of these, nor what it offers to be picked.
SHOWN = frozenset({"mistakes", "options", "right", "hint", "solution", "alt", "caption"})

_FENCE = re.compile(
    r"^(`{3,}|~{3,})(?!\{(?:exercise|solution|glossary|note|tip|admonition)).*?^\1\s*$", re.S | re.M
)
_CODE_CELL = re.compile(r"^`{3,}\{code-cell\}[^\n]*\n(.*?)^`{3,}\s*$", re.S | re.M)
_DIRECTIVE = re.compile(r"^\s*(?:`{3,}|:{3,}).*$|^:[\w-]+:.*$|^\s*\|?[\s|:-]+\|?$|^\(.*\)=$|^%.*$", re.M)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_DISPLAY = re.compile(r"\$\$.*?\$\$(?: *\([\w-]+\))?", re.S)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CITED = re.compile(r"\s*\{cite[\w:]*\}`[^`]*`")
_ROLE = re.compile(r"\{[\w:-]+\}`([^`<]*?)(?:\s*<[^>]*>)?`")
_END = re.compile(r"(?<=[.!?:])[*_)\"”]*\s+(?=[*_\"“(]*[A-Z0-9$`\[])")
_HEADING = re.compile(r"^#{1,6} ", re.M)


@dataclass(frozen=True)
class Claim:
    """A sentence that claims. path: from the root; where: the heading over it, or a row's name."""

    path: str
    where: str
    sentence: str
    words: Mapping[str, Need]

    def __str__(self) -> str:
        return f"{self.path} ({self.where}) [{', '.join(self.words)}]\n    {self.sentence}"


def unsupported(path: Path, root: Path = ROOT) -> list[Claim]:
    """The claims of a file that nothing beside them asserts: a notebook, a Markdown page, or a module.

    Raises ValueError for any other kind of file.
    """
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    if path.suffix not in (".ipynb", ".md", ".py"):
        raise ValueError(f"path = {path}: give a notebook (.ipynb), a page (.md) or a module (.py).")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return list(_of_notebook(name, json.loads(text)["cells"]))
    if path.suffix == ".md":
        return list(_of_notebook(name, _cells(text)))
    return list(_of_module(name, text))


def files(root: Path = ROOT) -> list[Path]:
    """Every file whose sentences readers see as prose: chapters, pages, the ledger's rows."""
    pages = [root / PAGES[0], *sorted((root / PAGES[1]).glob("*.md"))]
    return [
        *sorted((root / "chapters").glob("[0-9]*.ipynb")),
        *pages,
        *sorted((root / LEDGER).glob("ch*.py")),
    ]


def reasons(path: Path, folder: Path = REASONS) -> dict[str, str]:
    """{sentence: why it is true} of a file, as recorded beside this module under the file's own name.

    A reason begins with its kind: "test: tests/book/test_x.py::test_name", "cell: ID" of one that asserts
    it elsewhere, "equation: LABEL", "cited: KEY", "definition: ...", "arithmetic: ...", "advice: ..." for
    what tells a reader to do something, "points: ..." for what names a thing and compares nothing.

    Raises ValueError for a reason of no kind, and for one that is empty.
    """
    recorded = folder / f"{path.stem}.yaml"
    read = yaml.safe_load(recorded.read_text(encoding="utf-8")) if recorded.exists() else None
    given = {str(sentence): str(why or "").strip() for sentence, why in (read or {}).items()}
    for sentence, why in given.items():
        kind, _, told = why.partition(": ")
        if kind not in KINDS or not told.strip():
            raise ValueError(
                f"{recorded.name}: the reason for {sentence!r} is {why!r}; write its kind "
                f"({', '.join(KINDS)}), a colon, and why it is true."
            )
    return given


def complaints(path: Path, root: Path = ROOT, folder: Path = REASONS) -> list[str]:
    """Claims of a file without an assertion or a reason, and reasons whose sentence is gone, a text each."""
    claims = unsupported(path, root)
    given = reasons(path, folder)
    said = {claim.sentence for claim in claims}
    return [str(claim) for claim in claims if claim.sentence not in given] + [
        f"{path.name}: a reason is given for a sentence that no longer needs one or isn't there: {sentence!r}"
        for sentence in given
        if sentence not in said
    ]


# --------------------------------------------------------------------------------------- reading


def sentences(markdown: str) -> Iterator[str]:
    """The sentences of Markdown, without its marks; code and displayed formulas are none."""
    text = _DISPLAY.sub("\n\n", _COMMENT.sub("", _FENCE.sub("", markdown)))
    text = _DIRECTIVE.sub("", text)
    text = _ROLE.sub(r"\1", _LINK.sub(r"\1", _CITED.sub("", text)))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\|))|(?<=\|)\s*\n", text):
        for cell in block.split("|") if block.lstrip().startswith("|") else [block]:
            plain = re.sub(r"^\s*(?:[-*>] |\d+\. |#+ )", "", cell)
            plain = re.sub(r"\s+", " ", plain.replace("**", "")).strip()
            yield from (part.strip() for part in _END.split(plain) if part.strip())


def _claims(path: str, where: str, text: str) -> Iterator[Claim]:
    for sentence in sentences(text):
        plain = re.sub(r"\$[^$]*\$|`[^`]*`", "x", sentence)
        if found := words(plain):
            yield Claim(path, where, sentence, found)


def _sections(markdown: str) -> Iterator[tuple[str, str]]:
    """(heading, what stands under it), a heading's own words with it."""
    for part in re.split(r"^(?=#{1,6} )", _FENCE.sub("", markdown), flags=re.M):
        if part.strip():
            first = part.strip().splitlines()[0]
            yield (first.lstrip("# ") if first.startswith("#") else ""), part


def _cells(markdown: str) -> list[dict[str, Any]]:
    """A page as a notebook's cells: Markdown, and the `{code-cell}` blocks that run as it is built."""
    parts = _CODE_CELL.split(re.sub(r"\A---\n.*?^---\n", "", markdown, flags=re.S | re.M))
    return [
        {
            "cell_type": "code" if i % 2 else "markdown",
            "source": [re.sub(r"^:\w+:.*\n", "", part, flags=re.M)],
        }
        for i, part in enumerate(parts)
        if part.strip()
    ]


def _of_notebook(path: str, cells: list[dict[str, Any]]) -> Iterator[Claim]:
    where = ""
    for i, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            yield from _of_cell(path, where, source)
            continue
        parts = list(_sections(source))
        for j, (heading, part) in enumerate(parts):
            where = heading or where
            beside: set[Need] = set()
            if j == len(parts) - 1:
                beside |= _beside(cells[i + 1 :])
            if j == 0 and not heading:
                beside |= _beside(cells[:i][::-1])
            for claim in _claims(path, where, part):
                if not set(claim.words.values()) <= beside:
                    yield claim


def _beside(cells: list[dict[str, Any]]) -> set[Need]:
    """What the code cells that follow each other at once assert."""
    found: set[Need] = set()
    for cell in cells:
        if cell["cell_type"] != "code":
            break
        found |= asserted("".join(cell["source"]))
    return found


def _of_cell(path: str, where: str, source: str) -> Iterator[Claim]:
    """What a cell says: an assertion in it holds a sentence up, and so does a choice between wordings."""
    own = asserted(source)
    for text, chosen in _said(source):
        for claim in () if chosen else _claims(path, where, text):
            if not set(claim.words.values()) <= own:
                yield claim


def _of_module(path: str, source: str) -> Iterator[Claim]:
    """What a ledger's rows say of a claim. What is claimed is judged by the row's own expression."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("right", "wrong"):
            name = ast.unparse(node.args[0])
            for call in [*node.args[2:], *(k.value for k in node.keywords if k.arg != "statement")]:
                for text in _literals(call):
                    yield from _claims(path, name, text)


def _said(source: str) -> Iterator[tuple[str, bool]]:
    """(text, whether another one could have stood in its place) for what a cell shows."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    chosen = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp | ast.If | ast.Subscript)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = node.args[:1] if called == "say" else [k.value for k in node.keywords if k.arg in SHOWN]
            for value in given:
                for text in _literals(value):
                    # "You counted a byte as half a number" says what a reader did, and claims nothing
                    yield re.sub(r"(?:^|(?<=[.!?] ))You [^.!?]*[.!?]", "", text), node in chosen


def _literals(value: ast.expr) -> Iterator[str]:
    """The texts in an argument: a dict's values, the text in a `say`."""
    if isinstance(value, ast.Dict):
        for one in value.values:
            yield from _literals(one)
    elif isinstance(value, ast.Call) and getattr(value.func, "id", "") == "say":
        yield from _literals(value.args[0])
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value


def main(arguments: list[str]) -> int:
    """Print what has neither an assertion nor a reason; 1 if there is any."""
    found = [text for path in map(Path, arguments) for text in complaints(path.resolve())]
    if not arguments:
        found = [text for path in files() for text in complaints(path)]
    print("\n".join(found) or "every claim has an assertion beside it or a reason.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What STYLE.md asks of a chapter, as a function from a notebook to a list of complaints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from book import catalog

HEADINGS = (
    "A surprising number",
    "Explorer",
    "Derivation",
    "Worked numbers",
    "The kernel",
    "Where it bends",
    "Folklore",
    "Exercises",
    "Summary",
)
CARD = (":class: chapter-card", "**You will be able to**", "**Read first**")
LONGEST_CELL = 15
MOST_SHOWN = 120  # lines of code that stand open on the page
WIDEST_LINE = 80
EXACT = {"keep_output", "nbval-check-output"}
FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
SKIPPED = {
    "skip-execution",
    "nbval-skip",
    "nbval-raises-exception",
    "raises-exception",
    "nbval-ignore-output",
}


def complaints(notebook: NotebookNode, checks: int = 4, choices: int = 2) -> list[str]:
    """Everything in which `notebook` is not a chapter.

    checks, choices: how many self-checks it needs at least, with a number to type and with options to pick.
    """
    return [*_card(notebook), *_headings(notebook), *_code(notebook), *_parts(notebook, checks, choices)]


def code(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown_lines(notebook: NotebookNode) -> int:
    """Lines of code that a reader sees without opening anything."""
    open_cells = (c for c in code(notebook) if not FOLDED & set(c.metadata.get("tags", [])))
    return sum(len(cell.source.splitlines()) for cell in open_cells)


def prose(notebook: NotebookNode) -> str:
    """All Markdown, without what stands in code fences."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return re.sub(r"^```python.*?^```", "", text, flags=re.S | re.M)


def _card(notebook: NotebookNode) -> Iterator[str]:
    first = notebook.cells[0].source if notebook.cells else ""
    if not re.match(r"# \S", first):
        yield "the first cell does not begin with the title, '# ...'"
    if not re.search(r"^:::\{admonition\} .+\?$", first, re.M):
        yield "the chapter card asks no question"
    for part in CARD:
        if part not in first:
            yield f"the chapter card lacks {part!r}"
    if not re.search(r"\*\*Time\*\* \d+ minutes", first):
        yield "the chapter card does not say '**Time** NN minutes'"


def _headings(notebook: NotebookNode) -> Iterator[str]:
    found = re.findall(r"^## (.+)$", prose(notebook), re.M)
    if tuple(heading.split(":")[0] for heading in found) != HEADINGS:
        yield f"its level-two headings are {found}; STYLE.md wants {list(HEADINGS)}"
    if len(re.findall(r"^# ", prose(notebook), re.M)) != 1:
        yield "it has more than one title"


def _code(notebook: NotebookNode) -> Iterator[str]:
    constants = catalog_constants()
    if (lines := shown_lines(notebook)) > MOST_SHOWN:
        yield f"it shows {lines} lines of code; {MOST_SHOWN} at most: tag cells that only print hide-input"
    for cell in code(notebook):
        name, tags = repr(cell.source.split("\n")[0]), set(cell.metadata.get("tags", []))
        lines = len(cell.source.splitlines())
        asks = "numeric(" in cell.source or "choice(" in cell.source
        if lines > LONGEST_CELL and not asks:
            yield f"cell {name} has {lines} lines; {LONGEST_CELL} at most"
        if asks:
            if "remove-input" not in tags or not cell.metadata.get("jupyter", {}).get("source_hidden"):
                yield f"cell {name} shows its answers; tag it remove-input and hide its source"
        elif (widest := max(map(len, cell.source.splitlines()), default=0)) > WIDEST_LINE:
            yield f"cell {name} has a line of {widest} characters; {WIDEST_LINE} at most"
        if tags & EXACT and not tags >= EXACT:
            yield f"cell {name} needs both tags {sorted(EXACT)} or none"
        if tags & EXACT and not (cell.outputs and cell.execution_count):
            yield f"cell {name} is tagged keep_output but has no stored output; run `make outputs`"
        if not tags & EXACT and (cell.outputs or cell.execution_count):
            yield f"cell {name} has a stored output; run `make format`"
        if skipped := tags & SKIPPED:
            yield f"cell {name} is not run or not compared: {sorted(skipped)}"
        if "@triton.jit" in cell.source:
            yield f"cell {name} pastes a kernel; show it with book.notebook.source.source(...)"
        for value in _numbers(cell.source):
            if value in constants:
                yield f"cell {name} types {value:g}, which is {constants[value]} of the catalog"


def _parts(notebook: NotebookNode, checks: int, choices: int) -> Iterator[str]:
    source = "\n".join(cell.source for cell in code(notebook))
    for call, part in (("explore(", "Explorer"), ("source(", "The kernel"), ("confirm(", "The kernel")):
        if call not in source:
            yield f"no cell calls {call}...), which belongs under '## {part}'"
    if not any("executed" in shown for shown in _confirmed(source)):
        yield 'no confirm(...) shows what was executed; leave out rungs=, or name "executed" in it'
    if "boxed(" not in source:
        yield "the derivation does not end in boxed(...)"
    if not re.search(r"^assert .*==", source, re.M):
        yield "the derivation asserts nothing: it must equal book.cost's formula"
    if (n := source.count("numeric(")) < checks:
        yield f"it has {n} self-checks; at least {checks}"
    if (n := len(re.findall(r"^choice\(", source, re.M))) < choices:
        yield f"it has {n} questions of understanding, choice(...); at least {choices}"
    for call in _self_checks(notebook):
        if "solution" not in [k.arg for k in call.keywords]:
            yield f"the self-check {ast.unparse(call.args[0])} has no solution="
    names = re.findall(r"\b(?:numeric|choice)\(\s*\"([^\"]+)\"", source)
    if len(set(names)) != len(names):
        yield f"two self-checks share a name: {sorted(names)}"
    labels = set(re.findall(r"\{exercise\}.*\n:label: (\S+)", prose(notebook)))
    solved = set(re.findall(r"\{solution\} (\S+)\n:class: dropdown", prose(notebook)))
    if labels != solved:
        yield f"exercises without a dropdown solution, or the reverse: {sorted(labels ^ solved)}"


def _self_checks(notebook: NotebookNode) -> Iterator[ast.Call]:
    """The calls of numeric(...) and choice(...)."""
    for cell in code(notebook):
        for call in (
            ast.walk(ast.parse(cell.source)) if re.search(r"\b(numeric|choice)\(", cell.source) else ()
        ):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("numeric", "choice"):
                yield call


def _confirmed(source: str) -> Iterator[str]:
    """What each call of confirm(...) in these cells shows: every rung, or the text of its rungs."""
    for call in re.findall(r"confirm\(.*?\n?\)", source, re.S):
        named = re.search(r"rungs=(\w+|[\[(].*?[\])])", call, re.S)
        if named is None:
            yield "counted executed compiled"
        elif assigned := re.search(rf"^{re.escape(named[1])} = (.*)$", source, re.M):
            yield assigned[1]
        else:
            yield named[1]


def catalog_constants() -> dict[float, str]:
    """Peaks, bandwidths and parameter counts as they would be typed, with what they are."""
    known: dict[float, str] = {}
    for card in catalog.accelerators():
        known[card.bandwidth] = f"the bandwidth of {card.id}"
        known |= {peak: f"a peak of {card.id}" for peak in card.peaks.values()}
    known |= {float(model.parameters): f"the size of {model.name}" for model in catalog.models()}
    return known


def _numbers(source: str) -> set[float]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and v >= 1e9}

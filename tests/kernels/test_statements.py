"""What kernel files and chapters say of machine code is so.

Every such sentence, found by its words, has a row with a check on what was compiled; a row whose sentence
is gone, or came to say something else, fails too.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import nbformat
import pytest

from kernels.evidence.compiled import Compiled
from kernels.evidence.compiled.loops import Loop
from tests.kernels import compilations
from tests.kernels import statement_checks as so
from tests.kernels.statements import NO_FACTS, STATEMENTS

ROOT = Path(__file__).parents[2]
# Words that speak of machine code, and names of chips.
SPEAKS = re.compile(
    r"barrier|register|shared memory|spill|\bwait|\bthread|instruction|in flight|(?:wide|narrow|widest) load"
    r"|matrix unit|(?:share|on) (?:a|one) multiprocessor|programs a multiprocessor"
    r"|\bfits? (?:on|in|side by side)\b|KiB|Hopper|Blackwell|ptxas"
    r"|when compiling|loop counter|one loop|\bfly\b|tf32|the hardware has",
    re.IGNORECASE,
)
# In chapters "threads" and "waits" are mostly something else.
SPEAKS_IN_PROSE = re.compile(
    r"barrier|register|shared memory|spill|wide load|instruction|mma\.sync|wgmma|tcgen05",
    re.IGNORECASE,
)


of_the_pinned_triton = pytest.mark.skipif(
    compilations.TRITON != compilations.PINNED,
    reason=f"triton = {compilations.TRITON}: said of what {compilations.PINNED} compiles, which is pinned",
)
ROWS = [(where, words) for where, some in STATEMENTS.items() for words in some]
ROWS += [(where, words) for where, words, _ in NO_FACTS]
CHECKS = {check.__name__: check for some in STATEMENTS.values() for check in some.values()}


def files() -> list[Path]:
    """Kernels and what cuts them up, the chapters, the rule book."""
    kernels = sorted([*ROOT.glob("kernels/*.py"), *ROOT.glob("kernels/tiling/*.py")])
    return [*kernels, *sorted(ROOT.glob("chapters/[0-9]*.ipynb")), ROOT / "STYLE.md"]


def name(path: Path) -> str:
    """What the table calls a file."""
    return f"tiling/{path.name}" if path.parent.name == "tiling" else path.name


def sentences(path: Path) -> list[str]:
    """The sentences of a file's comments, texts and prose that speak of machine code."""
    speaks = SPEAKS if path.suffix == ".py" else SPEAKS_IN_PROSE
    pieces = (piece for text in _texts(path) for piece in re.split(r"(?<=[.!?;:])\s+|\n\n", text))
    return [" ".join(piece.split()) for piece in pieces if speaks.search(piece) and " " in piece]


def unheld(path: Path, where: str) -> list[str]:
    """Sentences about machine code in a file that no row of `where` holds."""
    mine = [words for place, words in ROWS if place == where]
    return [said for said in sentences(path) if not any(words in said for words in mine)]


def _texts(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield source
    elif path.suffix == ".ipynb":
        for cell in nbformat.reads(source, 4).cells:
            yield from [cell.source] if cell.cell_type == "markdown" else _said_by(cell.source)
    else:
        yield from _said_by(source)


def _said_by(source: str) -> Iterator[str]:
    """The texts and comments of Python."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    yield from _comments(source)


def _comments(source: str) -> Iterator[str]:
    """Comments; those of several lines in a row as one text."""
    block: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith("#")
            if not (alone and token.start[0] == last + 1):
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0] if alone else -1
    yield " ".join(block)


@pytest.mark.parametrize("path", files(), ids=name)
def test_every_sentence_about_machine_code_has_a_row(path):
    assert not unheld(path, name(path)), (
        "give each a row in STATEMENTS with a check of what is compiled, or say it otherwise"
    )


@pytest.mark.parametrize(("where", "words"), ROWS)
def test_every_row_is_still_said(where, words):
    (path,) = [path for path in files() if name(path) == where]
    assert [said for said in sentences(path) if words in said]


@of_the_pinned_triton
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_what_is_said_of_machine_code_is_so(check):
    check()


def numbers_of(kind):
    return [field.name for field in fields(kind) if field.type in ("int", "float")]


def other_facts():
    """Changes of a row, each by one fact that may be in a statement: none of it, and more of it."""
    for much in (lambda n: 0, lambda n: 2 * n + 1):
        for name in numbers_of(Compiled):
            yield lambda row, name=name, much=much: replace(row, **{name: much(getattr(row, name))})
        for name in numbers_of(Loop):
            yield lambda row, name=name, much=much: replace(
                row, loops=tuple(replace(x, **{name: much(getattr(x, name))}) for x in row.loops)
            )
    yield lambda row: replace(row, spill_bytes=0, spill_instructions=0)
    yield lambda row: replace(row, opcode="")
    for other in ("none", "mma.sync"):
        yield lambda row, other=other: replace(row, instruction=other)


@functools.cache
def other_worlds():
    made = compilations.every()
    return [{key: [lie(row) for row in rows] for key, rows in made.items()} for lie in other_facts()]


@of_the_pinned_triton
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_check_fails_where_the_compiler_does_something_else(monkeypatch, check):
    def fails(world):
        monkeypatch.setattr(compilations, "every", lambda: world)
        try:
            check()
        except AssertionError:
            return True
        return False

    if check is not so.an_append_loads_before_it_knows_where:  # it counts, and doesn't compile
        assert any(fails(world) for world in other_worlds())


def test_an_append_that_waits_for_its_position_is_seen():
    with pytest.raises(AssertionError):
        so.an_append_loads_before_it_knows_where(run=lambda **tensors: None)


def test_a_sentence_about_machine_code_is_found_wherever_it_stands(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(
        '"""Sums. They stay in registers."""\n'
        "x = 1  # no barrier here\n"
        "# Threads of this program\n# wait for each other. And so on.\n"
        'y = "with wide loads: nothing"\n',
        encoding="utf-8",
    )
    assert sentences(path) == [
        "They stay in registers.",
        "with wide loads:",
        "no barrier here",
        "Threads of this program wait for each other.",
    ]


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("kernels/gemv.py", "@triton.jit\n", "# Two barriers a turn, and no more.\n@triton.jit\n"),
        ("kernels/tiling/decode.py", "ROWS = 16", "STAGES = 3  # two programs fit side by side\nROWS = 16"),
        ("chapters/04-decode-floor.ipynb", "No tensor cores: ", "Its loop has no barrier. No tensor cores: "),
    ],
)
def test_a_new_sentence_about_machine_code_is_asked_for_its_check(tmp_path, file, before, after):
    source = (ROOT / file).read_text(encoding="utf-8")
    assert before in source
    path = tmp_path / Path(file).name
    path.write_text(source.replace(before, after, 1), encoding="utf-8")
    assert unheld(ROOT / file, name(ROOT / file)) == []
    (said,) = unheld(path, name(ROOT / file))
    assert said.rstrip(".") in after

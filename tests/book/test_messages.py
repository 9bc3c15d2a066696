"""What readers are shown goes through `say`, is extracted, and is said in another language."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from book import say
from book.messages import catalogs, excused, in_code, in_pages
from book.messages.escaped import HOUSES, fields, in_cell, in_source

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def escaped():
    files = [p for house in HOUSES for p in (ROOT / house).rglob("*.py") if "node_modules" not in p.parts]
    return [
        one
        for path in files
        for one in in_source(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]


def test_no_sentence_escapes(escaped):
    assert [str(one) for one in excused.unexcused(escaped)] == []


def test_every_excuse_is_needed_and_has_a_reason(escaped):
    used = {excused.excuse(one) for one in escaped}
    assert [entry for entry in excused.EXCUSED if entry not in used or not entry[2]] == []


@pytest.mark.parametrize(
    "source",
    [
        'print("weights are read once")',
        'print("rows", 3)',
        'axes.set_xlabel("rows")',
        'axes.annotate(f"ridge {x}", (0, 0))',
        'Column("time", "time")',
        'table(rows, ["rows", "time"], say("times"))',
        'columns = ["rows", Column("time", say("time"))]',
        'table(rows, columns, f"counted: {name}")',
        'show(figure, alt="Four roofs.")',
        'Parameter("m", "rows in the step", 1)',
        'Formula(title="The roofline")',
        'Shown("time", "memory" if x else say("compute"), "s")',
        'Limit("m", expression, "weights only")',
        'WORDS = {"empty": "Type a number first."}',
        'def f(): return f"{a} rows ran at {b} times the speed"',
        'def f(): return f"<p>{minutes} minutes</p>"',
        'raise NotYet("it is not defined; run the cell")',
        'say(f"counted: {n} sizes")',
        "say(words)",
        'say("rows: " + name)',
        'say("{count} sizes")',
        'say("{count} sizes", number=3)',
        'say("sizes", count=3)',
        'say("{count} sizes", **values)',
    ],
)
def test_what_escapes_is_found(source):
    assert in_source(source)


@pytest.mark.parametrize(
    "source",
    [
        'print(say("weights are read once"))',
        'say("{share:.1f} % of {what}, {size:,}", share=1, what=2, size=3)',
        'say("{value:>{width}}", value=1, width=8)',
        '"""A module that says what it is for."""',
        'raise ValueError(f"rows = {rows}: a size must be at least 1; give it one.")',
        'LOGGER.info("notebooks to run: %s", names)',
        'parser.add_argument("--quick", help="three points a sweep")',
        'Column("rate", "GB/s")',
        'axes.set_title("FLOP/s")',
        'axes.set_xlabel(f"{label}, {symbol}")',
        'def f(): return f"<div class=\\"rl-table\\" {name}><style>{css}</style></div>"',
        'STYLE = ".rl-table{overflow-x:auto;margin:1em 0;max-width:100%}"',
        'code = "import numpy as np\\nimport torch"',
    ],
)
def test_what_may_stand_is_left_alone(source):
    assert in_source(source) == []


def test_no_word_that_a_chapter_prints_escapes():
    found = [
        str(one)
        for path in sorted((ROOT / "chapters").glob("*.ipynb"))
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code"
        for one in in_cell(cell.source, path.name)
    ]
    assert found == []


def test_of_a_cell_what_is_printed_has_to_be_said_and_what_looks_words_up_has_not():
    cell = """
numeric("ex", question="How many bytes are read?", answer=3)
print(f"M = {m}:", say("{count} rows", count=m), f"{rate:.1f} tokens/s")
print(f"{m} rows")
say("{count} rows", number=m)
"""
    assert [one.line for one in in_cell(cell)] == [4, 5]


# ------------------------------------------------------------------------------------ extraction


@pytest.fixture(scope="module")
def messages():
    return [text for _, found in in_code.messages() for _, text in found]


def test_every_message_is_a_format_that_python_reads(messages):
    assert messages
    assert all(fields(text) is not None for text in messages)


@pytest.mark.parametrize(
    "text",
    [
        "bytes, formula",  # a table's heading
        "rows in the step",  # a slider
        "number format",  # the explorer
        "the chain has one link too many.",  # a lab's comment
        "Four roofs of one H100: one slope, four heights, four ridges.",  # a chapter's figure
    ],
)
def test_messages_of_all_houses_are_extracted(text, messages):
    assert text in messages


def test_of_a_cell_what_it_gives_to_be_said_is_extracted():
    cell = """
numeric("ex", question="How many {unit}?", answer=3, mistakes={2 * x: "Twice.", 4: "Half."}, hint="Count.")
figures.show(figure, alt="A line.")
table(rows, ["rows", Column("time", "seconds")], "times")
print("not this", f"nor {this}")
"""
    assert {text for _, text in in_code.of_cells([cell])} == {
        *("How many {unit}?", "Twice.", "Half.", "Count."),
        *("A line.", "rows", "seconds", "times"),
    }


def prose(folder, config):
    """A book of a page and a notebook, whose only code would fail."""
    (folder / "_config.yml").write_text(f"title: A book\n{config}", "utf-8")
    (folder / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters: [{file: one}]\n", "utf-8")
    (folder / "index.md").write_text("# A book\n\nWeights are read once.\n", "utf-8")
    cells = [nbformat.v4.new_markdown_cell("# One\n\nA cell's prose."), nbformat.v4.new_code_cell("1 / 0")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "one.ipynb")


def test_pages_are_extracted_with_their_places_in_the_book_and_nothing_runs(tmp_path):
    prose(tmp_path, "execute: {execute_notebooks: force}\n")
    found = {m.id: [path for path, _ in m.locations] for m in in_pages.catalog(tmp_path) if m.id}
    assert found["Weights are read once."] == ["index.md"]
    assert found["A cell's prose."] == ["one.ipynb"]


def test_pages_are_built_in_the_language_that_is_said(tmp_path):
    """Jupyter Book's own build of a page and a notebook, with a translator's catalog."""
    book = tmp_path / "book"
    book.mkdir()
    extension = f"sphinx: {{local_extensions: {{language: {ROOT}/book/site/extensions/}}}}\n"
    prose(book, "execute: {execute_notebooks: 'off'}\n" + extension)
    words = {"Weights are read once.": "Gewichte werden einmal gelesen.", "A cell's prose.": "Prosa."}
    locales = german(tmp_path / "locales", words, say.PAGES)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BOOK_LANGUAGE": "de", "BOOK_LOCALES": str(locales)}
    built = subprocess.run(
        [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", "."],
        cwd=book,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert built.returncode == 0, built.stderr
    pages = [
        (book / "_build" / "html" / name).read_text(encoding="utf-8") for name in ("index.html", "one.html")
    ]
    assert "Gewichte werden einmal gelesen." in pages[0]
    assert "Prosa." in pages[1]


# ------------------------------------------------------------------------------ a second language

GERMAN = {
    "bytes, formula": "Bytes laut Formel",  # of a table of evidence
    "{count} sizes in Triton's interpreter, each in two orders of its programs; every byte and FLOP as "
    "the formulas say": "{count} Größen",
    "number format": "Zahlenformat",  # of the explorer
    "rows in the step": "Zeilen im Schritt",  # of a slider
    "Type a number first.": "Bitte zuerst eine Zahl.",  # of a self-check
    "How many {unit}?": "Wie viele {unit}?",  # of a chapter's cell
    "waits for memory": "wartet auf den Speicher",  # of a figure
}

SHOWS = """
import json
from book.drawing import figures
from book.formulas.ch02_linear_layers import linear
from book.roofline import Roof
from book.widgets.explorer import explore
from book.widgets.self_check import numeric
from kernels import linear as kernel
from kernels.evidence import confirm

check = numeric(
    "ex-x", question="How many {unit}?", values={"unit": "rows"}, answer=3, mistakes={6: "a", 9: "b"}
)
figure = figures.roofline([Roof("card", 1e15, 3e12)], alt="A roof.")
explorer = explore(linear, accelerators=["h100_sxm"])
print(json.dumps({
    "table": repr(confirm(kernel.experiment, rungs=["counted"], m=[1, 16], k=64, n=64)),
    "explorer": [explorer.payload["words"]["dtype"], explorer.payload["formula"]["parameters"][0]["label"]],
    "check": [check.payload["question"], check.judge("").message],
    "figure": [text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text"))],
}))
"""


def said(tmp_path, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", SHOWS],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def german(folder, words=GERMAN, domain=say.DOMAIN):
    """A folder of catalogs with German in it, made as a translator's would be."""
    catalog = Catalog(locale="de", domain=domain)
    for english, german in words.items():
        catalog.add(english, german)
    path = folder / "de" / "LC_MESSAGES" / f"{domain}.po"
    path.parent.mkdir(parents=True)
    with path.open("wb") as out:
        write_po(out, catalog)
    assert catalogs.compile_all(folder) == [path.with_suffix(".mo")]
    return folder


def test_in_another_language_tables_explorers_checks_and_figures_speak_it(tmp_path):
    shown = said(tmp_path, BOOK_LANGUAGE="de", BOOK_LOCALES=str(german(tmp_path / "locales")))
    assert "Bytes laut Formel" in shown["table"]
    assert "2 Größen" in shown["table"]
    assert shown["explorer"] == ["Zahlenformat", "Zeilen im Schritt"]
    assert shown["check"] == ["Wie viele rows?", "Bitte zuerst eine Zahl."]
    assert "wartet auf den Speicher" in shown["figure"]
    assert "computes" in shown["figure"], "what has no translation stays English"


def test_a_language_without_a_catalog_is_english(tmp_path):
    shown = said(tmp_path, BOOK_LANGUAGE="de", BOOK_LOCALES=str(tmp_path / "nothing"))
    assert "bytes, formula" in shown["table"]
    assert shown["explorer"] == ["number format", "rows in the step"]
    assert shown["check"] == ["How many rows?", "Type a number first."]
    assert "waits for memory" in shown["figure"]


def test_without_values_braces_stay_for_the_page():
    assert say.say("{count} of {all} cards") == "{count} of {all} cards"
    assert say.say("{count} of {all} cards", count=1, all=3) == "1 of 3 cards"
    with pytest.raises(KeyError):
        say.say("{count} of {all} cards", count=1)


# ----------------------------------------------------------------------------------- what travels

PACKS = """
import json, sys
from pathlib import Path
from book.portable import bundle
from book.portable.dependencies import closure
root = Path(sys.argv[1])
print(json.dumps(bundle.contents(["from book.say import say"], root)))
"""
UNPACKED = "from book.say import say; print(say('waits for memory'))"


def small_book(folder):
    """`book.say` with two languages beside it."""
    for name in ("book/__init__.py", "book/say.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((ROOT / name).read_text(encoding="utf-8") if name.endswith("say.py") else "", "utf-8")
    german(folder / "book" / "locales")
    french = folder / "book" / "locales" / "fr" / "LC_MESSAGES" / f"{say.DOMAIN}.mo"
    french.parent.mkdir(parents=True)
    french.write_bytes(b"\\xde\\x12")
    return folder


@pytest.mark.parametrize(("language", "says"), [("de", "wartet auf den Speicher"), ("", "waits for memory")])
def test_a_notebook_takes_along_the_language_that_it_is_made_in_and_no_other(language, says, tmp_path):
    book = small_book(tmp_path / "here")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BOOK_LANGUAGE": language}
    packed = subprocess.run(
        [sys.executable, "-c", PACKS, str(book)],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    files = json.loads(packed.stdout)
    assert {name for name in files if "locales" in name} == (
        {"book/locales/language", f"book/locales/de/LC_MESSAGES/{say.DOMAIN}.mo.txt"} if language else set()
    )
    for name, text in files.items():
        path = tmp_path / "there" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # whoever opens it elsewhere has set nothing
    elsewhere = {k: v for k, v in os.environ.items() if not k.startswith("BOOK_")}
    first = f"import sys; sys.path.insert(0, {str(tmp_path / 'there')!r}); "  # before a clone's own
    heard = subprocess.run(
        [sys.executable, "-c", first + UNPACKED],
        env=elsewhere,
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert heard.stdout.strip() == says, heard.stderr

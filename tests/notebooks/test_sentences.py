"""Sentences that claim something: what makes one a claim, what holds it up, and whether it is."""

from __future__ import annotations

import ast
import re

import nbformat
import pytest
import yaml

from book.notebook.comparatives import asserted, words
from book.notebook.sentences import ROOT, complaints, files, reasons, sentences, unsupported

# Sentences that stood in this book once, with the cells that stood beside them, and were false. Each was
# refuted by the book's own data.
OLD = {
    "a canned result of a live timing": (
        'here.figure("linear")',
        "Two rows take about as long as one, and 256 rows run many times faster than they would one by one. "
        "That is the whole chapter, on a CPU.",
        "",
        "about as",
    ),
    "a model's property sold as a bound": (
        "t_compute = f / F\nt_memory = b / beta",
        "A good machine does both at once, so the time is never less than the longer of the two. A bad day "
        "does one after the other, so it is seldom\nmore than their sum. Hold on to both:\n\n"
        "$$\nt \\lesssim f / F + b / \\beta\n$$ (eq-01-bounds)",
        "floor = Max(t_compute, t_memory)\nassert floor == roofline.time(f, b, F, beta)",
        "seldom",
    ),
    "a bound that a cell prints, whatever comes": (
        'for times in [0.01, 1]:\n    print(say("at least {share:.0%} of the roof", share=share(times)))',
        "",
        "",
        "at least",
    ),
    "there can't be one": (
        "best = gpt_fast[0].points[0]\nprint(best)",
        "Half a percent. Should you look for a faster program?\n\nThere is none that is twice as fast, and "
        "there can't be one, with these weights on this card.",
        "",
        "twice as fast",
    ),
    "a story laid over three points": (
        "for run in gpt_fast:\n    print(run.points)",
        "But look at the last column: what lies *above* the floor stays the same three milliseconds.",
        "share = best / a100.bandwidth",
        "the same",
    ),
    "within one percent, of one row in three": (
        "for count in ('read', 'all'):\n    print(serving.weight_bytes_read(llama7b, count=count))",
        "Within one percent of the count without the table.",
        "",
        "within one percent",
    ),
    "directions that nobody followed": (
        "explore(linear, accelerators=cards)",
        'Set "against" to $K$: the intensity hardly cares.',
        'explore(linear, view="formula", against="m", m=1024)',
        "hardly",
    ),
    "a card that isn't among the five": (
        "",
        "Then change the card: at low intensity only bandwidth matters, and a card with three times the "
        "FLOP/s may not be one bit faster.",
        "five = [1, 2, 3, 4, 5]\nexplore(formulas.attainable, accelerators=five)",
        "faster",
    ),
}


def notebook(folder, *cells):
    """The path of a notebook: a text that begins with "%" is code, any other one Markdown."""
    made = nbformat.v4.new_notebook()
    for text in cells:
        make = nbformat.v4.new_code_cell if text.startswith("%") else nbformat.v4.new_markdown_cell
        made.cells.append(make(text.removeprefix("%")))
    path = folder / "99-made.ipynb"
    nbformat.write(made, path)
    return path


def found(folder, *cells):
    return [claim.sentence for claim in unsupported(notebook(folder, *cells))]


@pytest.mark.parametrize("case", OLD)
def test_it_finds_what_was_false_in_the_old_text(case, tmp_path):
    before, text, after, word = OLD[case]
    claims = unsupported(
        notebook(tmp_path, "## A part", f"%{before}", *([text] if text else []), f"%{after}")
    )
    assert word in [one for claim in claims for one in claim.words]


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("It takes at least 4.8 ms.", ["at least"]),
        ("Nobody reaches a data sheet.", ["nobody"]),
        ("The two are as close as real cards come.", ["as close as"]),
        ("It has the same compute.", ["the same"]),
        ("It runs on the same card.", []),
        ("The same explorer shows the curve.", []),
        ("At the same time it reads the cache.", []),
        ("Would it be twice as fast?", []),
        ("The rest is not at all clear.", []),
        ("That is not only a matter of taste.", []),
        ("Every card is one.", ["every"]),
        ("It holds on all five cards.", ["all five cards"]),
        ("It reads all of the cache.", []),
        ("It does nothing but wait.", []),
        ("A hundred rows run faster.", ["faster"]),
        ("The weights are read.", []),
    ],
)
def test_which_words_claim(sentence, found):
    assert list(words(sentence)) == found


@pytest.mark.parametrize(
    ("cell", "sentence", "holds"),
    [
        ("assert t >= floor", "It takes at least the floor.", True),
        ("assert all(t > f for t, f in rows)", "Every row takes longer than its floor.", True),
        ("assert floor == roofline.time(f)", "It is seldom more than the sum.", False),
        ("assert floor == roofline.time(f)", "It is the same.", True),
        ("assert abs(a / b - 1) < 0.01", "The two are within one percent.", True),
        ("assert abs(a / b - 1) < 0.01", "The two are the same.", True),
        ("assert t >= floor", "The two are the same.", False),
        ("assert isclose(a, b)", "Nothing else changes, it stays the same.", True),
        ("assert cards", "Every card has one.", True),
        ("print(t >= floor)", "It takes at least the floor.", False),
        ("confirm(experiment, m=1)", "Every byte is the same.", True),
        ("confirm(experiment, m=1)", "It is faster.", False),
        ("%%time\nassert t > f", "It is faster.", False),
    ],
)
def test_an_assertion_of_the_claim_s_own_kind_holds_it_up(cell, sentence, holds, tmp_path):
    assert (found(tmp_path, "## A part", f"%{cell}", sentence) == []) == holds
    assert (found(tmp_path, "## A part", sentence, f"%{cell}") == []) == holds
    assert set(words(sentence).values()) <= asserted(cell) or not holds


def test_an_assertion_behind_a_heading_or_further_away_holds_nothing_up(tmp_path):
    claim, cell = "It takes at least the floor.", "%assert t >= floor"
    assert found(tmp_path, cell, f"## Another part\n\n{claim}") == [claim]
    assert found(tmp_path, f"{claim}\n\n## Another part", cell) == [claim]
    assert found(tmp_path, claim, "Between them.", cell) == [claim]
    assert found(tmp_path, f"## Another part\n\n{claim}", cell) == []
    assert found(tmp_path, claim, "%print(floor)", cell) == []


def test_what_a_cell_says_needs_an_assertion_there_or_another_wording(tmp_path):
    said = '%print(say("Each is at least {x}.", x=x))'
    assert found(tmp_path, said) == ["Each is at least {x}."]
    assert found(tmp_path, f"{said}\nassert x >= 1") == []
    assert found(tmp_path, '%print(say("It is faster.") if a < b else say("It took its time."))') == []


def test_a_hint_claims_and_what_a_reader_did_or_may_pick_does_not(tmp_path):
    asks = """%numeric("ex-1", question="It takes at least 2 ms. How many?", 
    mistakes={1: "You halved every number. An H200 has the same compute.", 2: "You forgot all of them."},
    solution="Only one.")
choice("ex-2", options={"It is faster.": "It never is."}, answer="It is faster.")"""
    assert found(tmp_path, asks) == ["An H200 has the same compute.", "Only one.", "It never is."]


def test_of_a_ledger_s_row_the_explanation_is_judged(tmp_path):
    path = tmp_path / "ch99_made.py"
    path.write_text(
        'CLAIMS = (wrong("row-1", say("All cards do."), "5", lambda: 3, say("It is never more than 3.")),)\n',
        encoding="utf-8",
    )
    assert [claim.sentence for claim in unsupported(path)] == ["It is never more than 3."]


def test_sentences_are_read_without_marks_code_and_formulas():
    text = """## A heading

Read *it* [once](06-x), **always**. Then {ref}`again <fig-1>`: `x = 1` and $y$.

```python
always = 1
```

$$
x
$$ (eq-1)

```{exercise} One
:label: ex-1
Count them.
```

- An item. {cite}`key2020x`
- Another

| a | b |
|---|---|
| one | two three |
"""
    assert list(sentences(text)) == [
        "A heading",
        "Read *it* once, always.",
        "Then again:",
        "`x = 1` and $y$.",
        "Count them.",
        "An item.",
        "Another",
        "a",
        "b",
        "one",
        "two three",
    ]


def test_a_page_s_cells_are_cells(tmp_path):
    path = tmp_path / "page.md"
    cell = "```{code-cell} python\n:tags: [remove-input]\nassert t >= floor\n```\n"
    path.write_text(f"---\nkernelspec: never\n---\n\nIt is never less.\n\n{cell}", encoding="utf-8")
    assert unsupported(path) == []
    path.write_text(f"It is never less.\n\n{cell.replace('assert', 'print')}", encoding="utf-8")
    assert [claim.sentence for claim in unsupported(path)] == ["It is never less."]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="give a notebook"):
        unsupported(tmp_path / "style.css")


def recorded(folder, given):
    (folder / "99-made.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    return folder


def test_a_reason_holds_a_sentence_up_and_falls_with_it(tmp_path):
    path = notebook(tmp_path, "It is never more. It is always less.")
    folder = recorded(tmp_path, {"It is never more.": "definition: so.", "It was never less.": "points: it."})
    assert [text.splitlines()[-1].strip() for text in complaints(path, tmp_path, folder)] == [
        "It is always less.",
        "99-made.ipynb: a reason is given for a sentence that no longer needs one or isn't there: "
        "'It was never less.'",
    ]


@pytest.mark.parametrize("why", [" ", "because", "definition:", "hope: it is so"])
def test_a_reason_of_no_kind_is_refused(why, tmp_path):
    with pytest.raises(ValueError, match="99-made.yaml: the reason for 'It never is.' is"):
        reasons(tmp_path / "99-made.ipynb", recorded(tmp_path, {"It never is.": why}))


def broken(path, why):
    """What is wrong with what a reason refers to, or None."""
    kind, _, told = why.partition(": ")
    name = told.split()[0].rstrip(".,;")
    if kind == "test":
        file, _, function = name.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
        return None if re.search(rf"^def {function}\(", text, re.M) and function else f"no test {name}"
    if kind == "cell":
        cells = nbformat.read(path, as_version=4).cells if path.suffix == ".ipynb" else []
        asserting = {cell.id for cell in cells if cell.cell_type == "code" and asserted(cell.source)}
        return None if name in asserting else f"no cell {name} that asserts anything"
    if kind == "equation":
        return None if any(f"({name})" in text for text in EQUATIONS) else f"no equation {name}"
    if kind == "cited":
        entries = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
        return None if f"{{{name}," in entries else f"no entry {name} in references.bib"
    return None


EQUATIONS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_what_a_reason_refers_to_is_there(path):
    assert [found for why in reasons(path).values() if (found := broken(path, why))] == []


@pytest.mark.parametrize(
    "why",
    [
        "test: tests/book/test_catalog.py::test_nothing",
        "test: tests/book/test_catalog.py",
        "cell: 00-none",
        "equation: eq-99-none",
        "cited: nobody2020nothing",
    ],
)
def test_a_reason_that_refers_to_nothing_is_found(why):
    assert broken(files()[0], why)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_each_claim_of_the_book_has_an_assertion_beside_it_or_a_reason(path):
    found = complaints(path)
    assert not found, "\n".join([*found, "assert it in the next cell, say it otherwise, or give a reason"])


def test_every_file_of_reasons_is_a_file_s():
    stems = [path.stem for path in files()]
    assert len(set(stems)) == len(stems)
    folder = ROOT / "book" / "notebook" / "reasons"
    assert {path.stem for path in folder.glob("*.yaml")} <= set(stems)


def described(source):
    """What a module's code writes as an alt text or a caption: keywords, names, and functions called so."""
    for node in ast.walk(ast.parse(source)):
        given = [k.value for k in getattr(node, "keywords", []) if k.arg in ("alt", "caption")]
        if isinstance(node, ast.Assign) and {ast.unparse(t) for t in node.targets} & {"alt", "caption"}:
            given.append(node.value)
        if isinstance(node, ast.FunctionDef) and re.search(r"(^|_)(alt|caption)(_|$)", node.name):
            given += node.body[1:]  # without its docstring
        for value in given:
            yield from (
                text.value
                for text in ast.walk(value)
                if isinstance(text, ast.Constant) and isinstance(text.value, str) and " " in text.value
            )


def test_no_module_writes_an_alt_text_or_a_caption_that_claims():
    modules = [path for house in ("book", "kernels") for path in sorted((ROOT / house).rglob("*.py"))]
    texts = {text for path in modules for text in described(path.read_text(encoding="utf-8"))}
    assert len(texts) > 20
    # which lines of a table are shown, not how they compare
    excused = {text for text in texts if "the {count} largest of {all}" in text}
    assert [text for text in sorted(texts - excused) if words(text)] == []


def test_an_alt_text_of_a_module_that_claims_is_found():
    source = 'show(figure, alt=say("It is never slower than {x}.", x=x))\nalt = say("The same as ever.")'
    assert set(described(source)) == {"It is never slower than {x}.", "The same as ever."}

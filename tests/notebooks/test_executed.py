"""Every notebook runs without an error or a warning, and prints what is stored in it.

The chapters are run once, by the build of the site; here their runs are read from its cache.
"""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from jupyter_cache import get_cache
from jupyter_cache.cache.main import CacheBundleIn

from book.site import contents
from labs import assignments
from tests.notebooks import executed as module
from tests.notebooks.executed import CHECKED, ROOT, cached, executed, problems, run

CHAPTERS = [ROOT / f"{chapter.path}.ipynb" for chapter in contents.chapters()]
MASTERS = [lab.master for lab in assignments.all_assignments().values()]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs_and_prints_what_is_stored(path):
    assert problems(nbformat.read(path, 4), executed(path)) == []


@pytest.mark.parametrize("path", MASTERS, ids=lambda path: path.stem)
def test_a_master_runs_with_its_own_solutions(path, tmp_path):
    # In a folder of its own: what it keeps there must not appear among the masters while a class is graded.
    assert problems(nbformat.read(path, 4), run(path, tmp_path)) == []


# ---------------------------------------------------------------- what these tests would find


def notebook(source="print(2 + 2)", printed="4\n", tags=(CHECKED,), count=1):
    stored = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
    cell = nbformat.v4.new_code_cell(source, outputs=stored, execution_count=count)
    cell.metadata.tags = list(tags)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), cell])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    return made


@pytest.fixture
def book(tmp_path):
    """A book of one chapter, with a cache that holds a run of it which printed 5."""
    (tmp_path / "chapters").mkdir()
    path = tmp_path / "chapters" / "one.ipynb"
    nbformat.write(notebook(), path)
    keep(tmp_path, path)
    return path


def keep(root, path, printed="5\n"):
    """What a build does: the run into the cache, the fingerprint beside it."""
    ran = nbformat.read(path, 4)
    ran.cells[1].outputs[0].text = printed
    get_cache(root / "cache").cache_notebook_bundle(CacheBundleIn(ran, str(path)), check_validity=False)
    store = root / "cache" / "fingerprints.json"
    store.write_text(json.dumps({"chapters/one": module.fingerprint_of(ran, root)}), encoding="utf-8")


def take(path):
    return executed(path, path.parents[1], path.parents[1] / "cache")


def test_a_fresh_cache_is_read_and_nothing_runs(book, monkeypatch):
    monkeypatch.setattr(module, "run", lambda path: pytest.fail("it ran"))
    (found,) = problems(nbformat.read(book, 4), take(book))
    assert "stdout: stored\n4\nbut printed\n5" in found


def test_a_stale_cache_is_not_read(book, monkeypatch):
    monkeypatch.setattr(module, "run", lambda path: "ran")
    monkeypatch.delenv("SITE_IS_BUILT", raising=False)
    (book.parents[1] / "cache" / "fingerprints.json").write_text(
        '{"chapters/one": "of another day"}', encoding="utf-8"
    )
    assert take(book) == "ran"


def test_a_module_that_changed_makes_the_cache_stale(book):
    root = book.parents[1]
    (root / "kernels").mkdir()
    (root / "kernels" / "__init__.py").write_text("", encoding="utf-8")
    nbformat.write(notebook("import kernels\nprint(2 + 2)"), book)
    keep(root, book)
    assert cached(book, root, root / "cache") is not None
    (root / "kernels" / "__init__.py").write_text("X = 1\n", encoding="utf-8")
    assert cached(book, root, root / "cache") is None


def test_without_a_cache_the_notebook_runs(book, monkeypatch):
    monkeypatch.delenv("SITE_IS_BUILT", raising=False)
    shutil.rmtree(book.parents[1] / "cache")
    assert problems(nbformat.read(book, 4), take(book)) == []


def test_a_build_whose_cache_is_not_found_fresh_is_an_error(book, monkeypatch):
    monkeypatch.setenv("SITE_IS_BUILT", "1")
    shutil.rmtree(book.parents[1] / "cache")
    with pytest.raises(AssertionError, match=r"one.ipynb: the site was just built"):
        take(book)


def test_a_cell_that_fails_and_one_that_warns_are_found(tmp_path):
    path = tmp_path / "one.ipynb"
    nbformat.write(notebook("import sys\nprint('oh', file=sys.stderr)\n1 / 0", "", ()), path)
    found = problems(nbformat.read(path, 4), module.run(path))
    assert [words.split(") ")[1].split(":")[0] for words in found] == [
        "printed to stderr",
        "raised ZeroDivisionError",
    ]


def outputs(*made):
    kept = notebook(printed="")
    kept.cells[1].outputs = [nbformat.v4.new_output(**one) for one in made]
    return kept


STREAM = {"output_type": "stream", "name": "stdout", "text": "4\n"}
RESULT = {"output_type": "execute_result", "data": {"text/plain": "4", "text/html": "<b>4</b>"}}
PICTURE = {"output_type": "display_data", "data": {"text/plain": "a figure", "image/png": "abc"}}


@pytest.mark.parametrize(
    ("stored", "ran", "said"),
    [
        ([STREAM], [], "has no stdout, which is stored"),
        ([], [STREAM], "has stdout, which is not stored"),
        ([STREAM], [dict(STREAM, text="4")], "stdout: stored\n4\nbut printed\n4"),
        ([RESULT], [dict(RESULT, data={"text/plain": "4"})], "has no text/html"),
        ([RESULT, RESULT], [RESULT], "text/html: stored"),
        ([RESULT], [dict(RESULT, data={**RESULT["data"], "text/html": "<i>4</i>"})], "<i>4</i>"),
        ([PICTURE], [dict(PICTURE, data={**PICTURE["data"], "text/plain": "no figure"})], "a figure"),
    ],
)
def test_every_difference_is_found(stored, ran, said):
    found = problems(outputs(*stored), outputs(*ran))
    assert found and said in found[0]


@pytest.mark.parametrize(
    ("stored", "ran"),
    [
        ([STREAM], [dict(STREAM, text="4"), dict(STREAM, text="\n")]),
        ([STREAM], [dict(STREAM, text="working ...\r4\n")]),
        ([STREAM], [dict(STREAM, text="5\b4\n")]),
        ([RESULT], [dict(RESULT, execution_count=7)]),
        ([PICTURE], [dict(PICTURE, data={**PICTURE["data"], "image/png": "xyz"})]),
    ],
)
def test_what_says_nothing_is_not_compared(stored, ran):
    assert problems(outputs(*stored), outputs(*ran)) == []


def test_an_untagged_cell_may_print_anything_and_a_tagged_one_must_have_been_run():
    assert problems(notebook(tags=()), notebook(printed="5\n")) == []
    (found,) = problems(notebook(count=None), notebook())
    assert "was never run: `make outputs` runs it" in found


def test_the_notebooks_of_the_book_are_those_in_its_folders():
    assert [path.stem for path in CHAPTERS] == sorted(
        p.stem for p in Path(ROOT / "chapters").glob("[0-9]*.ipynb")
    )

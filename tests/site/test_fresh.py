"""A notebook runs again when, and only when, something that it depends on changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from book.portable.dependencies import closure, fingerprint
from tests.site.built import ROOT

EXTENSIONS = ROOT / "book" / "site" / "extensions"

CONF = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(EXTENSIONS)!r}]
extensions = ["myst_nb", "environment", "fresh"]
nb_execution_mode = "cache"
nb_ipywidgets_js = {{}}
exclude_patterns = ["_build"]
"""
FILES = {
    "conf.py": CONF,
    "index.md": "# Index\n\n```{toctree}\nchapters/one\nchapters/two\n```\n",
    "book/__init__.py": "",
    "book/cost.py": "def cost(): return 1\n",
    "book/catalog.py": 'from pathlib import Path\nROWS = Path(__file__).parent / "data" / "rows.txt"\n',
    "book/data/rows.txt": "1\n",
    "kernels/__init__.py": "",
    "kernels/stream.py": "from book import cost\n",
    "kernels/linear.py": "from book.cost import cost\nimport kernels.tiling.products\n",
    "kernels/tiling/products.py": "ROWS = 16\n",
    "kernels/lazy.py": "def f():\n    from . import tiles\n",
    "kernels/child.py": 'COMMAND = ["-m", "kernels.stream"]\n',
}
CELLS = {
    "one": "from kernels import stream",
    "two": "%matplotlib inline\nfrom kernels.linear import cost\nimport book.catalog",
}


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of two chapters; each writes a line into ran.txt when it runs."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "chapters").mkdir()
    for name, imports in CELLS.items():
        log = f"with open({str(tmp_path / 'ran.txt')!r}, 'a') as f:\n    f.write({name!r} + '\\n')"
        code = [
            nbformat.v4.new_code_cell(imports.replace("%matplotlib inline\n", "")),
            nbformat.v4.new_code_cell(log),
        ]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# {name}"), *code])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, tmp_path / "chapters" / f"{name}.ipynb")
    return tmp_path


def build(book: Path) -> list[str]:
    """Builds the site and returns the chapters that ran."""
    log = book / "ran.txt"
    log.write_text("")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", ".", "_build/html"],
        cwd=book,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return log.read_text().split()


def test_only_what_changed_runs_again(book):
    assert build(book) == ["one", "two"]
    assert build(book) == [], "nothing was touched"

    (book / "kernels/linear.py").write_text(FILES["kernels/linear.py"] + "X = 1\n")
    assert build(book) == ["two"], "only two imports kernels.linear"

    (book / "book/cost.py").write_text("def cost(): return 2\n")
    assert build(book) == ["one", "two"], "both reach book.cost through a kernel"


def names(book: Path, cell: str) -> set[str]:
    return {path.relative_to(book).as_posix() for path in closure([cell], book)}


def test_the_closure_follows_imports_through_modules(book):
    assert names(book, CELLS["one"]) == {
        "kernels/__init__.py",
        "kernels/stream.py",
        "book/__init__.py",
        "book/cost.py",
    }


def test_the_closure_reads_magics_and_data_files(book):
    assert {"book/catalog.py", "book/data/rows.txt", "kernels/tiling/products.py"} <= names(
        book, CELLS["two"]
    )


def test_of_a_folder_the_named_files_count(book):
    (book / "book/data/other.txt").write_text("")
    assert "book/data/other.txt" not in names(book, "import book.catalog"), "the module names rows.txt"
    (book / "book/whole.py").write_text('FILES = Path("data").iterdir()\n')
    assert {"book/data/rows.txt", "book/data/other.txt"} <= names(book, "import book.whole")


def test_the_closure_follows_imports_inside_functions_and_relative_ones(book):
    assert "kernels/tiling/products.py" in names(book, "import kernels.lazy")


def test_the_closure_follows_modules_that_are_named_for_a_child_process(book):
    assert "kernels/stream.py" in names(book, "import kernels.child")


def test_the_closure_of_foreign_imports_is_empty(book):
    assert names(book, "import numpy, torch") == set()


def test_a_cell_that_does_not_parse_is_left_for_the_kernel_to_report(book):
    assert names(book, "this is not Python") == set()


def test_the_fingerprint_changes_with_contents_and_with_the_machine(book):
    cells = [CELLS["one"]]
    before = fingerprint(cells, book, "torch 1")
    assert before == fingerprint(cells, book, "torch 1")
    assert before != fingerprint(cells, book, "torch 2")
    (book / "kernels/stream.py").write_text("# other\n" + FILES["kernels/stream.py"])
    assert before != fingerprint(cells, book, "torch 1")


def test_each_chapter_of_this_book_depends_on_its_kernels_and_the_catalog():
    cells = ["from kernels import linear"]
    found = {path.relative_to(ROOT).as_posix() for path in closure(cells, ROOT)}
    assert {"kernels/linear.py", "book/cost/matrix.py"} <= found
    assert "kernels/stream.py" not in found, "a change in one kernel must not run every chapter again"
    assert "book/catalog/accelerators.yaml" in {
        path.relative_to(ROOT).as_posix() for path in closure(["from book import catalog"], ROOT)
    }

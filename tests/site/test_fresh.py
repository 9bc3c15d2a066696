"""A notebook runs again when, and only when, something that it depends on changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from book.site.extensions import fresh
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
    "kernels/__init__.py": "",
    "kernels/stream.py": "from book import cost\n",
    "kernels/linear.py": "from book.cost import cost as linear\nimport kernels.tiling.products\n",
    "kernels/tiling/products.py": "ROWS = 16\n",
}
CELLS = {
    "one": "from kernels import stream",
    "two": "%matplotlib inline\nfrom kernels.linear import linear",
}


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of two chapters; each writes a line into ran.txt when it runs."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
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


def built(book: Path, jobs: str = "2") -> subprocess.CompletedProcess:
    """A build of the site, with that many chapters at once."""
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", ".", "_build/html"],
        cwd=book,
        env=os.environ | {"BOOK_JOBS": jobs},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def build(book: Path, jobs: str = "2") -> list[str]:
    """Builds the site and returns the chapters that ran, each as often as it ran."""
    log = book / "ran.txt"
    log.write_text("", encoding="utf-8")
    done = built(book, jobs)
    assert done.returncode == 0, done.stderr
    return sorted(log.read_text(encoding="utf-8").split())


def test_a_failure_is_told_once_and_only_what_changed_runs_again(book):
    path = book / "chapters" / "two.ipynb"
    right = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(right, 4)
    notebook.cells[-1].source += "\n1 / 0"
    nbformat.write(notebook, path)
    failed = built(book)
    assert failed.returncode != 0 and failed.stderr.count("Executing notebook failed") == 1, failed.stderr
    kept = fresh.fingerprints(book / "_build" / ".jupyter_cache")
    assert kept.keys() == {"chapters/one"}, "of a chapter that failed beside it no run is kept"

    path.write_text(right, encoding="utf-8")
    assert build(book) == ["two"], "the other has its run"
    (book / "book/cost.py").write_text("def cost(): return 2\n", encoding="utf-8")
    assert build(book) == ["one", "two"], "both reach book.cost through a kernel"
    assert build(book) == [], "nothing was touched"

    (book / "kernels/linear.py").write_text(FILES["kernels/linear.py"] + "X = 1\n", encoding="utf-8")
    assert build(book, jobs="1") == ["two"], "only two imports kernels.linear"


@pytest.mark.parametrize("jobs", ["0", "many"])
def test_no_number_of_chapters_at_once_is_refused(monkeypatch, jobs):
    monkeypatch.setenv(fresh.JOBS, jobs)
    with pytest.raises(ValueError, match=f"BOOK_JOBS = '{jobs}': say how many"):
        fresh.jobs_asked_for()

"""The download button leads to a self-contained notebook; Colab's button is there when an address is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup

from book.portable import bundle
from tests.site.built import ROOT, pages

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))

import downloads  # noqa: E402

CONF = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "book/site/extensions")!r}]
extensions = ["myst_nb", "downloads"]
nb_execution_mode = "off"
suppress_warnings = ["myst-nb.lexer"]  # a run would tell it
nb_ipywidgets_js = {{}}
html_theme = "sphinx_book_theme"
html_theme_options = {{"repository_url": "", "launch_buttons": {{}}}}
exclude_patterns = ["_build"]
"""
# The front page computes something too, which makes it a notebook to the theme.
INDEX = """---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3}
---
# Index

```{code-cell}
1
```

```{toctree}
chapters/one
```
"""
URL = "https://github.com/some-one/some-book"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A site of a page and a notebook that imports a module of its own `book`."""
    folder = tmp_path_factory.mktemp("project")
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# One", id="title"),
            nbformat.v4.new_code_cell("from book import numbers", id="code"),
        ]
    )
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="a run of the author's\n")]
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    files = {
        "conf.py": CONF,
        "index.md": INDEX,
        "book/__init__.py": "",
        "book/numbers.py": "ONE = 1\n",
        "chapters/one.ipynb": nbformat.writes(notebook),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def build(project: Path, config: str) -> BeautifulSoup:
    """The notebook's page, built with this _config.yml."""
    (project / "_config.yml").write_text(config, encoding="utf-8")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", ".", "_build/html"],
        cwd=project,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert built.returncode == 0, built.stderr
    return BeautifulSoup(
        (project / "_build/html/chapters/one.html").read_text(encoding="utf-8"), "html.parser"
    )


def downloaded(project: Path, soup: BeautifulSoup) -> Path:
    """The file that the page's download button leads to."""
    (button,) = soup.select("a.btn-download-source-button")
    return (project / "_build/html/chapters" / button["href"]).resolve()


def test_the_button_leads_to_the_self_contained_notebook(project):
    soup = build(project, 'repository: {url: "", branch: main}')
    assert not soup.select(".dropdown-launch-buttons") and "colab" not in str(soup).lower()
    file = downloaded(project, soup)
    notebook = nbformat.read(file, as_version=4)
    assert [cell.id for cell in notebook.cells] == ["title", bundle.CELL_ID, "code"]
    assert notebook.cells[2].outputs == []
    assert notebook.cells[1].source == bundle.pack(["import book.numbers"], project).text
    assert nbformat.read(project / "chapters/one.ipynb", 4).cells[1].outputs, "the source stays as it was"


def test_it_is_written_again_when_and_only_when_something_in_it_changed(project):
    """The end of a build at which Sphinx copied no source."""
    env = SimpleNamespace(found_docs={"chapters/one"}, doc2path=lambda name: project / f"{name}.ipynb")
    html = SimpleNamespace(format="html")
    app = SimpleNamespace(env=env, builder=html, srcdir=project)
    app.outdir, app.doctreedir = project / "_build/html", project / "_build/html/.doctrees"
    file = project / "_build/html/_sources/chapters/one.ipynb"
    written = file.stat().st_mtime_ns
    downloads.replace_notebooks(app, None)
    assert file.stat().st_mtime_ns == written
    made = file.read_bytes()
    file.write_bytes((project / "chapters/one.ipynb").read_bytes())  # as Sphinx does with a page it writes
    downloads.replace_notebooks(app, None)
    assert file.read_bytes() == made
    written = file.stat().st_mtime_ns
    (project / "book/numbers.py").write_text("ONE = 'another'\n", encoding="utf-8")
    downloads.replace_notebooks(app, ValueError("the build failed"))
    assert file.stat().st_mtime_ns == written
    downloads.replace_notebooks(app, None)
    assert nbformat.read(file, 4).cells[1].source == bundle.pack(["import book.numbers"], project).text


def test_with_an_address_colab_opens_the_published_copy(project):
    soup = build(project, f"repository: {{url: {URL}, branch: main, site_branch: pages}}")
    (button,) = soup.select(".dropdown-launch-buttons a")
    index = BeautifulSoup((project / "_build/html/index.html").read_text(encoding="utf-8"), "html.parser")
    assert "colab" not in str(index).lower() and not index.select(".btn-download-notebook-button")
    assert index.select(".btn-download-source-button")
    path = downloaded(project, soup).relative_to(project / "_build/html").as_posix()
    assert button["href"] == (
        f"https://colab.research.google.com/github/some-one/some-book/blob/pages/{path}"
    )


@pytest.mark.parametrize(
    "repository, opens",
    [
        ({"url": URL}, "some-one/some-book/blob/gh-pages/x.ipynb"),
        ({"url": f"{URL}.git/", "site_branch": "site"}, "some-one/some-book/blob/site/x.ipynb"),
        ({"url": ""}, ""),
        ({}, ""),
        ({"url": "https://gitlab.com/some-one/some-book"}, ""),
        ({"url": "https://github.com/some-one"}, ""),
    ],
)
def test_there_is_a_link_only_where_colab_can_follow_it(repository, opens):
    found = downloads.colab_url(repository, "x.ipynb")
    assert found.removeprefix("https://colab.research.google.com/github/") == opens


@pytest.mark.parametrize("name", [page for page in pages() if page.startswith("chapters/")])
def test_every_chapter_of_the_site_gives_a_notebook_that_brings_its_modules(site, name):
    soup = BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")
    (button,) = soup.select("a.btn-download-source-button")
    notebook = nbformat.read((site / name).parent / button["href"], as_version=4)
    assert notebook.cells[1].id == bundle.CELL_ID
    assert not soup.select(".dropdown-launch-buttons"), "no address is set"

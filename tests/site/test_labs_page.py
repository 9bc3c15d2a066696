"""The labs' page gives each student's copy; a button to Colab is there when an address is."""

from __future__ import annotations

import sys

import nbformat
import pytest
from bs4 import BeautifulSoup

from book.portable import bundle
from labs.assignments import all_assignments
from tests.site.built import HTML, ROOT

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))

import lab_copies  # noqa: E402

PAGE = "book/pages/labs.html"
LABS = sorted(all_assignments())


@pytest.fixture(scope="module")
def page(site):
    return BeautifulSoup((HTML / PAGE).read_text(encoding="utf-8"), "html.parser")


@pytest.mark.parametrize("lab", LABS)
def test_each_lab_is_listed_with_its_notebook_and_without_a_dead_link(page, lab):
    card = page.find(id=lab)
    assert "minutes" in card.text and "points" in card.text
    (link,) = card.find_all("a")  # no address is set, so there is no button to Colab
    notebook = nbformat.read((HTML / PAGE).parent / link["href"], as_version=4)
    assert notebook.metadata["inference_roofline"]["lab"] == lab
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.get("id") == bundle.CELL_ID for cell in notebook.cells)
    assert any("raise NotImplementedError" in source for source in code)
    assert not any("BEGIN SOLUTION" in source or "HIDDEN TESTS" in source for source in code)


@pytest.mark.parametrize(
    "repository, opens",
    [
        ({"url": ""}, False),
        ({"url": "https://gitlab.com/a/b"}, False),
        ({"url": "https://github.com/a/b", "site_branch": "site"}, True),
    ],
)
def test_colab_is_offered_where_it_can_open_the_notebook(repository, opens):
    master = nbformat.read(next(iter(all_assignments().values())).master, as_version=4)
    found = BeautifulSoup(lab_copies.links(master, LABS[0], "../../", repository), "html.parser")
    colab = found.find(class_="rl-lab-colab")
    assert (colab is not None) == opens
    if opens:
        assert colab["href"].endswith(f"/github/a/b/blob/site/labs/{LABS[0]}.ipynb")

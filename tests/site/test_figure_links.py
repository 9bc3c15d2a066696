"""Figures that prose names become links, on a small site of two chapters."""

import pytest
from bs4 import BeautifulSoup

from tests.site import small_site

TWO = """# Two

As Figure 2.1 shows, and *Figure 3.2* as well; not `Figure 2.1`, nor [Figure 2.1](https://example.org), nor
Figure 9.1, which is nowhere.
"""
PAGES = {
    "index.md": "# Index\n\nSee Figure 2.1.\n\n```{toctree}\nchapters/02-two\nchapters/03-three\n```\n",
    "chapters/02-two.md": TWO,
    "chapters/03-three.md": "# Three\n\nNo figure.\n",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out, warned = small_site.build(tmp_path_factory.mktemp("figures"), "figure_links", PAGES)
    assert warned == ""
    return out


def links(page):
    paragraph = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").find("p", string=None)
    return [(a.get_text(), a["href"]) for a in paragraph.find_all("a")], paragraph.get_text()


def test_named_figures_lead_to_their_place_in_this_chapter_and_in_another(built):
    found, text = links(built / "chapters" / "02-two.html")
    assert found == [
        ("Figure 2.1", "#figure-2-1"),
        ("Figure 3.2", "03-three.html#figure-3-2"),
        ("Figure 2.1", "https://example.org"),
    ]
    assert text.startswith("As Figure 2.1 shows, and Figure 3.2 as well; not Figure 2.1,")


def test_a_page_that_is_no_chapter_leads_there_too(built):
    found, _ = links(built / "index.html")
    assert found == [("Figure 2.1", "chapters/02-two.html#figure-2-1")]

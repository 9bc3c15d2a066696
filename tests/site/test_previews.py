"""What a link to a page shows elsewhere: whole sentences, and an address where the site has one."""

import re
from html import unescape

import pytest

from book.site.extensions import previews
from tests.site import built, small_site

CARD = """:::{admonition} How fast?
:class: chapter-card

**You will be able to** say it.

**Time** 5 minutes.
:::
"""
LONG = "One sentence that is well over forty characters long. " + "Another one, " * 15 + "ends here."
PAGES = {
    "index.md": "# Book\n\n```{toctree}\nchapter\nplain\ntold\n```\n",
    "chapter.md": f"# Speed & more\n\n{CARD}",
    "plain.md": f"# Plain\n\n{LONG}\n",
    "told.md": '---\nmyst:\n  html_meta:\n    description: "Said \\"here\\"."\n---\n\n# Told\n\n'
    + LONG
    + "\n",
}
OPTIONS = 'html_title = "Book"\nmyst_enable_extensions = ["colon_fence"]\n'
ADDRESS = 'html_baseurl = "https://example.org/book/"\n'


def tags(page):
    """{name: contents} of a page's meta tags."""
    found = {}
    for tag in re.findall(r"<meta [^>]*>", page.read_text(encoding="utf-8")):
        name, content = re.search(r'(?:name|property)="([^"]*)"', tag), re.search(r'content="([^"]*)"', tag)
        if name and content:
            found.setdefault(name[1], []).append(unescape(content[1]))
    return found


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    out, warned = small_site.build(tmp_path_factory.mktemp("previews"), "previews", PAGES, OPTIONS + ADDRESS)
    assert warned == ""
    return out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("chapter", "How fast? You will be able to say it."),
        ("plain", "One sentence that is well over forty characters long."),
        ("told", 'Said "here".'),
    ],
)
def test_a_page_is_described_by_whole_sentences_in_all_its_tags(few, name, said):
    found = tags(few / f"{name}.html")
    assert found["description"] == found["og:description"] == [said]


def test_a_shared_page_has_its_title_and_its_address_and_one_viewport(few):
    found = tags(few / "chapter.html")
    assert found["og:title"] == ["Speed & more"] and found["og:site_name"] == ["Book"]
    assert found["og:url"] == ["https://example.org/book/chapter.html"]
    assert len(found["viewport"]) == 1


def test_without_an_address_no_page_claims_one(tmp_path):
    out, warned = small_site.build(tmp_path, "previews", PAGES, OPTIONS)
    assert "og:url" not in tags(out / "plain.html") and warned == ""
    assert "canonical" not in (out / "plain.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("repository", "address"),
    [
        ({"url": ""}, ""),
        ({"url": "https://github.com/Some/book.git"}, "https://some.github.io/book/"),
        ({"url": "https://example.org/some/book"}, ""),
        ({"url": "", "site_url": "https://example.org/book"}, "https://example.org/book/"),
    ],
)
def test_the_address_comes_from_the_repository_unless_it_is_said(repository, address):
    assert previews.site_address(repository) == address


@pytest.mark.parametrize("name", built.pages())
def test_every_built_page_has_one_viewport_and_a_description_that_ends(site, name):
    found = tags(site / name)
    assert len(found["viewport"]) == 1
    assert all(said[-1] in ".?!:)" for said in found.get("description", []))

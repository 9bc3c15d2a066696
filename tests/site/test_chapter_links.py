"""Chapters that prose names become links by the menu's number; one that isn't there is warned of."""

import pytest

from tests.site import small_site
from tests.site.test_figure_links import links

PROSE = {
    "Chapter 03 shows it, and chapter 02's own; not `chapter 03`, nor [chapter 03](03-three).": (
        "Chapter 3 shows it, and chapter 2’s own; not chapter 03, nor chapter 03.",
        [("Chapter 3", "03-three.html"), ("chapter 03", "03-three.html")],
    ),
    "The kernels of chapters 02, 03 and 04, launched in turn.": (
        "The kernels of chapters 2, 3 and 4, launched in turn.",
        [("3", "03-three.html"), ("4", "04-four.html")],
    ),
    "**Chapters 03 to 04** have 12 pages.": (
        "Chapters 3 to 4 have 12 pages.",
        [("3", "03-three.html"), ("4", "04-four.html")],
    ),
}
OTHERS = {
    "chapters/03-three.md": "# Three of chapter 04\n\nNone.\n",
    "chapters/04-four.md": "# Four\n\nNone.\n",
}


def built(folder, prose):
    toc = "```{toctree}\nchapters/02-two\nchapters/03-three\nchapters/04-four\n```\n"
    pages = {"index.md": f"# Index\n\n{toc}", "chapters/02-two.md": f"# Two\n\n{prose}\n"}
    out, warned = small_site.build(folder, "chapter_links", {**pages, **OTHERS})
    return out / "chapters" / "02-two.html", warned


@pytest.mark.parametrize("prose", PROSE)
def test_named_chapters_lead_there_and_are_called_as_in_the_menu(tmp_path, prose):
    page, warned = built(tmp_path, prose)
    found, text = links(page)
    assert (text, found, warned) == (*PROSE[prose], "")


def test_a_chapter_that_is_not_there_is_warned_of_and_not_linked(tmp_path):
    page, warned = built(tmp_path, "That is chapter 18.")
    found, text = links(page)
    assert found == [] and text == "That is chapter 18."
    assert "chapter 18: there is none of that number" in warned and "02-two" in warned

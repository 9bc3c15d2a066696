"""A figure's number and caption, and links to it from prose."""

import re
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from book.drawing import captions, figures
from book.roofline import Roof

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "book" / "site" / "extensions"))

import figure_links  # noqa: E402

H100 = Roof("H100 SXM", 989.4e12, 3.35e12)


@pytest.fixture
def figure():
    return figures.roofline([H100], alt="One roof.")


def page(shown):
    return BeautifulSoup(shown._repr_mimebundle_()["text/html"], "html.parser").figure


def test_a_number_stands_before_the_caption_and_is_where_a_link_leads(figure):
    made = page(figures.show(figure, caption="A roof of <one> card.", number="2.1"))
    assert made["id"] == captions.anchor("2.1") == "figure-2-1"
    assert made.figcaption.get_text() == "Figure 2.1. A roof of <one> card."
    assert made.svg["aria-label"] == "One roof."


def test_a_figure_keeps_them_until_a_notebook_shows_it(figure):
    shown = page(captions.put(figure, "A roof.", "3.2"))
    assert shown["id"] == "figure-3-2" and shown.figcaption.get_text() == "Figure 3.2. A roof."
    plain = figure._repr_mimebundle_()["text/plain"]
    assert "Figure 3.2. A roof." in plain and "One roof." in plain


def test_a_caption_may_go_without_a_number_and_neither_has_an_id(figure):
    assert page(figures.show(figure, caption="A roof."))["class"] == ["rl-figure"]
    assert "id" not in page(figures.show(figure, caption="A roof.")).attrs
    assert page(figures.show(figure)).figcaption is None


@pytest.mark.parametrize("number", ["2", "2.", "figure 2.1", "2.1.1", "a.b"])
def test_a_number_is_chapter_and_place(figure, number):
    with pytest.raises(ValueError, match=r"number = .*write it as '2\.1'"):
        figures.show(figure, caption="A roof.", number=number)


def test_a_number_needs_a_caption(figure):
    with pytest.raises(ValueError, match="number = '2.1': a figure with a number needs a caption"):
        captions.put(figure, "", "2.1")


# ------------------------------------------------------------------------------------------- links

NAMED = re.compile(rf"Figure ({captions.NUMBER.pattern})")


def test_every_figure_that_a_sentence_names_is_linked_and_no_word_is_lost():
    words = "As Figure 2.1 and Figure 2.12 show, and 2.3 doesn't."
    made = figure_links.linked(words, NAMED, lambda number: "#" + captions.anchor(number))
    assert "".join(node.astext() for node in made) == words
    links = [node["refuri"] for node in made if hasattr(node, "attributes")]
    assert links == ["#figure-2-1", "#figure-2-12"]


def test_what_leads_nowhere_stays_as_it_is():
    assert figure_links.linked("Figure 99.1", NAMED, lambda number: "") == []
    assert figure_links.linked("no figure", NAMED, lambda number: "#there") == []


def test_the_first_part_of_a_number_is_its_chapter():
    pages = figure_links.chapters({"index", "chapters/02-linear-layers", "chapters/10-other"})
    assert pages == {2: "chapters/02-linear-layers", 10: "chapters/10-other"}

"""Math is set when the site is built: nothing of TeX is left on a page, and its font has every character."""

import re

import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont

from book.site import mathml
from book.site.mathml import Typesetter
from book.site.node import NodeFailed
from tests.site import small_site
from tests.site.built import pages, parsed

EVERY_PAGE = pytest.mark.parametrize("name", pages())


@pytest.fixture(scope="module")
def typesetter():
    with Typesetter() as running:
        yield running


def text(html):
    return "".join(BeautifulSoup(html, "html.parser").find("math").get_text().split())


@EVERY_PAGE
def test_no_page_shows_tex_and_no_formula_failed(site, name):
    page = parsed(site / name)
    for code in page.select("pre, code, script, .rl-live"):
        code.decompose()
    assert re.findall(r".{0,30}(?:\\[(\[a-zA-Z]|\$\$).{0,30}", page.get_text()) == []
    assert page.select("merror") == []


@EVERY_PAGE
def test_the_font_was_left_with_every_character_of_the_formulas(site, name):
    shown = set().union(*map(mathml.shown, parsed(site / name).select("math")), set())
    assert shown <= mathml.CHARACTERS, "add them to CHARACTERS in book/site/mathml.py"


def test_every_chapter_has_formulas(site):
    chapters = [name for name in pages() if name.startswith("chapters/")]
    assert [name for name in chapters if not parsed(site / name).select(".math > math")] == []


def test_the_font_has_them_and_can_grow_its_brackets(site):
    [path] = (site / "_static" / "math").glob("*.woff2")
    with TTFont(path) as font:
        assert {chr(point) for point in font.getBestCmap()} >= mathml.CHARACTERS
        assert "parenleft" in font["MATH"].table.MathVariants.VertGlyphCoverage.glyphs


def test_a_letter_alone_is_shown_in_italics_of_the_font():
    page = BeautifulSoup(
        "<math><mi>h</mi><mi>β</mi><mi>max</mi><mi mathvariant='normal'>d</mi><mn>2</mn></math>",
        "html.parser",
    )
    assert mathml.shown(page) == {"ℎ", "𝛽", *"maxd2"}


def test_a_formula_keeps_its_order_and_its_words(typesetter):
    assert text(typesetter.set(r"\frac{2 B P}{F n} \le t_\text{step}")) == "2BPFn≤tstep"
    assert 'display="block"' in typesetter.set("x", display=True)


@pytest.mark.parametrize("wrong", [r"\frac{a", r"\nosuchmacro", "a_b_c"])
def test_what_is_no_formula_is_refused(typesetter, wrong):
    with pytest.raises(NodeFailed, match="mathml.mjs: "):
        typesetter.set(wrong)


def test_a_wrong_formula_is_warned_of_and_stands_there_as_it_was_written(tmp_path):
    options = 'html_math_renderer = "mathml"\nmyst_enable_extensions = ["dollarmath", "amsmath"]\n'
    prose = "# Page\n\nRight: $\\frac{f}{b}$. Wrong: $\\frac{f$.\n\n$$t = f$$ (time)\n\nSee {eq}`time`.\n"
    out, warned = small_site.build(tmp_path, "typeset_math", {"index.md": prose}, options)
    page = parsed(out / "index.html")
    assert [one.get_text() for one in page.select(".math > math")][:1] == ["fb"]
    assert page.select_one(".math > code").get_text() == r"\frac{f"
    assert r"math that can't be set: \frac{f" in warned and warned.count("WARNING") == 1
    assert page.select_one(".eqno").get_text().startswith("(1)") and "(1)" in page.select("p")[-1].get_text()

"""Where an explorer was left is kept: in the address what differs, in the tab's history all of them."""

import re

import pytest

from book.drawing import palette
from book.widgets import serve
from book.widgets.dual_widget import STATIC
from book.widgets.explorer import explore
from tests import formulas
from tests.site.explorer_page import choose, linear, number, settle

LINEAR, STEP = "#explore-linear", "#explore-decode-step"
OWN = "#serve=llama3.1-8b~bf16~3~1k~1xh100_sxm"
RESTS = 500  # milliseconds until it is written down


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with the sentence and two explorers, and one to go to and come back from."""
    folder = tmp_path_factory.mktemp("position")
    (folder / "explorer.js").write_bytes((STATIC / "explorer.js").read_bytes())
    (folder / "serve.js").write_text(serve.script(), encoding="utf-8")
    styles = palette.css() + (STATIC / "explorer.css").read_text(encoding="utf-8")
    step = explore(formulas.decode_step, ["h100_sxm", "b200"], view="bars", less_used=())
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Position</title>'
        f"<style>{styles}</style>"
        '<script defer src="serve.js"></script><script defer src="explorer.js"></script></head><body><main>'
        f"<h1>Position</h1>{serve.static_html()}{linear().static_html()}{step.static_html()}</main></body></html>",
        encoding="utf-8",
    )
    (folder / "other.html").write_text("<!doctype html><title>Other</title>", encoding="utf-8")
    return folder / "page.html"


@pytest.fixture(scope="module")
def tab(lasting_context, file):
    return lasting_context(file.parent.as_uri(), reduced_motion="reduce").new_page()


@pytest.fixture
def at(tab, file):
    """A function of a fragment: the page there, as who has chosen nothing before."""

    def make(fragment=""):
        tab.goto(file.with_name("other.html").as_uri())
        tab.evaluate("localStorage.clear()")
        tab.goto(file.as_uri() + fragment)
        settle(tab)
        return tab

    return make


def typed(page, root, symbol, text):
    page.fill(f"{root}-{symbol}-value", text)
    page.press(f"{root}-{symbol}-value", "Enter")
    settle(page)


def rested(page):
    page.wait_for_timeout(RESTS)
    return page.evaluate("location.hash")


def test_the_address_says_of_an_explorer_only_what_differs(at):
    page = at()
    assert rested(page) == ""
    typed(page, LINEAR, "m", "64")
    assert rested(page) == "#serve=&rl=explore-linear&m=64"
    choose(page, "accelerator", "b200", LINEAR)
    assert rested(page) == "#serve=&rl=explore-linear&accelerator=b200&m=64"
    page.click(f"{LINEAR} .rl-acts button:first-child")
    assert rested(page) == ""


def test_the_address_says_the_sentence_whole(at):
    page = at(OWN)
    assert number(page, "batch", STEP) == "3"
    typed(page, STEP, "context", "2k")
    assert rested(page) == f"{OWN}&rl=explore-decode-step&context=2048"
    page.click(f"{STEP} .rl-acts button:first-child")
    assert rested(page) == OWN and number(page, "batch", STEP) == "3"


def test_when_the_sentence_changes_the_address_follows(at):
    page = at(OWN)
    typed(page, STEP, "context", "2k")
    page.fill("[data-serve=people]", "5")
    page.press("[data-serve=people]", "Enter")
    settle(page)
    assert rested(page) == "#serve=llama3.1-8b~bf16~5~1k~1xh100_sxm" and number(page, "batch", STEP) == "5"


def test_a_link_opens_as_it_was_sent_also_for_somebody_who_serves_something_else(at, file):
    page = at()
    typed(page, STEP, "context", "2k")
    page.click(f"{STEP} .rl-acts button:last-child")
    link, sent = page.evaluate("location.hash"), [number(page, s, STEP) for s in ("batch", "context")]
    at(OWN)  # stored
    page.goto(file.with_name("other.html").as_uri())
    page.goto(file.as_uri() + link)
    settle(page)
    assert [number(page, s, STEP) for s in ("batch", "context")] == sent == ["32", "2,048 tokens"]


def test_back_finds_every_explorer_as_it_was_left(at, file):
    page = at()
    typed(page, LINEAR, "m", "5000")
    rested(page)
    typed(page, STEP, "batch", "7")
    rested(page)
    page.goto(file.with_name("other.html").as_uri())
    page.go_back()
    settle(page)
    assert (number(page, "m", LINEAR), number(page, "batch", STEP)) == ("5,000", "7")
    page.reload()
    settle(page)
    assert (number(page, "m", LINEAR), number(page, "batch", STEP)) == ("5,000", "7")


@pytest.mark.parametrize("preset", ["&preset=Llama-3.1-8B+%2F+gate", ""])
def test_a_link_of_the_old_form_opens(at, preset):
    """It listed the whole state, and left the preset out where there was none."""
    page = at(
        "#rl=explore-linear&accelerator=h100_sxm&dtype=bf16&shown=h100_sxm%2Cb200&view=formula&against=k"
        f"{preset}&m=48&k=4096&n=14336"
    )
    assert [number(page, s, LINEAR) for s in "mkn"] == ["48", "4,096", "14,336"]
    assert page.locator(f"{LINEAR}-view-formula").is_checked()
    assert page.locator(f"{LINEAR}-against").input_value() == "k"


def test_sizes_of_ones_own_come_back(at, file):
    page = at()
    typed(page, LINEAR, "k", "5000")
    link = rested(page)
    assert re.search(r"&preset=(&|$)", link)
    page.goto(file.with_name("other.html").as_uri())
    page.goto(file.as_uri() + link)
    settle(page)
    assert number(page, "k", LINEAR) == "5,000" and page.locator(f"{LINEAR}-preset").input_value() == ""

"""Before its script runs an explorer is there already, drawn by that script: the same marks, as high."""

import html
import re

import pytest

from book.site.node import NodeFailed
from book.site.stills import WIDTHS, Stills
from book.widgets import explorer_payload
from book.widgets.explorer import explore
from tests import formulas
from tests.site.explorer_page import CARDS, linear, settle, write
from tests.site.simulated import experts_touched, static_batching

PADDING = 28  # of the test's page
BORDERS = 2  # of an explorer, left and right together
SCRIPT = '<script defer src="explorer.js"></script>'

# What a picture is made of; labels stand where their font lets them, and what is for the hand only lives.
MARKS = """(root) => {
const APART = "style, .rl-label, .rl-labels, .rl-evidence", HAND = /^(style|role|tabindex|aria-.*)$/;
const tenths = (text) => text.replace(/(\\.\\d)\\d+/g, "$1"); // of a pixel, all that a still keeps
return [...root.querySelectorAll("svg.rl-plot")].map((svg) => [
    svg.getAttribute("aria-label"),
    ...[...svg.querySelectorAll("*")].filter((e) => !e.closest(APART)).map((e) => [
        e.tagName,
        ...[...e.attributes].filter((a) => !HAND.test(a.name)).map((a) => a.name + tenths(a.value)).sort(),
        e.children.length ? "" : e.textContent,
    ].join(" ")),
]) }"""


def every_view():
    """An explorer for each view of each formula, evidence on one of them."""
    made = [linear()]
    for f in (*formulas.ALL, static_batching, experts_touched):
        for view in f.pictures:
            made.append(explore(f, CARDS, view=view.kind, id=f"{f.name}-{view.kind}".replace("_", "-")))
    return made


@pytest.fixture(scope="module")
def explorers():
    return every_view()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, explorers):
    path = write(tmp_path_factory.mktemp("stills") / "page.html", *explorers)
    with Stills() as stills:
        path.write_text(stills.fill(path.read_text(encoding="utf-8")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def dead_file(page_file):
    """The same page, whose script doesn't come."""
    path = page_file.with_name("dead.html")
    path.write_text(page_file.read_text(encoding="utf-8").replace(SCRIPT, ""), encoding="utf-8")
    return path


def opened(new_context, path, width, **options):
    look = {"viewport": {"width": width, "height": 900}, "reduced_motion": "reduce"}
    page = new_context(path.parent.as_uri(), **look, **options).new_page()
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("width", WIDTHS)
def test_each_view_is_drawn_by_one_piece_of_code(new_context, page_file, dead_file, explorers, width):
    live, dead = (
        opened(new_context, f, width + BORDERS + 28, java_script_enabled=True) for f in (page_file, dead_file)
    )
    settle(live)
    where = "wide" if width == WIDTHS[0] else "narrow"
    for explorer in explorers:
        drawn = live.locator(f"#{explorer.id} .rl-picture").evaluate(MARKS)
        still = dead.locator(f"#{explorer.id} .rl-at-{where}").evaluate(MARKS)
        assert drawn and still == drawn, explorer.id


@pytest.mark.parametrize("width", [390, 700, 1200])
def test_nothing_moves_when_the_script_takes_over(new_context, page_file, dead_file, width):
    heights = "(all) => all.map((e) => [e.id, e.getBoundingClientRect().height])"
    live, dead = (opened(new_context, f, width) for f in (page_file, dead_file))
    settle(live)
    after, before = (dict(p.locator(".rl-live").evaluate_all(heights)) for p in (live, dead))
    assert len(before) > 20
    moved = {id: after[id] - before[id] for id in after if abs(after[id] - before[id]) > 1}
    assert moved == {}


@pytest.mark.parametrize("width", [390, 1200])
def test_without_scripts_there_is_a_picture_and_a_sentence_and_nothing_that_does_not_work(
    new_context, page_file, explorers, width
):
    page = opened(new_context, page_file, width, java_script_enabled=False)
    for explorer in explorers:
        root = page.locator(f"#{explorer.id}")
        pictures = [p for p in root.locator("svg.rl-plot").all() if p.is_visible()]
        assert pictures, explorer.id
        assert explorer.summary() in pictures[0].get_attribute("aria-label").replace("\u2009", " ")
        assert root.locator("noscript").inner_text() == explorer.summary()
        for control in root.locator("input, select, button").all():
            assert not control.is_visible(), explorer.id
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_still_has_no_name_that_its_living_explorer_will_have_again(dead_file):
    text = dead_file.read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert "NaN" not in re.sub(r"data-\w+='[^']*'", "", text)


def test_the_same_explorer_is_drawn_the_same_each_time():
    explorer = linear()
    with Stills() as first, Stills() as second:
        drawn = [s.draw(explorer.payload, explorer.state()) for s in (first, first, second)]
    assert len(set(drawn)) == 1 and len(drawn[0]) < 30_000


def test_an_explorer_that_can_not_be_drawn_ends_the_build_in_a_sentence():
    with Stills() as stills, pytest.raises(NodeFailed, match="stills.mjs: TypeError"):
        stills.draw({"id": "broken"}, {})


@pytest.mark.parametrize("end", ["low", "high"])
def test_python_and_the_script_say_the_same_wherever_the_sliders_are(end):
    with Stills() as stills:
        for f in formulas.ALL:
            at = {p.symbol: getattr(p, end) for p in explorer_payload.sliders(f)}
            explorer = explore(f, CARDS[::-1], dtype="fp16", **at)
            drawn = stills.draw(explorer.payload, explorer.state())
            said = html.unescape(re.search(r'<svg[^>]*aria-label="([^"]*)"', drawn)[1])
            assert explorer.summary() in said.replace("\u2009", " "), f.name

"""No column is cut without a sign: a table fits, or its rows are cards, or its cut edge lies in shadow."""

import pytest

from tests.site.built import pages, parsed

WIDTHS = (390, 768, 1440)
A4 = {"width": 680, "height": 960}  # less its margins
BOXES = ".rl-table, .rl-sortable, .pst-scrollable-table-container"
CUT = """boxes => [...document.querySelectorAll(boxes)]
  .filter(box => box.getClientRects().length && box.scrollWidth > box.clientWidth + 1)
  .map(box => {
    const layers = getComputedStyle(box).backgroundAttachment.split(", ");
    const shadow = layers.includes("local") && layers.includes("scroll");
    const long = box.classList.contains("rl-sortable");
    return { text: box.innerText.slice(0, 40), long, shadow, reached: box.tabIndex === 0,
             named: box.hasAttribute("aria-label") };
  })"""


@pytest.fixture(scope="module")
def tab(lasting_context, site):
    return lasting_context(site.as_uri()).new_page()


def test_whatever_is_cut_shows_it_and_a_keyboard_moves_it(tab, site):
    seen, wrong = 0, []
    for name in pages():
        if not parsed(site / name).select(f":is({BOXES}) table"):
            continue
        tab.goto((site / name).as_uri())
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            for box in tab.evaluate(CUT, BOXES):
                seen += 1
                if box["long"] or not (box["shadow"] and box["reached"] and box["named"]):
                    wrong.append((name, width, box))
        tab.set_viewport_size(A4)
        tab.emulate_media(media="print")
        wrong += [(name, "printed", box) for box in tab.evaluate(CUT, BOXES)]
        tab.emulate_media(media="screen")
    assert wrong == []
    assert seen, "no table was ever cut: this test saw nothing"

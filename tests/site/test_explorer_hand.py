"""A hand in an explorer: it types a value, pulls the point, rests on a measured one; the words follow."""

import re

import pytest

from book import catalog, roofline
from book.drawing import number_text
from book.widgets.explorer import explore
from tests import formulas
from tests.site.built import AXE
from tests.site.explorer_page import CARDS, LINEAR, linear, number, opener, settle, slide, write

CURVE, WORKS, SHARES, STEPS = "#curve", "#works", "#shares", "#steps"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    shown = (
        linear(),
        linear(view="formula", id="curve"),
        explore(formulas.deployment, CARDS, id="works"),
        explore(formulas.decode_step, CARDS, view="bars", id="shares"),
        explore(formulas.decode_floor, CARDS, id="steps"),
    )
    return write(tmp_path_factory.mktemp("hand") / "page.html", *shown)


@pytest.fixture(scope="module")
def tab(lasting_context, page_file):
    return opener(lasting_context, page_file)(width=1100)


@pytest.fixture
def page(tab, page_file):
    """One tab for all, each explorer where it opens."""
    tab.evaluate("document.querySelectorAll('.rl-acts button:first-child').forEach((one) => one.click())")
    settle(tab)
    return tab


def type_in(page, root, symbol, text):
    field = page.locator(f"{root}-{symbol}-value")
    field.fill(text)
    field.press("Enter")
    settle(page)


def remark(page, root):
    return page.locator(f"{root} .rl-note:visible").all_inner_texts()


# ------------------------------------------------------------------------------------- typed values


@pytest.mark.parametrize(
    ("text", "said"),
    [("5000", "5,000"), ("1,024", "1,024"), ("2k", "2,000"), (" 4 096 ", "4,096"), ("1e2", "100")],
)
def test_a_value_can_be_typed_as_people_write_it(page, text, said):
    type_in(page, LINEAR, "m", text)
    assert number(page, "m") == said and remark(page, LINEAR) == []
    assert page.locator(f"{LINEAR}-m-value").get_attribute("aria-valuenow") == said.replace(",", "")


@pytest.mark.parametrize(("text", "said"), [("32k", "32,768 tokens"), ("1M", "1,048,576 tokens")])
def test_tokens_are_counted_in_binary_thousands(page, text, said):
    type_in(page, SHARES, "context", text)
    assert number(page, "context", SHARES) == said


def test_a_unit_may_be_typed_along(page):
    type_in(page, SHARES, "weight_itemsize", "8 bits")
    assert number(page, "weight_itemsize", SHARES) == "8 bit"
    type_in(page, SHARES, "weight_itemsize", "2 bytes")
    assert number(page, "weight_itemsize", SHARES) == "16 bit"


@pytest.mark.parametrize(
    ("root", "symbol", "text", "value", "why"),
    [
        (LINEAR, "m", "0", "1", "rows in the step goes from 1 to 8,192, so “0” became 1."),
        (LINEAR, "m", "9M", "8,192", "rows in the step goes from 1 to 8,192, so “9M” became 8,192."),
        (LINEAR, "m", "7.6", "8", "rows in the step is counted in whole numbers, so “7.6” became 8."),
        (LINEAR, "m", "many", "32", "“many” can't be read as a number."),
    ],
)
def test_what_can_not_be_becomes_the_nearest_and_is_told(page, root, symbol, text, value, why):
    type_in(page, root, symbol, text)
    assert number(page, symbol, root) == value
    assert remark(page, root)[0].startswith(why)
    assert page.locator(f"{root}-{symbol}-value").input_value() == value


def test_a_format_that_does_not_exist_becomes_the_nearest_that_does(page):
    type_in(page, SHARES, "weight_itemsize", "13 bit")
    assert number(page, "weight_itemsize", SHARES) in ("16 bit", "8 bit")
    assert remark(page, SHARES)[0].startswith("size of a weight is one of ")


def test_the_field_steps_by_keyboard(page):
    field = page.locator(f"{LINEAR}-m-value")
    for key, said in (("ArrowUp", "36"), ("ArrowDown", "32"), ("PageUp", "72"), ("PageDown", "32")):
        field.press(key)
        settle(page)
        assert number(page, "m") == said, key
    type_in(page, LINEAR, "m", "33")
    field.press("ArrowDown")  # from between two stops to the one below
    settle(page)
    assert number(page, "m") == "32"


def test_a_value_of_the_address_stands_in_its_field(lasting_context, page_file):
    page = opener(lasting_context, page_file)("#rl=explore-linear&m=5000")
    assert number(page, "m") == "5,000"
    page.close()


# ----------------------------------------------------------------------------------- the point, pulled


def pull(page, root, by, part=0):
    """Take hold of a point and move it sideways; returns where it was and where it is, in pixels."""
    mark = page.locator(f"{root} .rl-grip").nth(part).locator(":scope > :last-child")
    mark.scroll_into_view_if_needed()

    def middle():
        box = mark.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    x, y = middle()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by / 2, y, steps=3)
    page.mouse.move(x + by, y, steps=3)
    page.mouse.up()
    settle(page)
    return x, middle()[0]


@pytest.mark.parametrize(
    ("root", "symbol"), [(LINEAR, "m"), (CURVE, "m"), (SHARES, "context"), (WORKS, "batch")]
)
@pytest.mark.parametrize("by", [70, -50])
def test_the_point_goes_where_the_hand_pulls_it_and_the_slider_with_it(page, root, symbol, by):
    before = float(number(page, symbol, root).split()[0].replace(",", ""))
    start, end = pull(page, root, by)
    after = float(number(page, symbol, root).split()[0].replace(",", ""))
    assert end - start == pytest.approx(by, abs=12)  # the nearest stop
    assert (after > before) == (by > 0)


def test_a_point_is_a_slider_for_the_keyboard_and_for_a_screen_reader(page):
    grip = page.locator(f"{LINEAR} .rl-grip")
    assert (grip.get_attribute("role"), grip.get_attribute("aria-valuetext")) == ("slider", "32")
    grip.focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    assert number(page, "m") == "36" and grip.get_attribute("aria-valuenow") == "36"
    assert grip.evaluate("(one) => one === document.activeElement")


# ------------------------------------------------------------------------------------ measured points


def test_a_measured_point_tells_what_it_is_by_mouse_touch_and_keyboard(page):
    card = page.locator(f"{LINEAR} .rl-card")
    slide(page, LINEAR, "k", 8192)
    cursor = page.locator(f"{LINEAR} .rl-evidence")
    told = []
    cursor.focus()
    page.keyboard.press("End")
    told.append(card.inner_text())
    assert cursor.get_attribute("aria-valuenow") == cursor.get_attribute("aria-valuemax")
    box = cursor.bounding_box()
    page.keyboard.press("Escape")
    assert card.is_hidden()
    at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*at)
    told.append(card.inner_text())
    page.mouse.move(3, 3)
    assert card.is_hidden()
    page.mouse.click(*at)
    page.mouse.move(3, 3)  # what was tapped stays
    told.append(card.inner_text())
    assert told[0] == told[1] == told[2]
    rows = [
        {**s.fixed, **p} for s in catalog.published("linear") for p in s.points if s.accelerator == "h100_sxm"
    ]
    sizes = re.search("K = (.*), N = .*, M = (.*)", told[0])
    k, m = (int(size.replace(",", "")) for size in sizes.groups())
    (row,) = [row for row in rows if (row["k"], row["m"]) == (k, m)]
    rate = 2 * m * k * k / row["seconds"]
    share = rate / roofline.attainable(m / (1 + 2 * m / k), 989.4e12, 3.35e12)
    for part in (
        number_text.si(row["seconds"], "s"),
        f"{number_text.number(100 * share)} % of the roof",
        "H100 SXM, bf16, vLLM 0.24.0",
        "GEMM table",
    ):
        assert part in told[0].replace("\u2009", " "), told[0]
    assert (
        card.locator("a")
        .get_attribute("href")
        .startswith("https://github.com/ai-dynamo/aiconfigurator/tree/")
    )
    page.keyboard.press("Escape")


def test_points_on_one_another_share_a_card_and_each_is_reached(page):
    slide(page, LINEAR, "k", 8192)
    cursor = page.locator(f"{LINEAR} .rl-evidence")
    cursor.focus()
    page.keyboard.press("Home")
    count, told = int(cursor.get_attribute("aria-valuemax")), set()
    for i in range(count):
        told.add((i, cursor.get_attribute("aria-valuetext")))
        page.keyboard.press("ArrowRight")
    assert len({text for _, text in told}) == count > 10
    page.keyboard.press("Escape")


# ---------------------------------------------------------------------------------- the words follow

FOLLOWS = """async ([root]) => {
    const next = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const wrong = [];
    const views = [...document.querySelectorAll(`${root} .rl-segments label`)];
    for (const view of views.length ? views : [null]) {
        view?.click();
        await next();
        const picture = () => document.querySelector(`${root} .rl-picture svg`)?.getAttribute("aria-label");
        for (const slider of document.querySelectorAll(`${root} input[type=range]`)) {
            const before = picture();
            slider.value = slider.value === slider.max ? 0 : slider.max;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            await next();
            if (picture() === before) wrong.push([view?.textContent, slider.id, before]);
        }
        await new Promise((done) => setTimeout(done, 650));
        const spoken = document.querySelector(`${root} .rl-unseen[aria-live]`).textContent;
        if (!spoken || !picture()?.endsWith(spoken)) wrong.push([view?.textContent, picture(), spoken]);
    }
    return wrong;
}"""


def test_the_pictures_words_are_what_is_spoken_after_every_move(lasting_context, tmp_path):
    """All formulas on one page, each in all its views, one slider after the other; they rest together."""
    shown = [explore(f, CARDS if f.parameters else [], id=f"f-{i}") for i, f in enumerate(formulas.ALL)]
    page = opener(lasting_context, write(tmp_path / "page.html", *shown))()
    wrong = page.evaluate(
        f"(roots) => Promise.all(roots.map((root) => ({FOLLOWS})([root])))", [f"#{one.id}" for one in shown]
    )
    assert [one for many in wrong for one in many] == []
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_what_can_be_touched(page, theme):
    page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
    page.locator(f"{LINEAR} .rl-evidence").focus()
    type_in(page, CURVE, "m", "0")
    page.locator(f"{LINEAR} .rl-evidence").focus()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html)]))"
    )
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert found == []

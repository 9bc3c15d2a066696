"""Bars, the line of time, and what a model decides, on a page without a kernel."""

import pytest

from book import catalog
from book.widgets.explorer import explore
from tests import formulas
from tests.site.built import AXE
from tests.site.explorer_page import CARDS, OVERLAPS, choose, number, opener, readouts, settle, slide, write

BARS, TIME = "#decode-step", "#step-law"
BITS = ["4 bit", "4.125 bit", "4.25 bit", "4.5 bit", "8 bit", "16 bit"]


def everything():
    """Every formula of Part II in the view it is made for, and published rows on one of them."""
    law = formulas.step_law
    rows = catalog.series("decode_step", accelerator="h100_sxm")
    fixed = {**law.preset_values("Llama-3.1-70B"), "batch": 4, "context": 1536, "weight_itemsize": 1}
    points = [{"gpus": p["gpus"], "seconds": p["seconds"]} for p in rows.points]
    series = {"rung": "published", "accelerator": "h100_sxm", "fixed": fixed, "points": points}
    return [
        *(explore(f, CARDS, id=f.name.replace("_", "-")) for f in formulas.OF_A_MODEL),
        explore(law, CARDS, id="rows", evidence=[series], view="formula", against="gpus", weight_itemsize=1),
    ]


@pytest.fixture(scope="module")
def explorers():
    return everything()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, explorers):
    return write(tmp_path_factory.mktemp("views") / "page.html", *explorers)


@pytest.fixture
def open_page(new_context, page_file):
    """Opens the page from disk; an error in it, or a request that leaves it, fails the test."""
    return opener(new_context, page_file)


@pytest.fixture
def page(open_page):
    return open_page()


def view(page, root, name):
    page.click(f"label[for={root[1:]}-view-{name}]")
    settle(page)


def jump(page, end):
    """Every slider of the page to its low or high end."""
    page.evaluate(
        """(end) => document.querySelectorAll("input[type=range]").forEach((input) => {
            input.value = end === "low" ? 0 : input.max;
            input.dispatchEvent(new Event("input", { bubbles: true }));
        })""",
        end,
    )
    settle(page)


def widths(page, root, where=".rl-bars"):
    rects = page.locator(f"{root} {where} rect[data-part]")
    return dict(rects.evaluate_all("(all) => all.map((r) => [r.dataset.part, +r.getAttribute('width')])"))


def picture(page, root):
    return page.locator(f"{root} svg.rl-plot").first.get_attribute("aria-label")


# ------------------------------------------------------------------------------------ the bars


def test_bars_are_as_long_as_the_formula_says(page):
    f, drawn = formulas.decode_step, widths(page, BARS)
    at = f.defaults()
    times = {s.output: float(f.evaluate(s.output, **at)) for s in f.view("bars").shown}
    scale = drawn["weight_time"] / times["weight_time"]
    assert drawn == pytest.approx({n: scale * t for n, t in times.items()}, abs=0.5)


def test_a_longer_context_stretches_the_cache_alone(page):
    before = widths(page, BARS)
    slide(page, BARS, "context", 4608)
    after = widths(page, BARS)
    assert after["kv_time"] / before["kv_time"] == pytest.approx(4608 / 4096, rel=1e-3)
    assert after["weight_time"] == pytest.approx(before["weight_time"])
    labels = page.locator(f"{BARS} .rl-labels").first.text_content()
    assert "weights 4.48 ms" in labels and "KV cache 5.77 ms" in labels and "= 10.2 ms" in labels


def test_the_axis_grows_before_a_bar_leaves_it(page):
    for end in ("low", "high"):
        jump(page, end)
        for root in (BARS, "#prefill", "#kv-capacity"):
            right = "(all) => all.map((e) => e.getBoundingClientRect().right)"
            edge = page.locator(f"{root} svg.rl-plot").first.evaluate(
                "(e) => e.getBoundingClientRect().right"
            )
            assert max(page.locator(f"{root} .rl-bars rect").evaluate_all(right)) < edge - 20, (root, end)


def test_parts_meet_where_the_formula_says(page):
    labels = page.locator(f"{BARS} .rl-panels > svg .rl-labels")
    assert "equal at S = 3,579" in labels.text_content()
    choose(page, "against", "batch", BARS)
    assert "equal at B = 27.9" in labels.text_content()  # no formula for this one: it is searched for
    slide(page, BARS, "context", 8192)
    assert "equal at B = 13.9" in labels.text_content()


def test_the_point_on_the_shares_follows_the_slider(page):
    point = f"{BARS} .rl-panels > svg .rl-point"
    place = "(c) => [+c.getAttribute('cx'), +c.getAttribute('cy')]"
    x, y = page.locator(point).evaluate(place)
    page.press(f"{BARS}-context", "ArrowRight")
    settle(page)
    right, lower = page.locator(point).evaluate(place)
    assert right > x and lower > y  # more context, a smaller share for the weights


# ----------------------------------------------------------------------------- the line of time


def test_one_long_step_leaves_a_hole_in_everybodys_ticks(page):
    f = formulas.step_law
    step, mixed = (float(f.evaluate(n)) for n in ("tpot", "mixed"))
    xs = page.locator(f"{TIME} .rl-ticks").first.evaluate(
        "(p) => p.getAttribute('d').split('M').slice(1).map(parseFloat)"
    )
    gaps = [b - a for a, b in zip(xs[:-1], xs[1:], strict=True)]
    assert sum(gap > 2 * min(gaps) for gap in gaps) == 1
    assert max(gaps) / gaps[0] == pytest.approx(mixed / step, rel=0.01)
    assert f"nothing for {mixed * 1e3:.0f} ms" in page.locator(f"{TIME} .rl-labels").text_content()


def test_chunks_fill_the_hole_and_the_words_follow(page):
    said = page.locator(f"{TIME} .rl-saying")
    assert "all of it in one step" in said.text_content() and "interactive service" in said.text_content()
    slide(page, TIME, "chunk", 512)
    assert "in 16 steps" in said.text_content() and "In the longest of them" in said.text_content()
    assert page.locator(f"{TIME} .rl-cut").count() == 15
    assert "a token every" in page.locator(f"{TIME} .rl-labels").text_content()


@pytest.mark.parametrize(
    ("batch", "names"), [(2, ["user 1", "user 2"]), (64, ["user 1", "user 2", "user 64"])]
)
def test_a_few_users_stand_for_all(page, batch, names):
    slide(page, TIME, "batch", batch)
    assert page.locator(f"{TIME} .rl-lane-name").all_text_contents() == [*names, "new prompt"]


def test_thousands_of_chunks_are_drawn_as_far_as_the_screen_shows_them(page):
    slide(page, TIME, "length", 131072)
    slide(page, TIME, "chunk", 16)
    longest = page.locator(f"{TIME} .rl-ticks").evaluate_all(
        "(all) => Math.max(...all.map((p) => p.getAttribute('d').split('M').length))"
    )
    assert 100 < longest < 500


# ------------------------------------------------------------------------- what a model decides


def test_the_model_sets_what_no_slider_moves(page):
    facts = page.locator(f"{BARS} .rl-facts")
    assert "parameters P = 7,504,924,672" in facts.text_content()
    choose(page, "preset", "Llama-3.1-70B", BARS)
    assert "query heads H = 64" in facts.text_content()
    assert "sizes of your own" not in page.locator(f"{BARS}-preset").inner_text()
    page.press(f"{BARS}-batch", "ArrowRight")
    settle(page)
    assert page.locator(f"{BARS}-preset").input_value() == "Llama-3.1-70B"


def test_the_card_sets_the_memory(page):
    before = readouts(page, "#kv-capacity")
    choose(page, "accelerator", "h200_sxm", "#kv-capacity")
    after = readouts(page, "#kv-capacity")
    assert before[0] == "sequences that fit 90" and after[0] == "sequences that fit 177"


def test_a_link_brings_back_model_and_view(page, open_page):
    choose(page, "preset", "Llama-3.1-70B", BARS)
    view(page, BARS, "formula")
    page.click(f"{BARS} .rl-acts button:last-child")
    page.wait_for_function("() => location.hash")
    again = open_page(page.evaluate("location.hash"))
    assert readouts(again, BARS) == readouts(page, BARS)
    assert again.locator(f"{BARS}-view-formula").is_checked()


@pytest.mark.parametrize("size", ["weight_itemsize", "kv_itemsize"])
def test_a_stored_number_walks_through_its_bits_with_scales(page, size):
    slider = page.locator(f"{BARS}-{size}")
    slider.focus()
    page.keyboard.press("Home")
    seen = [number(page, size, BARS)]
    for _ in BITS[1:]:
        page.keyboard.press("ArrowRight")
        settle(page)
        seen.append(number(page, size, BARS))
    assert seen == BITS


@pytest.mark.parametrize(
    "garbage", ["preset=GPT-9", "preset=", "preset=__proto__", "weight_itemsize=0.7&gpus=3"]
)
def test_garbage_in_the_address_leaves_a_model_standing(open_page, garbage):
    page = open_page(f"#rl=step-law&{garbage}")
    assert page.locator(f"{TIME}-preset").input_value() == "Llama-3.1-8B"
    assert number(page, "weight_itemsize", TIME) in BITS
    assert "NaN" not in page.locator(TIME).inner_text()


def test_rows_of_another_model_fade_until_that_model_is_chosen(page):
    legend = page.locator("#rows .rl-legend")
    assert "Faded points are of another shape" in legend.inner_text()
    legend.locator("button").first.click()
    settle(page)
    assert page.locator("#rows-preset").input_value() == "Llama-3.1-70B"
    assert page.locator("#rows .rl-loud").count() == 0
    assert page.locator("#rows .rl-published").first.locator("path").count() == 3
    view(page, "#rows", "timeline")
    assert "not in this picture" in legend.inner_text()


# ----------------------------------------------------------------------------------- all of them


def test_a_curve_is_not_flattened_by_what_the_sliders_could_do(page):
    low, high = page.evaluate("document.querySelector('#rows svg.rl-plot').scale('y').domain")
    assert high / low < 1e3


def test_python_and_the_page_say_the_same(page, explorers):
    for explorer in explorers:
        said = picture(page, f"#{explorer.id}").replace("\u2009", " ")
        assert explorer.summary() in said


def test_every_stop_of_every_slider_has_its_own_number(page):
    same = page.evaluate(
        """() => [...document.querySelectorAll("input[type=range]")].filter((input) => {
            const seen = [];
            for (const at of [0, 1, 2, input.max - 2, input.max - 1, Number(input.max)]) {
                input.value = Math.max(0, at);
                input.dispatchEvent(new Event("input", { bubbles: true }));
                seen.push(`${input.value}`);
            }
            return new Set(seen).size < Math.min(6, Number(input.max) + 1);
        }).map((input) => input.id)"""
    )
    assert same == []


@pytest.mark.parametrize("width", [320, 360, 820])
def test_labels_never_collide_wherever_the_sliders_are(open_page, width):
    page = open_page(width=width)
    for move in (None, "low", "high"):
        if move:
            jump(page, move)
        assert page.evaluate(OVERLAPS, "") == [], move
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.id)"
    assert page.locator(".rl-alive").evaluate_all(wide) == []
    assert "NaN" not in page.locator("main").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page, theme):
    page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"
    )
    assert found == []

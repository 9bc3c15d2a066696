"""The explorer on a page without a kernel: it moves, by keyboard too, and says what Python says."""

import itertools
import json
import math
import random

import numpy as np
import pytest

from book import roofline
from book.formulas import formula as formula_module
from book.widgets.dual_widget import STATIC
from book.widgets.explorer import explore
from tests import formulas
from tests.site.built import AXE
from tests.site.explorer_page import (
    CARDS,
    LINEAR,
    OVERLAPS,
    calculated,
    choose,
    linear,
    number,
    readouts,
    settle,
    write,
)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    others = [explore(f, CARDS, id=f"all-{f.name.replace('_', '-')}") for f in formulas.OF_A_LAYER]
    folder = tmp_path_factory.mktemp("explorer")
    return write(folder / "page.html", linear(), linear(view="formula", id="curve"), *others)


@pytest.fixture
def open_page(new_context, page_file):
    """Opens the page from disk; an error in it, or a request that leaves it, fails the test."""

    def make(fragment="", width=820, **options):
        context = new_context(page_file.parent.as_uri(), viewport={"width": width, "height": 900}, **options)
        page = context.new_page()
        page.goto(page_file.as_uri() + fragment)
        return page

    return make


@pytest.fixture(scope="module")
def script(browser):
    """A page with the bundle and nothing else."""
    page = browser.new_page()
    page.add_script_tag(path=STATIC / "explorer.js")
    yield page
    page.close()


@pytest.fixture
def page(open_page):
    page = open_page()
    page.wait_for_selector(f"{LINEAR} svg.rl-plot .rl-point")
    return page


# ------------------------------------------------------------------------------------ it moves


def test_every_slider_changes_its_number_with_every_arrow_press(page):
    sliders = page.locator("input[type=range]")
    assert sliders.count() >= 3 * 2 + sum(
        len([p for p in f.parameters if not p.source]) for f in formulas.OF_A_LAYER
    )
    for i in range(sliders.count()):
        slider = sliders.nth(i)
        name = slider.get_attribute("id")
        if not slider.is_visible():
            slider.evaluate("one => { one.closest('details').open = true; }")
        for start, arrow in (("Home", "ArrowRight"), ("End", "ArrowLeft")):
            slider.press(start)
            seen = []
            for _ in range(5):
                settle(page)
                seen.append(slider.get_attribute("aria-valuetext"))
                prefix, _, symbol = name.rpartition("-")
                assert number(page, symbol, f"#{prefix}") == seen[-1]
                slider.press(arrow)
            assert len(set(seen)) == 5, f"{slider.get_attribute('id')}: {seen}"


def test_a_slider_reaches_both_its_ends(page):
    page.press(f"{LINEAR}-m", "Home")
    settle(page)
    assert number(page, "m") == "1"
    page.press(f"{LINEAR}-m", "End")
    settle(page)
    assert number(page, "m") == "8,192"


def test_moving_the_slider_moves_the_point_and_the_readouts(page):
    def point():
        return page.locator(f"{LINEAR} .rl-point").evaluate(
            "(c) => [+c.getAttribute('cx'), +c.getAttribute('cy')]"
        )

    (x, y), before = point(), readouts(page)
    page.press(f"{LINEAR}-m", "ArrowRight")
    settle(page)
    assert point()[0] > x and point()[1] < y
    assert readouts(page) != before


def test_readouts_of_a_known_position(page):
    """Chapter 02: M = 32 on Llama-3.1-8B's gate projection."""
    assert readouts(page) == [
        "intensity 31.7 FLOP/byte",
        "attainable 106 TFLOP/s 10.7 % of peak",
        "time floor 35.4 µs at the attainable rate",
        "bound by memory ridge 295 FLOP/byte",
    ]


def test_the_position_is_spoken_once_when_it_rests(page):
    said = page.evaluate(
        """(root) => new Promise((done) => {
            const spoken = document.querySelector(root + " output[aria-live=polite]");
            const said = [spoken.textContent];
            new MutationObserver(() => { said.push(spoken.textContent); setTimeout(() => done(said), 300); })
                .observe(spoken, { childList: true });
            const slider = document.querySelector(root + "-m");
            for (let i = 0; i < 4; i++) {
                slider.stepUp();
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }
        })""",
        LINEAR,
    )
    assert said == [
        "",
        "H100 SXM, bf16, at M = 48, K = 4,096, N = 14,336: intensity 47.3 FLOP/byte, "
        "attainable 158 TFLOP/s, 16.0\u2009% of peak, bound by memory.",
    ]


# ---------------------------------------------------------------------------------- dropdowns


def test_the_accelerator_moves_the_ridge(page):
    choose(page, "accelerator", "b200")
    assert "ridge 281 FLOP/byte" in readouts(page)[-1]
    assert page.locator(f"{LINEAR} .rl-strong").text_content() == "B200"


def test_the_number_format_changes_bytes_and_peak(page):
    choose(page, "dtype", "fp8")
    assert readouts(page)[0] == "intensity 63.4 FLOP/byte"  # twice the 31.68 of two bytes
    assert "ridge 591" in readouts(page)[-1]


def test_a_format_that_the_card_lacks_is_greyed_out_and_says_why(page):
    choose(page, "accelerator", "a100_80gb_sxm")
    option = page.locator(f"{LINEAR}-dtype option[value=fp8]")
    assert option.is_disabled() and option.text_content() == "fp8: not on this card"
    note = page.locator(f"{LINEAR}-dtype").get_attribute("aria-describedby")
    assert page.locator(f"#{note}").text_content().startswith("A100 SXM has no unit for fp8")


def test_a_card_without_the_chosen_format_gets_another_and_says_so(page):
    choose(page, "accelerator", "t4")
    assert page.locator(f"{LINEAR}-dtype").input_value() == "fp16"
    note = page.locator(f"{LINEAR} .rl-note")
    assert note.text_content() == "T4 has no bf16 unit, so the number format is now fp16."
    assert "NaN" not in page.locator(LINEAR).inner_text()
    choose(page, "accelerator", "h100_sxm")
    assert note.is_hidden()


def test_a_preset_sets_the_sliders_and_is_left_when_one_moves(page):
    choose(page, "preset", "Llama-3.1-8B / down")
    assert (number(page, "k"), number(page, "n")) == ("14,336", "4,096")
    page.press(f"{LINEAR}-n", "ArrowRight")
    settle(page)
    assert page.locator(f"{LINEAR}-preset").input_value() == ""


def test_the_formula_can_be_drawn_against_each_parameter(page):
    page.check(f"{LINEAR}-view-formula", force=True)
    for symbol, words in (("k", "inputs, K"), ("n", "outputs, N"), ("m", "rows in the step, M")):
        choose(page, "against", symbol)
        assert words in page.locator(f"{LINEAR} svg.rl-plot").text_content()
    labels = page.locator(f"{LINEAR} .rl-labels").text_content()
    assert "limit: 2·M/s (weights only)" in labels and "ridge of H100 SXM: 295" in labels


def test_roofs_can_be_taken_out_and_put_back(page):
    labels = page.locator(f"{LINEAR} .rl-labels")
    page.click(f"{LINEAR} .rl-more > summary")
    page.click(f"{LINEAR} .rl-compare summary")
    page.uncheck(f"{LINEAR}-compare-l4")
    settle(page)
    assert "L4" not in labels.text_content()
    page.check(f"{LINEAR}-compare-l4")
    settle(page)
    assert "L4" in labels.text_content()
    assert page.locator(f"{LINEAR}-compare-h100_sxm").is_disabled()  # the highlighted card stays
    page.keyboard.press("Escape")
    assert page.locator(f"{LINEAR} details.rl-compare").get_attribute("open") is None


# ----------------------------------------------------------------------------------- evidence


def test_points_of_another_shape_are_faded_and_said_so_loudly(page):
    loud = page.locator(f"{LINEAR} .rl-loud")
    assert loud.locator("strong").text_content() == (
        "Faded points are of another shape than the sliders' K = 4,096, N = 14,336."
    )
    faded = page.locator(f"{LINEAR} svg.rl-plot [opacity='0.38']")
    assert faded.count() > 0
    loud.locator("button").first.click()
    settle(page)
    assert (number(page, "k"), number(page, "n")) == ("8,192", "8,192")
    assert (
        "aiconfigurator, vLLM 0.24 GEMM table · bf16 · K = N = 8,192"
        in page.locator(f"{LINEAR} .rl-legend").inner_text()
    )


def test_only_the_chosen_cards_measurements_are_shown(page):
    legend = page.locator(f"{LINEAR} .rl-legend")
    assert "timed here not measured yet" in legend.inner_text()
    choose(page, "accelerator", "b200")
    assert "published none for B200" in legend.inner_text()


# --------------------------------------------------------------------------------------- links


def test_a_copied_link_restores_the_position(page, open_page):
    choose(page, "accelerator", "b200")
    choose(page, "preset", "Llama-3.1-8B / down")
    page.press(f"{LINEAR}-m", "End")
    page.check(f"{LINEAR}-view-formula", force=True)
    settle(page)
    page.click(f"{LINEAR} .rl-acts button:last-child")
    page.wait_for_function("() => location.hash")
    told = page.locator(f"{LINEAR} .rl-acts button").last.text_content()
    assert told in ("link copied", "the link is in the address bar")
    again = open_page(page.evaluate("location.hash"))
    settle(again)
    assert readouts(again) == readouts(page)
    assert again.locator(f"{LINEAR}-preset").input_value() == "Llama-3.1-8B / down"
    assert again.locator(f"{LINEAR}-view-formula").is_checked()
    assert readouts(again, "#curve") == readouts(open_page(), "#curve")  # the others stand as they were


@pytest.mark.parametrize(
    "fragment",
    [
        "#rl=explore-linear&m=abc&k=-5&n=1e99&accelerator=abacus&dtype=fp3&view=pie&against=peak&shown=,&preset=%00",
        "#rl=explore-linear&__proto__=1&constructor=2&m[]=3&dtype=toString&preset=a / b",
        "#rl=explore-linear&dtype=fp4&m=Infinity",
        "#%E0%A4%A&rl=%%",
    ],
)
def test_garbage_in_the_address_is_ignored(open_page, fragment):
    page = open_page(fragment)
    settle(page)
    assert "NaN" not in page.locator(LINEAR).inner_text()
    assert page.locator(f"{LINEAR} .rl-point").count() == 1
    assert number(page, "m") == "32"


def test_reset_brings_the_start_back(page):
    start = readouts(page)
    choose(page, "accelerator", "l4")
    page.press(f"{LINEAR}-m", "End")
    page.click(f"{LINEAR} .rl-acts button:first-child")
    settle(page)
    assert readouts(page) == start


# ------------------------------------------------------------------------- JavaScript is Python


SOURCED = {"itemsize": [0.5, 1, 2, 4], "peak": [65e12, 989.4e12], "bandwidth": [3e11, 3.35e12]}
SOURCED |= {"capacity": [16e9, 141e9], "alone": [0, 1]}
ROWS = 1200


def grid(f):
    """Every combination of low, default, an odd middle and high of each slider; of many, a draw."""
    presets = f.presets() if f.presets else {}
    chosen = [sizes for labels in presets.values() for sizes in labels.values()]

    def values(p):
        if p.source == "model":
            return sorted({c[p.symbol] for c in chosen})
        if p.source or p.steps:
            return SOURCED[p.symbol] if p.source else list(p.steps)
        middle = (p.low * p.high) ** 0.5 * 1.3
        return sorted({p.low, p.default, p.high, round(middle) if p.integer else middle})

    columns = [values(p) for p in f.parameters]
    if math.prod(map(len, columns)) <= ROWS:
        return [list(row) for row in itertools.product(*columns)]
    draw = random.Random(f.name)
    return [[draw.choice(column) for column in columns] for _ in range(ROWS)]


@pytest.mark.parametrize("f", formulas.ALL, ids=lambda f: f.name)
def test_every_formula_is_the_same_in_the_browser(script, f):
    rows = grid(f)
    names = [p.symbol for p in f.parameters]
    got = calculated(script, explore(f, CARDS).payload, names, rows)
    assert set(got) == {*f.outputs, *(["limit"] if f.limit else [])}
    columns = dict(zip(names, np.array(rows, float).T, strict=True))
    for output in f.outputs:
        wanted = np.broadcast_to(f.evaluate(output, **columns), len(rows))
        # a difference of times (a stall) is as exact as the times
        scale = np.abs(f.evaluate(f.view("timeline").mixed, **columns)) if f.view("timeline") else 0
        drawn = np.array(got[output], float)
        near = np.abs(drawn - wanted) <= 1e-12 * np.maximum(np.abs(wanted), scale)
        unknown = np.isnan(wanted) & np.isnan(drawn)  # both say that a table has no such row
        assert (near | unknown).all(), output
    if f.limit:
        at = [{p.sympy: row[i] for i, p in enumerate(f.parameters)} for row in rows]
        wanted = [float(f.limit.expression.subs(point)) for point in at]
        np.testing.assert_allclose(np.array(got["limit"], float), wanted, rtol=1e-12)


def test_the_roof_is_the_same_in_the_browser(page):
    rows = list(
        itertools.product([0.3, 16, 5000], [2e9, 7e14], [3e6, 9e9], [65e12, 989.4e12], [3e11, 3.35e12])
    )
    got = page.evaluate(
        """(rows) => {
            const payload = JSON.parse(document.getElementById("explore-linear").dataset.payload);
            const { ridge, attainable, time } = InferenceRoofline.compileAll(payload);
            return rows.map(([i, f, b, p, w]) => [ridge(p, w), attainable(i, p, w), time(f, b, p, w)]);
        }""",
        rows,
    )
    wanted = [
        [roofline.ridge(p, w), roofline.attainable(i, p, w), roofline.time(f, b, p, w)]
        for i, f, b, p, w in rows
    ]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    # "time_linked" is a formula's that sends; tests/book/test_formula.py has it
    assert set(formula_module.roof_javascript()) == {"ridge", "attainable", "time", "time_linked"}


# ------------------------------------------------------------------------------ how it looks


@pytest.mark.parametrize("width", [360, 820])
def test_labels_never_collide_and_lines_stay_in_the_frame(open_page, width):
    page = open_page(width=width)
    for card in CARDS:
        for explorer in (LINEAR, "#curve"):
            choose(page, "accelerator", card, explorer)
        assert page.evaluate(OVERLAPS, "") == [], card


@pytest.mark.parametrize("width", [320, 360])
def test_a_phone_needs_no_sideways_scrolling(open_page, width):
    page = open_page(width=width)
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.id)"
    assert page.locator(".rl-alive").evaluate_all(wide) == []


def test_the_colours_follow_the_theme_without_a_reload(page):
    look = """() => ["rl-point", "rl-explorer", "rl-number"].map((name) => {
        const style = getComputedStyle(document.querySelector("." + name));
        return [style.fill, style.backgroundColor, style.color];
    }).concat(getComputedStyle(document.querySelector("svg.rl-plot [data-mark=line]")).stroke)"""
    light = page.evaluate(look)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    dark = page.evaluate(look)
    assert all(a != b for a, b in zip(light, dark, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page, theme):
    page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
    choose(page, "accelerator", "t4")  # with its remark
    page.click(f"{LINEAR} .rl-more > summary")
    page.click(f"{LINEAR} .rl-compare summary")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"
    )
    assert found == []


# ------------------------------------------------------------------------- with and without more


def test_without_scripts_and_without_a_build_there_is_a_sentence(new_context, page_file):
    page = new_context(page_file.parent.as_uri(), java_script_enabled=False).new_page()
    page.goto(page_file.as_uri())
    said = page.locator(LINEAR).inner_text()
    assert said.startswith("H100 SXM, bf16, at M = 32") and "bound by memory" in said


def test_two_explorers_of_one_name_get_ids_of_their_own(new_context, tmp_path):
    path = write(tmp_path / "page.html", linear(), linear())
    page = new_context(tmp_path.as_uri()).new_page()
    page.goto(path.as_uri())
    assert page.locator(".rl-alive").evaluate_all("(all) => all.map((e) => e.id)") == [
        "explore-linear",
        "explore-linear-2",
    ]
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_in_a_notebook_the_kernel_hears_and_moves_the_slider(page):
    """anywidget imports `_esm` as a module and hands `render` a model that syncs with Python."""
    explorer = linear()
    heard = page.evaluate(
        """async ([esm, payload, state]) => {
            const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
            const { default: front } = await import(address);
            const values = { ...state, payload, kind: "explorer" }, hear = {}, sent = [];
            const model = {
                get: (n) => values[n],
                set(n, v) {
                    if (values[n] === v) return;
                    values[n] = v;
                    sent.push([n, v]);
                    (hear["change:" + n] ?? []).forEach((f) => f());
                },
                save_changes() { sent.push("saved"); },
                on(e, f) { (hear[e] ??= []).push(f); },
                off(e, f) { hear[e] = hear[e].filter((g) => g !== f); },
            };
            const el = document.body.appendChild(document.createElement("div"));
            const stop = front.render({ model, el });
            const next = (done) => requestAnimationFrame(() => requestAnimationFrame(done));
            const frame = () => new Promise(next);
            const slider = el.querySelector("input[type=range]");
            slider.stepUp(); slider.dispatchEvent(new Event("input"));
            const told = sent.filter((s) => s[0] === "m" || s === "saved");
            model.set("m", 1000);
            await frame();
            const shown = el.querySelector(".rl-value").value;
            const copy = [...el.querySelectorAll(".rl-acts button")].at(-1).hidden;
            stop();
            return { told, shown, copy, left: Object.values(hear).flat().length };
        }""",
        [explorer._esm, explorer.payload, json.loads(json.dumps(explorer.state()))],
    )
    assert heard == {"told": [["m", 36], "saved"], "shown": "1,000", "copy": True, "left": 0}

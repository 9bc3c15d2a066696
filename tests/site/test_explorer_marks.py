"""Points of another model or format fade; two engines on one card are told apart; what a format changes."""

import pytest

from book.formulas import ch03_prefill_and_decode
from book.widgets.explorer import explore
from tests import formulas
from tests.site.explorer_page import CARDS, choose, opener, slide, write

ROWS, STEP, SHARE, MIX = "#rows", "#decode-step", "#share", "#mixed"


def share(points, **more):
    shown = {"rung": "published", "accelerator": "h100_sxm", "dtype": "bf16", "label": "A table"}
    return {**shown, "points": [{"utilisation": 0.2, "intensity": p["m"], **p} for p in points], **more}


SHARES = [share([{"m": 8 * n}, {"m": 64 * n}]) for n in (1, 2)]
MIXED = share([{"m": 8, "weight_itemsize": 2}, {"m": 64, "weight_itemsize": 1}], label="Runs")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    measured = explore(
        formulas.step_law,
        ["h200_sxm", "h100_sxm"],
        dtype="fp8",
        model="llama3.1-70b",
        weight_itemsize=1,
        published="decode_step",
        view="formula",
        against="gpus",
        id="rows",
    )
    return write(
        tmp_path_factory.mktemp("marks") / "page.html",
        measured,
        explore(formulas.decode_step, CARDS, id="decode-step"),
        explore(ch03_prefill_and_decode.utilisation, ["h100_sxm"], id="share", evidence=SHARES),
        explore(ch03_prefill_and_decode.utilisation, ["h100_sxm"], id="mixed", evidence=[MIXED]),
    )


@pytest.fixture
def page(new_context, page_file):
    return opener(new_context, page_file)()


def faded(page):
    return page.locator(f"{ROWS} .rl-loud").count() > 0


def test_points_of_the_sliders_own_model_and_format_stand_at_full_strength(page):
    assert not faded(page)


def test_points_of_another_model_fade_and_say_so(page):
    choose(page, "preset", "Llama-3.1-8B", ROWS)
    assert faded(page)
    assert "Faded points are of another shape" in page.locator(f"{ROWS} .rl-legend").inner_text()
    page.locator(f"{ROWS} .rl-legend button").first.click()
    page.wait_for_function("() => document.querySelector('#rows-preset').value === 'Llama-3.1-70B'")


def test_points_of_another_format_fade_and_the_offer_sets_it(page):
    choose(page, "dtype", "bf16", ROWS)
    assert faded(page)
    page.locator(f"{ROWS} .rl-legend button").first.click()
    page.wait_for_function("() => document.querySelector('#rows-dtype').value === 'fp8'")
    assert not faded(page)


def test_points_whose_weights_are_stored_otherwise_fade_and_equal_offers_are_one(page):
    assert page.locator(f"{SHARE} .rl-loud").count() == 0
    slide(page, SHARE, "weight_itemsize", 8)  # bits
    assert "Faded points are of another shape" in page.locator(f"{SHARE} .rl-legend").inner_text()
    offers = page.locator(f"{SHARE} .rl-legend button").all_inner_texts()
    assert len(offers) == 1, offers


def test_runs_with_several_formats_of_weights_are_not_named_by_one(page):
    assert "Runs · multiplied in bf16" in page.locator(f"{MIX} .rl-legend").inner_text()


def test_two_engines_on_one_card_have_two_marks_and_two_names(page):
    legend = page.locator(f"{ROWS} .rl-legend li:has-text('published')")
    assert legend.count() == 2
    assert "vLLM" in legend.nth(0).inner_text() and "TensorRT-LLM" in legend.nth(1).inner_text()
    swatches = page.locator(f"{ROWS} .rl-legend li:has-text('published') svg").evaluate_all(
        "(all) => all.map((e) => e.innerHTML)"
    )
    assert len(set(swatches)) == 2
    fills = page.locator(f"{ROWS} svg.rl-plot .rl-published").evaluate_all(
        "(all) => all.map((e) => e.getAttribute('fill'))"
    )
    assert len(set(fills)) == 2


def test_a_format_for_the_arithmetic_says_that_it_stores_no_weight(page):
    note = page.locator(f"{STEP} .rl-note")
    assert note.is_hidden()
    choose(page, "dtype", "fp8", STEP)
    assert note.inner_text() == (
        "fp8 is what the products are computed in. How a weight is stored is a slider of its own, "
        "now at 16 bit."
    )

"""The sentence on what a reader serves: said once, kept, carried, followed by explorers, and never sent."""

from __future__ import annotations

import json
import re

import pytest

from book import catalog
from book.drawing import palette
from book.serving.deployment import deploy
from book.widgets import serve
from book.widgets.dual_widget import STATIC
from book.widgets.explorer import explore
from tests import formulas
from tests.book.test_serve import deployments
from tests.site.built import AXE
from tests.site.explorer_page import settle

STEP = "#explore-decode-step"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with the sentence and three explorers, with its scripts beside it."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "explorer.js").write_bytes((STATIC / "explorer.js").read_bytes())
    (folder / "serve.js").write_text(serve.script(), encoding="utf-8")
    styles = palette.css() + "".join(
        (STATIC / f"{name}.css").read_text(encoding="utf-8") for name in ("explorer", "serve")
    )
    shown = (
        explore(formulas.decode_step, ["h100_sxm", "b200"], view="bars"),
        explore(formulas.linear, ["h100_sxm"], model="llama3.1-8b", layer="gate"),
        explore(formulas.kv_capacity, ["h200_sxm"]),
        explore(formulas.deployment, ["h100_sxm"], of_sentence=True, **serve.opening(formulas.deployment)),
    )
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Serve</title>'
        f'<meta name="viewport" content="width=device-width"><style>{styles}</style>'
        '<script defer src="serve.js"></script><script defer src="explorer.js"></script></head><body><main>'
        f"<h1>Serve</h1>{serve.static_html()}{''.join(e.static_html() for e in shown)}</main></body></html>",
        encoding="utf-8",
    )
    return folder / "page.html"


@pytest.fixture(scope="module")
def tab(lasting_context, file):
    """One tab for the tests that need no other browser."""
    return lasting_context(file.parent.as_uri(), reduced_motion="reduce").new_page()


@pytest.fixture
def page(tab, file):
    """The page as somebody sees it who has never been there."""
    yield at(tab, file)
    tab.evaluate("localStorage.clear()")
    tab.goto("about:blank")


def at(page, file, fragment=""):
    page.goto(file.as_uri() + fragment)
    settle(page)
    return page


def put(page, name, text):
    """Type into a field of the sentence, or choose."""
    control = page.locator(f"[data-serve={name}]")
    if control.evaluate("one => one.localName") == "select":
        control.select_option(text)
    else:
        control.fill(text)
        control.press("Enter")
    settle(page)


def verdict(page):
    return page.locator(".rl-verdict").inner_text()


def slider(page, explorer, symbol):
    return page.locator(f"{explorer}-{symbol}").get_attribute("aria-valuetext")


def choice(page, explorer, name):
    return page.locator(f"{explorer}-{name}").evaluate("one => one.selectedOptions[0].textContent")


def test_what_the_page_computes_is_the_formulas_number_for_every_deployment(page):
    ids = {form: name for name, form in serve.FORMATS.items()}
    asked = [
        {
            **{"model": m.id, "format": ids[form], "people": people, "context": context},
            **{"cards": count, "card": card.id},
        }
        for m, card, form, people, context, count in deployments()
    ]
    found = page.evaluate(
        """asked => asked.map(one => {
            const {now, held} = InferenceRoofline.deployment.consequences(one, InferenceRooflineServe);
            return [now.at("time"), held.state];
        })""",
        asked,
    )
    for one, (time, state) in zip(asked, found, strict=True):
        told = _in_python(one)
        assert (time, state) == (pytest.approx(told[0], rel=1e-12), told[1]), one


def _in_python(one):
    at = serve.position(serve.Served(**one))
    held = formulas.deployment.held(**at)
    return formulas.deployment(**at), "fits" if held["needed"] <= held["there"] else "lacks"


def test_the_page_says_what_stood_there_before_its_script(page):
    (before,) = re.findall(r'<p class="rl-verdict".*?>(.*?)</p>', serve.static_html())
    assert " ".join(verdict(page).split()) == " ".join(re.sub("<.*?>", "", before).split())


def test_before_the_script_comes_the_controls_are_as_they_were_left(new_context, file):
    address = file.as_uri() + "#serve=llama3.1-8b~bf16~3~1k~4xl4"
    context = new_context(file.parent.as_uri())
    context.route("**/explorer.js", lambda route: route.fulfill(body=""))
    page = context.new_page()
    page.goto(address)
    left = page.locator("[data-serve]").evaluate_all("all => all.map(one => one.value)")
    assert left == ["llama3.1-8b", "bf16", "3", "1k", "4", "l4"]


def test_until_something_is_said_explorers_stand_where_their_author_put_them(page):
    assert slider(page, STEP, "context") == "4,096 tokens" and choice(page, STEP, "preset") == "Llama-3.1-8B"
    assert verdict(page).startswith("✓ Fits: 114 GB of 170 GB")
    assert page.evaluate("location.hash") == "" and page.evaluate("localStorage.length") == 0


def test_explorers_follow_in_all_that_they_have(page):
    put(page, "model", "llama3.1-8b")
    put(page, "format", "int4w")
    put(page, "people", "12")
    put(page, "context", "32k")
    assert [slider(page, STEP, s) for s in ("batch", "context", "weight_itemsize", "kv_itemsize")] == [
        "12", "32,768 tokens", "4.125 bit", "16 bit"
    ]  # fmt: skip
    assert choice(page, STEP, "preset") == "Llama-3.1-8B"
    assert slider(page, "#explore-linear", "m") == "12"
    assert slider(page, "#explore-kv-capacity", "context") == "32,768 tokens"


def test_a_card_that_an_explorer_was_not_given_is_there_once_it_is_the_readers(page):
    put(page, "card", "l40s")
    assert choice(page, STEP, "accelerator") == "L40S"
    put(page, "card", "mi300x")
    assert choice(page, STEP, "accelerator") == "MI300X"
    offered = page.locator(f"{STEP}-accelerator option").all_inner_texts()
    assert offered == ["H100 SXM", "B200", "MI300X"], "the readers' own last, once"


def test_it_is_kept_by_the_browser_and_by_the_address_which_wins(page, file):
    put(page, "people", "64")
    address = page.evaluate("location.hash")
    assert address == "#serve=llama3.1-70b~fp8~64~8k~2xh100_sxm"
    at(page, file)
    assert page.locator("[data-serve=people]").input_value() == "64", "from storage"
    page.goto("about:blank")
    at(page, file, "#serve=llama3.1-8b~bf16~3~1k~1xl4")
    assert page.locator("[data-serve=model]").input_value() == "llama3.1-8b"
    assert slider(page, STEP, "batch") == "3"


@pytest.mark.parametrize(
    "hostile",
    [
        *("", "~~~~", "x" * 10_000, "%E0%A4%A", "<img onerror=1>~~~~"),
        "llama3.1-70b~__proto__~1e99~NaN~-3xh100_sxm",
    ],
)
def test_a_hostile_address_leaves_the_authors_numbers(page, file, hostile):
    page.goto("about:blank")
    at(page, file, f"#serve={hostile}")
    assert verdict(page).startswith("✓ Fits: 114 GB of 170 GB")


def test_without_storage_it_lives_in_the_address(new_context, file):
    context = new_context(file.parent.as_uri())
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked'); }})"
    )
    page = at(context.new_page(), file)
    put(page, "people", "5")
    assert "~5~" in page.evaluate("location.hash") and slider(page, STEP, "batch") == "5"


def test_a_section_of_a_page_keeps_its_address(page, file):
    page.goto("about:blank")
    at(page, file, "#explore-linear")
    put(page, "people", "5")
    assert page.evaluate("location.hash") == "#explore-linear"


def test_one_click_brings_the_authors_numbers_back(page):
    put(page, "card", "l4")
    put(page, "people", "7")
    page.get_by_role("button", name="the author's numbers").click()
    settle(page)
    assert page.evaluate("[location.hash, localStorage.length]") == ["", 0]
    assert choice(page, STEP, "accelerator") == "H100 SXM" and slider(page, STEP, "context") == "4,096 tokens"


def test_what_does_not_fit_says_so_and_offers_what_would(page):
    put(page, "model", "llama3.1-405b")
    assert "✗ Does not fit" in verdict(page)
    assert page.locator(".rl-verdict s").count() == 1, "its time is struck"
    page.get_by_role("button", name="take 8 × H100 SXM").click()
    settle(page)
    assert verdict(page).startswith("✓ Fits") and page.locator("[data-serve=cards]").input_value() == "8"


def test_what_no_memory_mends_is_said_in_a_sentence(page):
    put(page, "cards", "3")
    assert "can't be dealt out evenly to 3 cards" in verdict(page)
    put(page, "cards", "2")
    put(page, "model", "llama2-7b")
    assert "takes contexts of up to 4,096 tokens" in verdict(page)
    page.get_by_role("button", name="4k tokens at most").click()
    settle(page)
    assert verdict(page).startswith("✓ Fits")


def test_cards_that_nothing_joins_cannot_share_a_model_as_serving_says(page):
    apart = [card.id for card in catalog.accelerators() if not card.interconnect_bandwidth]
    found = page.evaluate(
        """cards => cards.map(card => InferenceRoofline.deployment.consequences(
            {...InferenceRooflineServe.start, model: "llama3.1-8b", cards: 2, card}, InferenceRooflineServe
        )).map(told => [told.held.state, told.held.sentence.includes("no link"), told.offers.cards ?? 1])""",
        apart,
    )
    assert apart and found == [["broken", True, 1]] * len(apart)
    for card in apart:
        with pytest.raises(catalog.NoLink):
            deploy("llama3.1-8b", card, gpus=2)


def test_a_model_that_a_short_formula_does_not_hold_for_is_said_and_not_answered(page):
    put(page, "people", "12")
    assert slider(page, STEP, "batch") == "12"
    put(page, "model", "deepseek-v3")
    assert choice(page, STEP, "preset") == "Llama-3.1-8B" and slider(page, STEP, "batch") == "32"
    said = page.locator(f".rl-apart:has(+ {STEP})")
    assert "DeepSeek-V3 is built otherwise" in said.inner_text()
    assert "DeepSeek-V3" in page.locator("#explore-deployment .rl-picture").inner_html(), "it holds for all"
    put(page, "model", "llama3.1-8b")
    assert slider(page, STEP, "batch") == "12" and choice(page, STEP, "preset") == "Llama-3.1-8B"


def test_a_formula_of_one_card_says_so_to_whom_has_more(page):
    put(page, "cards", "4")
    assert "all of the model on one of your 4" in page.locator(f".rl-apart:has(+ {STEP})").inner_text()
    put(page, "cards", "1")
    assert page.locator(".rl-apart:visible").count() == 0
    put(page, "card", next(card.id for card in catalog.accelerators() if not card.interconnect_bandwidth))
    put(page, "cards", "2")
    assert "no link between two" in page.locator("#explore-kv-capacity").inner_text()


def test_a_field_takes_numbers_as_people_write_them_and_arrow_keys_and_says_what_it_cannot_read(page):
    field = page.locator("[data-serve=context]")
    for text, shown in (("32768", "32k"), ("1M", "1M"), ("1,000", "1,000"), ("99M", "1M"), ("2", "16")):
        put(page, "context", text)
        assert field.input_value() == shown
    put(page, "people", "1")
    assert page.locator("[data-plural]").inner_text() == "person"
    page.locator("[data-serve=people]").press("ArrowUp")
    assert page.locator("[data-serve=people]").input_value() == "2"
    put(page, "people", "many")
    assert "write a number" in page.locator("[data-serve=people]").evaluate("one => one.validationMessage")


def test_nothing_is_sent_when_something_is_chosen(page):
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    put(page, "people", "9")
    put(page, "card", "mi300x")
    assert sent == [] and page.context.cookies() == []


def test_another_tab_hears_of_it(page, file):
    other = page.context.new_page()
    at(other, file)
    put(page, "people", "9")
    other.wait_for_function("document.querySelector('[data-serve=people]').value === '9'")
    settle(other)
    assert slider(other, STEP, "batch") == "9"
    other.close()


def test_a_link_to_a_position_carries_the_deployment(page):
    put(page, "people", "9")
    page.locator(f"{STEP} button", has_text="copy link").click()
    settle(page)
    hash = page.evaluate("location.hash")
    assert "serve=llama3.1-70b" in hash and "rl=explore-decode-step" in hash


def test_it_is_named_and_axe_has_nothing_to_say(page):
    names = page.locator("[data-serve]").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert names == [
        "model",
        "number format",
        "people at once",
        "tokens of context each",
        "number of cards",
        "card",
    ]
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run('.rl-serve').then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html)]))"
    )
    assert json.dumps(found) == "[]"


def test_the_works_of_a_step_stand_on_the_roof_each_at_its_intensity_with_its_share(page):
    for context in ("1k", "64k"):
        put(page, "context", context)
        at = serve.position(serve.Served(context=serve.TOKENS * int(context[:-1])))
        told = {
            part.label: (formulas.deployment.evaluate(part.intensity, **at), _share(part, at))
            for part in formulas.deployment.view("roofline").works
        }
        shown = page.locator("#explore-deployment .rl-operating").evaluate_all(
            "all => all.map(one => [...one.querySelectorAll('text')].map(t => t.textContent))"
        )
        assert [label for label, _ in shown] == list(told)
        for label, text in shown:
            intensity, share = map(float, re.findall(r"[\d.]+", text))
            assert intensity == pytest.approx(told[label][0], rel=5e-3)
            assert share == pytest.approx(100 * told[label][1], rel=5e-3)


def _share(part, at):
    times = [formulas.deployment.evaluate(p.time, **at) for p in formulas.deployment.view("roofline").works]
    return formulas.deployment.evaluate(part.time, **at) / sum(times)


def test_the_sliders_of_the_answer_change_the_sentence_and_all_that_follow_it(page):
    page.locator("#explore-deployment-batch").press("ArrowRight")
    settle(page)
    assert page.locator("[data-serve=people]").input_value() == "36"
    assert slider(page, STEP, "batch") == "36" and "~36~" in page.evaluate("location.hash")
    put(page, "people", "2000")
    assert slider(page, "#explore-deployment", "batch") == "1,024", "as far as it goes"
    assert page.locator("[data-serve=people]").input_value() == "2,000", "what the reader said stays said"


def test_the_answer_has_no_choice_that_stands_in_the_sentence(page):
    shown = page.locator("#explore-deployment :is(select, input[type=range])").evaluate_all(
        "all => all.map(one => one.id.replace('explore-deployment-', ''))"
    )
    assert shown == ["batch", "context", "gpus"]

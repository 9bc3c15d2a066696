"""What a card or a number format decides, and a slider that shows another unit than the formula has."""

import pytest

from book import catalog
from book.catalog.facts import ACCELERATOR_FACTS, DTYPE_FACTS
from book.formulas.formula import Formula, Parameter, symbol
from book.formulas.views import Curve, Readouts, Shown
from book.widgets.explorer import explore
from book.widgets.position import position
from tests.site.explorer_page import choose, number, readouts, settle, write

ROOT = "#explore-exchange"
LINKED = next(a.id for a in catalog.accelerators() if a.interconnect_bandwidth)
LONE = next((a.id for a in catalog.accelerators() if a.interconnect_bandwidth is None), "")

exchange = Formula(
    name="exchange",
    title="What cards tell each other",
    value="time",
    unit="s",
    parameters=(
        Parameter("numbers", "numbers", 2**20, 1, 2**30, latex="N"),
        Parameter(
            "stored",
            "size of a weight",
            0.5,
            unit="byte",
            latex="w",
            integer=False,
            steps=(0.5, 0.515625, 0.53125, 0.5625, 1, 2),
            shown_in="bit",
        ),
        Parameter("sent_itemsize", "bytes of a number sent", 2, unit="byte", latex="s", source="dtype"),
        Parameter("link", "link to other cards", 450e9, unit="byte/s", latex="L", source="accelerator"),
    ),
    outputs={
        "time": symbol("numbers") * symbol("sent_itemsize") / symbol("link"),
        "kept": symbol("numbers") * symbol("stored"),
    },
    views=(Curve(), Readouts("time to send", (Shown("kept", "kept", "byte"),))),
)


@pytest.fixture(scope="module")
def cards():
    if not LONE:
        pytest.fail("every card of the catalog has a link now: test the sentence with another fact.")
    return [LINKED, LONE]


@pytest.fixture
def page(new_context, tmp_path, cards):
    path = write(tmp_path / "page.html", explore(exchange, cards, dtype="fp16"))
    page = new_context(tmp_path.as_uri(), viewport={"width": 820, "height": 900}).new_page()
    page.goto(path.as_uri())
    settle(page)
    return page


def test_a_fact_is_one_row_of_a_table(monkeypatch):
    rows = {**ACCELERATOR_FACTS, "units": lambda card, _: card.sm_count}
    for where in ("book.widgets.explorer_payload", "book.widgets.position"):
        monkeypatch.setattr(f"{where}.ACCELERATOR_FACTS", rows)
    monkeypatch.setattr("book.widgets.explorer_payload.FACTS", {"accelerator": rows, "dtype": DTYPE_FACTS})
    counted = Parameter("units", "multiprocessors", 1, source="accelerator")
    explorer = explore(Formula("f", "f", "y", "", (counted, Parameter("a", "a", 1)), {"y": symbol("units")}))
    card = catalog.accelerator(explorer.accelerator)
    assert explorer.payload["accelerators"][0]["facts"]["units"] == card.sm_count
    assert position(explorer)["units"] == card.sm_count and "y 132" in explorer.summary()


def test_a_fact_may_go_by_another_name_than_its_parameter():
    capacity = Parameter("hbm", "memory", 1, source="accelerator", fact="capacity")
    f = Formula("f", "f", "y", "byte", (capacity, Parameter("a", "a", 1)), {"y": symbol("hbm")})
    explorer = explore(f, ["h100_sxm"])
    assert position(explorer)["hbm"] == explorer.payload["accelerators"][0]["facts"]["capacity"]


def test_what_a_source_does_not_decide_is_answered_with_what_it_does():
    f = Formula(
        "f", "f", "y", "", (Parameter("speed", "v", 1, source="accelerator"),), {"y": symbol("speed")}
    )
    with pytest.raises(
        ValueError, match="parameter speed: source 'accelerator' decides peak, .*link, not 'speed'"
    ):
        explore(f)


def test_the_link_of_a_card_is_in_the_formula(page):
    seconds = 2 * 2**20 / catalog.accelerator(LINKED).interconnect_bandwidth
    assert readouts(page, ROOT)[0] == f"time to send {seconds * 1e6:.3g} µs"


def test_a_card_without_the_fact_says_so_and_what_to_do(page, cards):
    choose(page, "accelerator", LONE, ROOT)
    said = page.locator(f"{ROOT} .rl-lacking").inner_text()
    name = catalog.accelerator(LONE).short_name
    assert said == (
        f"{name}: the catalog has no link to other cards of it, so nothing can be computed. "
        "Choose another card."
    )
    assert explore(exchange, cards[::-1], dtype=catalog.accelerator(LONE).default_dtype).summary() == said
    assert "NaN" not in page.locator(ROOT).inner_text()
    choose(page, "accelerator", LINKED, ROOT)
    assert page.locator(f"{ROOT} svg.rl-plot").count() == 1


def test_the_format_decides_any_parameter_that_asks_for_it(page):
    before = readouts(page, ROOT)[0]
    choose(page, "dtype", "fp32", ROOT)
    assert position(explore(exchange, [LINKED], dtype="fp32"))["sent_itemsize"] == 4
    assert float(readouts(page, ROOT)[0].split()[3]) == pytest.approx(2 * float(before.split()[3]), rel=0.01)


def test_bytes_are_shown_and_stepped_in_bits(page):
    seen = []
    page.press(f"{ROOT}-stored", "Home")
    for _ in range(6):
        settle(page)
        seen.append(number(page, "stored", ROOT))
        page.press(f"{ROOT}-stored", "ArrowRight")
    assert seen == ["4 bit", "4.125 bit", "4.25 bit", "4.5 bit", "8 bit", "16 bit"]
    explorer = explore(exchange, [LINKED], dtype="fp16", stored=0.5625)
    assert "w = 4.5 bit" in explorer.summary() and explorer.stored == 0.5625


def test_the_axis_too_is_in_what_is_shown(page):
    choose(page, "against", "stored", ROOT)
    text = page.locator(f"{ROOT} svg.rl-plot").text_content()
    assert "size of a weight, w (bit)" in text and "4.125" in text


def test_a_wrong_step_is_answered_in_both_units():
    with pytest.raises(Exception, match=r"must be one of 0.5 \(4 bit\), 0.515625 \(4.125 bit\)"):
        explore(exchange, [LINKED], dtype="fp16", stored=0.6)


def test_a_unit_that_nothing_is_shown_in_is_refused():
    with pytest.raises(ValueError, match="'s' is never shown in 'bit', only byte in bit"):
        Parameter("a", "a", 1, unit="s", shown_in="bit")

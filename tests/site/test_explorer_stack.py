"""Terms as one bar, the measured step on top of them, and a rest that may be negative."""

import pytest
import sympy

from book.formulas.formula import Formula, Parameter, symbol
from book.formulas.tables import interpolated, looked_up
from book.formulas.views import Curve, Readouts, Shown, Stack
from book.widgets.explorer import explore
from tests.site.explorer_page import OVERLAPS, opener, readouts, settle, slide, write

ROOT = "#explore-step"
B, TAU = symbol("batch"), symbol("overhead")
MEASURED = {1: 6.0e-3, 2: 6.1e-3, 4: 7.5e-3, 8: 8.0e-3}
_TERMS = {
    "weights": 4e-3,
    "cache": 0.25e-3 * B,
    "sent": interpolated(B, {2: 0.5e-3, 16: 1.5e-3}, "sent"),
    "fewer": -0.1e-3 * B,
    "overhead_time": TAU,
}

step = Formula(
    name="step",
    title="A step taken apart",
    value="time",
    unit="s",
    parameters=(
        Parameter("batch", "users", 4, steps=(1, 2, 4, 8, 16), latex="B"),
        Parameter("overhead", "overhead", 1e-3, 0, 4e-3, "s", r"\tau", scale="linear", integer=False),
    ),
    outputs={
        **_TERMS,
        "time": sympy.Add(*_TERMS.values()),
        "step": looked_up((B,), MEASURED),
    },
    views=(
        Stack(tuple(Shown(name, name.replace("_", " "), "s") for name in _TERMS), measured="step"),
        Curve(),
        Readouts("time of a step"),
    ),
)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stack") / "page.html", explore(step, []))


@pytest.fixture
def open_page(new_context, page_file):
    return opener(new_context, page_file)


@pytest.fixture
def page(open_page):
    return open_page()


def boxes(page, where="[data-part]"):
    """{part: (left, width)} in pixels of the bar."""
    return page.locator(f"{ROOT} .rl-stack {where}").evaluate_all(
        "(all) => Object.fromEntries(all.map((e) => [e.dataset.part, e.getBBox()])"
        ".map(([part, box]) => [part, [box.x, box.width]]))"
    )


def end_of(page, symbol, key):
    """A slider by a key: "Home" to its low end, "End" to its high one."""
    page.press(f"{ROOT}-{symbol}", key)
    settle(page)


def said(page):
    return page.locator(f"{ROOT} .rl-saying").inner_text()


def test_terms_follow_one_another_as_long_as_the_formula_says(page):
    drawn, at = boxes(page), {"batch": 4, "overhead": 1e-3}
    times = {name: float(step.evaluate(name, **at)) for name in _TERMS}
    scale = drawn["weights"][1] / times["weights"]
    assert {n: w for n, (_, w) in drawn.items() if n in times} == pytest.approx(
        {n: abs(t) * scale for n, t in times.items()}, abs=0.6
    )
    assert drawn["cache"][0] == pytest.approx(sum(drawn["weights"]), abs=0.6)


def test_the_rest_reaches_from_the_terms_to_what_was_measured(page):
    drawn = boxes(page)
    scale = drawn["weights"][1] / 4e-3
    total = float(step(batch=4, overhead=1e-3))
    assert drawn["rest"][1] == pytest.approx(abs(MEASURED[4] - total) * scale, abs=0.6)
    assert "7.50 ms was measured" in said(page) and "is left over" in said(page)
    assert "rest +" in page.locator(f"{ROOT} .rl-labels").text_content()


def test_a_negative_rest_is_drawn_back_over_the_terms_with_its_sign(page):
    end_of(page, "overhead", "End")
    drawn = boxes(page)
    end = max(left + width for name, (left, width) in drawn.items() if name != "rest")
    assert sum(drawn["rest"]) == pytest.approx(end, abs=1) and drawn["rest"][1] > 10
    assert page.locator(f"{ROOT} .rl-rest.rl-over").count() == 1
    assert "rest −" in page.locator(f"{ROOT} .rl-labels").text_content()
    assert "so that the terms say" in said(page) and "too much" in said(page)


def test_without_a_row_of_a_term_there_is_no_sum_and_the_term_is_named(page):
    slide(page, ROOT, "batch", 1)
    assert "There is no sum at this position, for want of: sent." in said(page)
    assert readouts(page, ROOT)[0].endswith("–")
    picture = page.locator(f"{ROOT} .rl-labels").text_content()
    assert "=" not in picture and "rest" not in picture and "add up" not in said(page)
    assert set(boxes(page)) == {"weights", "cache", "fewer", "overhead_time"}
    assert "sent –" in " ".join(page.locator(f"{ROOT} .rl-kinds").inner_text().split())


def test_where_nothing_was_measured_there_is_no_mark(page):
    slide(page, ROOT, "batch", 16)
    assert "Nothing was measured at this position." in said(page)
    assert page.locator(f"{ROOT} .rl-measured").count() == 0


@pytest.mark.parametrize("batch", [1, 4, 16])
@pytest.mark.parametrize(("key", "overhead"), [("Home", 0), ("End", 4e-3)])
def test_python_and_the_page_say_the_same(page, batch, key, overhead):
    slide(page, ROOT, "batch", batch)
    end_of(page, "overhead", key)
    label = page.locator(f"{ROOT} svg.rl-plot").get_attribute("aria-label")
    told = explore(step, [], batch=batch, overhead=overhead).summary()
    assert told in label and said(page) in told


@pytest.mark.parametrize("width", [320, 390, 820])
def test_labels_never_collide_wherever_the_sliders_are(open_page, width):
    page = open_page(width=width)
    for batch in (1, 2, 4, 8, 16):
        slide(page, ROOT, "batch", batch)
        for key in ("Home", "PageUp", "End"):
            end_of(page, "overhead", key)
            assert page.evaluate(OVERLAPS, "") == [], (batch, key)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    settle(page)


def test_every_term_is_named_with_its_time_though_the_bar_has_no_room(open_page):
    names = open_page(width=320).locator(f"{ROOT} .rl-kinds").inner_text()
    assert all(name.replace("_", " ") in names for name in _TERMS)

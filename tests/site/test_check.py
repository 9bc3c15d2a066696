"""Self-checks on a page without a kernel: the same rule as in Python, by keyboard, for everybody."""

import itertools

import pytest

from book import cost
from book.drawing import figures, palette
from book.drawing.tables import table
from book.notebook.source import source
from book.roofline import Roof
from book.widgets.self_check import judge, numeric
from tests.site import check_page

CHECKS = [
    numeric(
        "ex-rows",
        question="A linear layer has M = K = N = 8192 at bf16. What is its intensity?",
        answer=8192 / 3,
        unit="FLOP/byte",
        mistakes={
            8192: "You used the limit I = M. It forgets the activations, here as large as the weights.",
            8192 / 6: "A multiply and an add are two operations.",
        },
        right="The limit would have been three times too high.",
        solution="M / (1 + M/K + M/N) = 8192 / 3.\nAll three matrices are of one size.",
    ),
    numeric(
        "ex-time",
        question="How long does an H100 need, at least, to read 16.06 GB?",
        answer=4.794,
        unit="ms",
        tolerance=0.02,
        mistakes={5.147: "You mixed GB and GiB.", 0.2086: "That is the inverse.", 0.004794: "Seconds."},
        hint="Divide bytes by bytes per second.",
    ),
    numeric("ex-sign", question="Below −1?", answer=-4, mistakes={4: "The sign.", -8: "Twice."}),
    numeric(
        "ex-moved",
        question="How many bytes must move?",
        answer=117.477,
        unit="MB",
        tolerance=0.002,
        mistakes={0.11744: "Those are GFLOP.", 58.72: "Count the scales."},
    ),
    numeric(
        "ex-fit",
        question="How many whole sequences fit?",
        answer=52,
        unit="sequences",
        rounding="down",
        mistakes={67: "The engine may not use all.", 208: "Those are GB."},
    ),
    numeric(
        "ex-cards",
        question="How many cards does it need?",
        answer=3,
        unit="cards",
        rounding="up",
        mistakes={1.4: "Both.", 7: "One byte."},
    ),
    numeric(
        "ex-rate",
        question="What can an A100 with 40 GB reach?",
        answer=lambda card: card.bandwidth / 2e10,
        unit="TFLOP/s",
        mistakes={312: "The roof.", 6.2: "Divided."},
    ),
    numeric(
        "ex-share", question="What share?", answer=29.8, unit="%", mistakes={88.6: "Said.", 39.0: "Other."}
    ),
    numeric(
        "ex-times", question="By what factor?", answer=1.33, unit="times", mistakes={2: "All.", 1.5: "Half."}
    ),
    numeric("ex-many", question="How many?", answer=61266, unit="tokens/s", mistakes={900: "a", 7000: "b"}),
]
ALWAYS = {"right", "mistake", "scale", "generic", "unreadable"}
SOMEWHERE = {"near", "slip", "rounding"}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    roof = figures.show(figures.roofline([Roof("H100", 989.4e12, 3.35e12)], alt="A roof."), caption="Roof")
    wide = table([[1e9 + i for i in range(9)]], [f"column {i}" for i in range(9)], caption="Nine numbers")
    around = roof.html + wide._repr_html_() + source(cost.linear)._repr_html_()
    return check_page.write(tmp_path_factory.mktemp("check"), CHECKS, around)


@pytest.fixture
def page(new_context, page_file):
    return check_page.on_a_phone(new_context, page_file)


def answers(payload):
    """Typed answers round everything that a check knows, and what people type besides."""
    targets = [payload["answer"], *(m["value"] for m in payload["mistakes"] + payload["slips"])]
    targets += [payload["answer"] + beyond for beyond in (-1, -0.6, 0.6, 1)] + [1 / payload["answer"]]
    factors = [
        1,
        -1,
        1000,
        1e-3,
        1.02e3,
        0.98e-3,
        10,
        1e12,
        1024,
        *(1 + s * t for s in (-1, 1) for t in (0.004, 0.0099, 0.0101, 0.03, 0.049, 0.11)),
    ]
    numbers = [target * factor for target, factor in itertools.product(targets, factors)]
    typed = [repr(n) for n in numbers] + [f"{n:,.3f}" for n in numbers] + [f"{n:.3e}" for n in numbers]
    units = [f"{n:.6g} {payload['unit']}" for n in numbers]
    parts = [*payload["units"]["parts"], *([payload["units"]["whole"]] if payload["units"]["whole"] else [])]
    spelled = ["/".join(names) for names in itertools.islice(itertools.product(*parts[:2]), 400)]
    spelled += [*payload["units"]["whole"], *parts[0], "GiB/s", "µs", "μs", "parsec", "constructor", "2x"]
    worth = [payload["answer"], payload["answer"] / 1000, 1000 * payload["answer"]]
    units += [f"{n:.6g} {unit}" for n in worth for unit in spelled]
    units += [f"{payload['answer']} {unit.replace('/', ' per ').title()}" for unit in spelled[:40]]
    odd = [
        "",
        " ",
        "0",
        "-0",
        "1e999",
        "4/3",
        "4/0",
        "1,000/750",
        "1e999/2",
        "4/3/2",
        "391.6 ns",
        "1e-999",
        "nan",
        "inf",
        "1_000",
        "0x10",
        "1,2",
        "1.234,5",
        "1,234,567",
        "12,34",
    ]
    more = [
        "−4",
        "+4",
        "٣",
        "4.",
        ".5",
        ".",
        "e3",
        "1e",
        "2 731",
        "2\u202f731",
        "2\u00a0731",
        "$5",
        "{text}",
        "<b>1</b>",
    ]
    return typed + units + odd + more


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_javascript_judges_as_python_does(page, check):
    typed = answers(check.payload)
    said = check_page.judged(page, "check", check.payload, typed)
    kinds = set()
    assert len(typed) < 20_000
    for text, js in zip(typed, said, strict=True):
        verdict = judge(check.payload, text)
        kinds.add(verdict.kind)
        expected = {
            "kind": verdict.kind,
            "status": verdict.status,
            "message": verdict.message,
            "right": verdict.right,
        }
        assert js == expected, f"typed {text!r}"
    assert kinds >= ALWAYS


def test_the_comparison_has_met_every_kind_of_verdict():
    assert {judge(check.payload, text).kind for check in CHECKS for text in answers(check.payload)} == (
        ALWAYS | SOMEWHERE
    )


def test_a_question_is_answered_by_keyboard_alone(page):
    check = page.get_by_role("group", name="A linear layer has")
    feedback = check.get_by_role("status")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == check.get_by_label("Your answer").get_attribute("id")
    assert feedback.inner_text() == ""
    page.keyboard.type("8192")
    page.keyboard.press("Enter")
    assert "Not yet. You used the limit" in feedback.inner_text()
    page.keyboard.press("Control+A")
    page.keyboard.type("2,730.7")
    assert feedback.inner_text() == "", "an old verdict must not stand beside a new answer"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert feedback.inner_text() == "✓ Right. The limit would have been three times too high."
    assert check.get_by_label("Your answer").get_attribute("aria-invalid") == "false"


def test_the_solution_shows_after_one_try_and_not_before(page):
    check = page.get_by_role("group", name="A linear layer has")
    button = check.get_by_role("button", name="Show the solution")
    assert not button.is_visible()
    check.get_by_label("Your answer").fill("many")
    check.get_by_role("button", name="Check").click()
    assert "is not a number" in check.get_by_role("status").inner_text()
    assert not button.is_visible(), "what can't be read is no try"
    check.get_by_label("Your answer").fill("12")
    check.get_by_role("button", name="Check").click()
    button.click()
    assert check.get_by_text("Answer: 2,731 FLOP/byte.").is_visible()
    check.get_by_role("button", name="Hide the solution").click()
    assert not check.get_by_text("Answer: 2,731 FLOP/byte.").is_visible()


def test_what_is_typed_is_text_and_nothing_else(page):
    check = page.get_by_role("group", name="A linear layer has")
    check.get_by_label("Your answer").fill("<img src=x onerror=alert(1)>")
    check.get_by_role("button", name="Check").click()
    assert "“<img src=x onerror=alert(1)>”" in check.get_by_role("status").inner_text()
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_accessible_and_fits_a_phone(page, theme):
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    for name, typed in (("A linear layer", "8192"), ("How long", "4.79"), ("Below", "x")):
        check = page.get_by_role("group", name=name)
        check.get_by_label("Your answer").fill(typed)
        check.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Show the solution").first.click()
    assert check_page.violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_in_a_notebook_it_tells_the_kernel_what_was_answered(page):
    entry, solved = check_page.in_a_notebook(page, CHECKS[0], "el.querySelector('input').value = '2731';")
    assert (entry, solved) == ("2731", True)


@pytest.mark.parametrize("theme", [0, 1])
def test_a_figure_takes_the_colours_of_the_theme(page, theme):
    page.evaluate("theme => document.documentElement.dataset.theme = theme", ["light", "dark"][theme])
    label = page.locator(".rl-figure svg text", has_text="H100")
    red, green, blue = bytes.fromhex(palette.PALETTE["text"][theme][1:])
    assert label.evaluate("node => getComputedStyle(node).fill") == f"rgb({red}, {green}, {blue})"
    assert page.get_by_role("img", name="A roof.").is_visible()

"""Questions with options on a page without a kernel: by keyboard, by thumb, for a screen reader."""

import pytest

from book.widgets.choice import choice, judge
from tests.site import check_page

CHECKS = [
    choice(
        "ex-change",
        question="A decode step waits for weights. Which of these four changes makes it shorter?",
        options={
            "Twice the FLOP/s, the same memory": "The arithmetic already waits. Ask what it waits for.",
            "Weights stored in one byte instead of two": "",
            "Twice the users": "They share the read, which is why it is cheap. It isn't shorter.",
            "A faster processor beside the card": "The floor is between the memory and the card.",
        },
        answer="Weights stored in one byte instead of two",
        right="Half the bytes, half the wait.",
        solution="Only bytes and bandwidth stand in the floor.",
    ),
    choice(
        "ex-offer",
        question="Which of two cards?",
        options={"<b>One</b> & 'two'": "That is <i>markup</i>.", "Two": "Yes, two."},
        answer="Two",
    ),
]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    return check_page.write(tmp_path_factory.mktemp("choice"), CHECKS)


@pytest.fixture
def page(new_context, page_file):
    return check_page.on_a_phone(new_context, page_file)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_javascript_judges_as_python_does(page, check):
    picked = [*(option["text"] for option in check.payload["options"]), "", "two", "{text}"]
    said = check_page.judged(page, "choice", check.payload, picked)
    kinds = set()
    for text, js in zip(picked, said, strict=True):
        verdict = judge(check.payload, text)
        kinds.add(verdict.kind)
        expected = {"kind": verdict.kind, "status": verdict.status, "message": verdict.message}
        assert js == {**expected, "right": verdict.right}, f"picked {text!r}"
    assert kinds == {"right", "mistake", "unreadable"}


def test_a_choice_is_made_by_keyboard_alone(page):
    check = page.get_by_role("group", name="A decode step waits")
    feedback = check.get_by_role("status")
    page.keyboard.press("Tab")
    assert check.get_by_role("radio").first.evaluate("node => node === document.activeElement")
    page.keyboard.press("Enter")
    assert feedback.inner_text() == "Pick one of them first."
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert feedback.inner_text() == "✗ Not yet. The arithmetic already waits. Ask what it waits for."
    page.keyboard.press("ArrowDown")
    assert feedback.inner_text() == "", "an old verdict must not stand beside a new answer"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert feedback.inner_text() == "✓ Right. Half the bytes, half the wait."
    assert check.get_by_role("radio").nth(1).is_checked()


def test_a_screen_reader_hears_one_group_with_the_question_as_its_name(page):
    group = page.get_by_role("radiogroup", name="A decode step waits")
    assert [radio.get_attribute("type") for radio in group.get_by_role("radio").all()] == ["radio"] * 4
    assert group.get_by_role("radio", name="Twice the users").count() == 1


def test_the_whole_row_of_an_option_takes_a_thumb(page):
    check = page.get_by_role("group", name="A decode step waits")
    row = check.locator(".rl-choice-option").nth(2)
    box = row.bounding_box()
    assert box["height"] >= 40
    page.mouse.click(box["x"] + box["width"] - 5, box["y"] + box["height"] / 2)
    check.get_by_role("button", name="Check").click()
    assert "They share the read" in check.get_by_role("status").inner_text()


def test_the_solution_shows_after_one_try_and_not_before(page):
    check = page.get_by_role("group", name="A decode step waits")
    button = check.get_by_role("button", name="Show the solution")
    check.get_by_role("button", name="Check").click()
    assert not button.is_visible(), "nothing picked is no try"
    check.get_by_text("Twice the users").click()
    check.get_by_role("button", name="Check").click()
    button.click()
    assert check.get_by_text("Only bytes and bandwidth stand in the floor.").is_visible()


def test_two_choices_on_a_page_do_not_unpick_each_other(page):
    page.get_by_text("Twice the users").click()
    page.get_by_text("Two", exact=True).click()
    assert page.locator("input:checked").count() == 2


def test_an_option_is_text_and_nothing_else(page):
    page.get_by_text("<b>One</b> & 'two'").click()
    check = page.get_by_role("group", name="Which of two cards?")
    check.get_by_role("button", name="Check").click()
    assert "That is <i>markup</i>." in check.get_by_role("status").inner_text()
    assert page.locator("b, i").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_accessible_and_fits_a_phone(page, theme):
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    for name, text in (("A decode step", "Twice the users"), ("Which of two", "Two")):
        check = page.get_by_role("group", name=name)
        check.get_by_text(text, exact=True).click()
        check.get_by_role("button", name="Check").click()
    assert check_page.violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_in_a_notebook_it_tells_the_kernel_what_was_picked(page):
    entry, solved = check_page.in_a_notebook(page, CHECKS[0], "el.querySelectorAll('input')[1].click();")
    assert (entry, solved) == ("Weights stored in one byte instead of two", True)

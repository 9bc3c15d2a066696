"""Questions with options on a page without a kernel: by keyboard, by thumb, for a screen reader."""

import json

import pytest

from book.drawing import palette
from book.widgets.choice import Choice, choice, judge
from book.widgets.dual_widget import STATIC
from tests.site.built import AXE

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
    folder = tmp_path_factory.mktemp("choice")
    body = "".join(check.static_html() for check in CHECKS)
    styles = palette.css() + (STATIC / "check.css").read_text(encoding="utf-8")
    (folder / "explorer.js").write_bytes((STATIC / "explorer.js").read_bytes())
    look = "body{margin:16px;font-family:sans-serif;background:var(--rl-background);color:var(--rl-text)}"
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Checks</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{styles}{look}</style></head><body><main><h1>Exercises</h1>{body}</main>"
        '<script src="explorer.js"></script></body></html>',
        encoding="utf-8",
    )
    return folder / "page.html"


@pytest.fixture
def page(new_context, page_file):
    """The page opened from disk on a phone; an error in it, or a request that leaves it, fails the test."""
    page = new_context(page_file.parent.as_uri(), viewport={"width": 360, "height": 640}).new_page()
    page.goto(page_file.as_uri())
    return page


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_javascript_judges_as_python_does(page, check):
    picked = [*(option["text"] for option in check.payload["options"]), "", "two", "{text}"]
    said = page.evaluate(
        "([payload, picked]) => picked.map((t) => globalThis.InferenceRoofline.choice.judge(payload, t))",
        [json.loads(json.dumps(check.payload)), picked],
    )
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
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"
    )
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_in_a_notebook_it_tells_the_kernel_what_was_picked(page):
    """anywidget imports `_esm` as a module and hands `render` a model whose changes go to Python."""
    entry, solved = page.evaluate(
        """async ([esm, payload]) => {
            const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
            const widget = (await import(address)).default;
            const state = { kind: "choice", payload, entry: "", solved: false };
            let saved = null;
            const model = {
                get: (name) => state[name], set: (name, value) => { state[name] = value; }, on() {}, off() {},
                save_changes: () => { saved = [state.entry, state.solved]; },
            };
            const el = document.createElement("div");
            document.body.append(el);
            widget.render({ model, el });
            el.querySelectorAll("input")[1].click();
            el.querySelector("form").requestSubmit();
            return saved;
        }""",
        [Choice._esm, json.loads(json.dumps(CHECKS[0].payload))],
    )
    assert (entry, solved) == ("Weights stored in one byte instead of two", True)

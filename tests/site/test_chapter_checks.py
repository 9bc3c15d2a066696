"""Every self-check of every chapter, as it stands on the built page, keeps its promises."""

import ast
import copy
import json
import re
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from book.widgets.choice import choice
from book.widgets.self_check import numeric, problems
from tests.site.built import ROOT, pages

CHAPTERS = [name for name in pages() if name.startswith("chapters/")]
FEWEST_CHECKS, FEWEST_MISTAKES = 4, 2


def payloads(html: str) -> list[dict]:
    """What the checks of a page were given, in its order."""
    soup = BeautifulSoup(html, "html.parser")
    kinds = 'div.rl-live[data-kind="check"], div.rl-live[data-kind="choice"]'
    return [json.loads(div["data-payload"]) for div in soup.select(kinds)]


def complaints(checks: list[dict]) -> list[str]:
    """What a chapter's checks lack: `problems` of each, and too few of them or of known mistakes."""
    found = problems(checks)
    names = {check["id"] for check in checks}
    if len(names) < FEWEST_CHECKS:
        found.append(f"{len(names)} checks; a chapter has at least {FEWEST_CHECKS}.")
    for check in numbers(checks):
        if (known := len(check["mistakes"])) < FEWEST_MISTAKES:
            found.append(f"{check['id']}: {known} known mistakes; at least {FEWEST_MISTAKES}.")
        if len({m["hint"] for m in check["mistakes"]}) < known:
            found.append(f"{check['id']}: two mistakes share a hint.")
    return found


def numbers(checks: list[dict]) -> list[dict]:
    """Those with a number to type; the others have options."""
    return [check for check in checks if "mistakes" in check]


@cache  # three tests read each page
def on_page(site: Path, name: str) -> list[dict]:
    return payloads((site / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_checks_of_a_chapter_accept_the_answer_and_know_each_mistake(site, name):
    assert complaints(on_page(site, name)) == []


def written(cells: list[str]) -> dict[str, int]:
    """How many mistakes each question lists, as its cell is written: equal keys of a dict fall together."""
    return {
        ast.literal_eval(call.args[0]): len(given.value.keys)
        for cell in cells
        if "numeric(" in cell
        for call in ast.walk(ast.parse(cell))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "numeric"
        for given in call.keywords
        if given.arg == "mistakes" and isinstance(given.value, ast.Dict)
    }


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_mistake_is_lost_because_another_one_has_its_value(site, name):
    notebook = json.loads((ROOT / name).with_suffix(".ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    kept = {check["id"]: len(check["mistakes"]) for check in numbers(on_page(site, name))}
    assert {id: kept[id] for id in written(cells)} == written(cells)


def test_mistakes_that_fall_together_are_counted_as_written():
    assert written(['numeric("ex-1", mistakes={2 * 3: "Six.", 6: "Also six.", 7: "Seven."})']) == {"ex-1": 3}


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_check_that_a_chapter_makes_is_on_its_page(site, name):
    notebook = json.loads((ROOT / name).with_suffix(".ipynb").read_text(encoding="utf-8"))
    asked = [
        call
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and re.search(r"\b(numeric|choice)\(", "".join(cell["source"]))
        for call in ast.walk(ast.parse("".join(cell["source"])))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("numeric", "choice")
    ]
    assert len(on_page(site, name)) == len(asked)


def test_no_two_chapters_have_a_check_of_one_name(site):
    names = [check["id"] for name in CHAPTERS for check in on_page(site, name)]
    assert len(names) == len(set(names)) >= FEWEST_CHECKS * len(CHAPTERS)


# ------------------------------------------------------------------ each complaint can be made


@pytest.fixture
def checks() -> list[dict]:
    """Four sound checks, read back from a page."""
    made = [
        numeric(
            f"ex-sound-{n}",
            question="How many?",
            answer=n,
            mistakes={2.5 * n: "Don't count the head's <table>.", n / 3: "That's a third."},
        )
        for n in (7, 8, 9, 11)
    ]
    return payloads("".join(check.static_html() for check in made))


BREAKS = {
    "its own answer 7.0 is refused": lambda c: c[0].update(answer=7.0, tolerance=-1),
    "the mistake 17.5 gets right": lambda c: c[0].update(answer=17.5),
    "the mistake 17.6 gets mistake: Don't": lambda c: c[0]["mistakes"].append({"value": 17.6, "hint": "!"}),
    "two different checks have this name": lambda c: c[1].update(id="ex-sound-7"),
    "3 checks; a chapter has at least 4": lambda c: c.pop(),
    "ex-sound-9: 1 known mistakes": lambda c: c[2]["mistakes"].pop(),
    "ex-sound-8: two mistakes share a hint": lambda c: c[1]["mistakes"][1].update(
        hint=c[1]["mistakes"][0]["hint"]
    ),
}


def test_sound_checks_bring_no_complaint(checks):
    assert [check["answer"] for check in checks] == [7, 8, 9, 11]
    assert complaints(checks) == []


@pytest.mark.parametrize("complaint", BREAKS)
def test_a_broken_check_is_named(complaint, checks):
    broken = copy.deepcopy(checks)
    BREAKS[complaint](broken)
    found = complaints(broken)
    assert any(complaint in sentence for sentence in found), found


def test_a_choice_whose_answer_is_no_option_is_named(checks):
    made = choice("ex-sound-12", question="Which?", options={"One": "No.", "Two": ""}, answer="Two")
    (sound,) = payloads(made.static_html())
    assert complaints([*checks, sound]) == []
    assert complaints([*checks, {**sound, "answer": "Three"}])[0].startswith("ex-sound-12: 0 of its options")

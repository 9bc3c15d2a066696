"""Every self-check of every chapter, as it stands on the built page, keeps its promises."""

import copy
import json
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from book.widgets.self_check import numeric, problems
from tests.site.built import ROOT, pages

CHAPTERS = [name for name in pages() if name.startswith("chapters/")]
FEWEST_CHECKS, FEWEST_MISTAKES = 4, 2


def payloads(html: str) -> list[dict]:
    """What the checks of a page were given, in its order."""
    soup = BeautifulSoup(html, "html.parser")
    return [json.loads(d["data-payload"]) for d in soup.select('div.rl-live[data-kind="check"]')]


def complaints(checks: list[dict]) -> list[str]:
    """What a chapter's checks lack: `problems` of each, and too few of them or of known mistakes."""
    found = problems(checks)
    names = {check["id"] for check in checks}
    if len(names) < FEWEST_CHECKS:
        found.append(f"{len(names)} checks; a chapter has at least {FEWEST_CHECKS}.")
    for check in checks:
        if (known := len(check["mistakes"])) < FEWEST_MISTAKES:
            found.append(f"{check['id']}: {known} known mistakes; at least {FEWEST_MISTAKES}.")
        if len({m["hint"] for m in check["mistakes"]}) < known:
            found.append(f"{check['id']}: two mistakes share a hint.")
    return found


@cache  # three tests read each page
def on_page(site: Path, name: str) -> list[dict]:
    return payloads((site / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_checks_of_a_chapter_accept_the_answer_and_know_each_mistake(site, name):
    assert complaints(on_page(site, name)) == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_check_that_a_chapter_makes_is_on_its_page(site, name):
    notebook = json.loads((ROOT / name).with_suffix(".ipynb").read_text(encoding="utf-8"))
    source = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(on_page(site, name)) == sum(text.count("numeric(") for text in source)


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

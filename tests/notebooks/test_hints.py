"""Wrong answers that readers of chapters 01 to 04 typed, and right ones in other words: what is said."""

from __future__ import annotations

import html
import json
import re
from functools import cache

import pytest

from book.widgets.judging import judge
from tests.notebooks.executed import ROOT, executed

_CHECK = re.compile(r"data-kind=\"check\" data-payload='([^']*)'")
PAGES = {
    "01": "01-roofline",
    "02": "02-linear-layers",
    "03": "03-prefill-and-decode",
    "04": "04-decode-floor",
}


@cache
def checks(page: str) -> dict[str, dict]:
    """The numeric checks of a chapter as its run shows them, by name."""
    shown = [
        "".join(output.get("data", {}).get("text/html", ""))
        for cell in executed(ROOT / "chapters" / f"{page}.ipynb").cells
        for output in cell.get("outputs", ())
    ]
    found = [json.loads(html.unescape(p)) for text in shown for p in _CHECK.findall(text)]
    return {check["id"]: check for check in found}


def said(name: str, answer: str):
    return judge(checks(PAGES[name[3:5]])[name], answer)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ex-02-bytes", "117.48"),
        ("ex-02-bytes", "0.11748 GB"),
        ("ex-03-audit-hbm", "27.8"),
        ("ex-01-copy", "597"),
    ],
)
def test_a_right_answer_is_right_in_another_unit_too(name, answer):
    assert said(name, answer).right


@pytest.mark.parametrize(
    ("name", "answer", "names"),
    [
        ("ex-02-bytes", "117.44", "weight alone"),
        ("ex-03-audit-hbm", "29.8", "input table"),
        ("ex-03-audit-prompt", "629", "8.03 billion"),
        ("ex-03-critical", "114.6", "last chapter"),
        ("ex-03-prefill-time", "110.8", "8.03 billion"),
        ("ex-04-floor", "53.5", "input table"),
    ],
)
def test_a_mistake_that_a_chapter_teaches_is_named(name, answer, names):
    verdict = said(name, answer)
    assert verdict.kind == "mistake"
    assert names in verdict.message


@pytest.mark.parametrize(
    ("name", "answer"), [("ex-01-copy", "320.5"), ("ex-01-attainable", "335"), ("ex-01-attainable", "100")]
)
def test_units_are_not_blamed_for_another_mistake(name, answer):
    verdict = said(name, answer)
    assert not verdict.right
    assert "units once more" not in verdict.message

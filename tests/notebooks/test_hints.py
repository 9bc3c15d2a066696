"""Wrong answers that readers typed into the chapters, and right ones in other words: what is said."""

from __future__ import annotations

import html
import json
import re
from functools import cache

import pytest

from book import catalog
from book.widgets.judging import judge
from tests.notebooks.executed import ROOT, executed

_CHECK = re.compile(r"data-kind=\"check\" data-payload='([^']*)'")
PAGES = {path.stem[:2]: path.stem for path in sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))}


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
        ("ex-01-copy", "0.597 ms"),
        ("ex-02-rows", "230 tokens"),
        ("ex-04-critical", "281 sequences"),
        ("ex-05-long", "16 GiB"),
        ("ex-07-fp8-cache", "4/3"),
        ("ex-09-predict", "0.0165 s"),
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
        ("ex-05-kappa", "2097152", "query heads"),
        ("ex-05-long", "68.7", "query heads"),
        ("ex-06-8b", "8", "70B"),
        ("ex-06-floor", "320", "H100"),
        ("ex-07-fp8-cache", "1.5", "one over the time"),
        ("ex-08-fused", "4096", "left K and V out"),
        ("ex-08-batch", "150.8", "decode"),
        ("ex-09-predict", "12", "multiplied by the efficiency"),
        ("ex-09-tpot", "29.75", "prefill"),
    ],
)
def test_a_mistake_that_a_chapter_teaches_is_named(name, answer, names):
    verdict = said(name, answer)
    assert verdict.kind == "mistake"
    assert names in verdict.message


@pytest.mark.parametrize(
    ("name", "answer"), [("ex-02-rows", "229"), ("ex-03-critical", "103"), ("ex-04-critical", "282")]
)
def test_a_whole_number_on_the_wrong_side_is_not_right(name, answer):
    assert said(name, answer).kind == "rounding"


def test_rounded_digits_with_another_prefix_meet_a_hint_about_it():
    verdict = said("ex-02-bytes", "0.1175")
    assert (verdict.kind, "about 1,000 times too small" in verdict.message) == ("scale", True)


@pytest.mark.parametrize(("name", "answer"), [("ex-02-time", "391.6 ns"), ("ex-01-copy", "597 ns")])
def test_a_prefix_typed_in_full_meets_no_hint_about_another_one(name, answer):
    assert said(name, answer).kind == "scale"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ex-03-batch", "49.6"),
        ("ex-03-prefill-time", "160.6"),
        ("ex-01-attainable", "381"),
        ("ex-01-copy", "262.5"),
        ("ex-04-floor", "19.4"),
        ("ex-02-time", "151.9"),
        ("ex-04-users", "2920"),
        ("ex-01-fp8", "306"),
        ("ex-04-critical", "153"),
    ],
)
def test_no_card_is_named_on_which_the_answer_would_be_another(name, answer):
    assert said(name, answer).kind == "generic"


@pytest.mark.parametrize(
    ("name", "id", "answer"),
    [
        ("ex-01-attainable", "h200_sxm", lambda card: 50 * card.bandwidth / 1e12),
        ("ex-01-fp8", "h200_sxm", lambda card: card.peak("fp8") / card.bandwidth),
        ("ex-03-prefill-time", "b200", lambda card: 2 * 6.98e9 * 4096 / (0.6 * card.peak("bf16")) * 1e3),
        ("ex-04-users", "b200", lambda card: 32 * card.bandwidth / 69.5e9),
        ("ex-06-floor", "b200", lambda card: 1.0747e15 / card.bandwidth),
    ],
)
def test_a_card_is_named_on_which_the_answer_is_right(name, id, answer):
    card = catalog.accelerator(id)
    assert said(name, str(answer(card))).message.startswith(f"On the {card.short_name} this")


@pytest.mark.parametrize(
    ("name", "answer"), [("ex-01-copy", "320.5"), ("ex-01-attainable", "335"), ("ex-01-attainable", "100")]
)
def test_units_are_not_blamed_for_another_mistake(name, answer):
    verdict = said(name, answer)
    assert not verdict.right
    assert "units once more" not in verdict.message

"""The ledger of numbers in circulation: every row recomputed, every verdict held against its numbers."""

import re

import pytest

from book import claims
from book.claims.claim import Claim, right, wrong
from book.claims.ledger import row
from book.claims.printed import Quantity, quantity
from book.site.contents import chapters

ALL = {claim.id: claim for claim in claims.claims()}
CHAPTERS = [f"{chapter.number:02}" for chapter in chapters()]

# Numbers of the chapters, typed here a second time: neither a formula nor a card can move unseen.
KNOWN = {
    "ridge-h100": 295.34,
    "intensity-is-m-large": 2730.7,
    "rows-to-ridge": 318.3,
    "fp8-doubles-critical-batch": 295.4,
    "profile-hbm": 0.298,
    "profile-bytes": 47.8e9,
    "profile-prompt": 629,
    "profile-mean": 0.0248,
    "floor-70b": 42.12e-3,
    "rate-8b": 223.2,
    "kappa-405b": 516_096,
    "kappa-head-dim": 262_144,
    "copied-95ms": 102.6e-3,
    "h200-sequences": 38,  # of the memory that a program sees, not of the label
    "decode-intensity-8b": 4,
    "crossover-70b": 13_457,
    "batch-never-ends": 312,
    "ttft-8k": 150.8e-3,
    "ttft-linear": 6.68,
    "fused-1024": 1638.4,
    "law-overhead": 6.3e-3,
    "ridge-t4": 203.1,
    "compute-b200": 7.21,
    "bandwidth-b200": 3.92,
    "rows-to-ridge-16384": 306.4,
    "prefill-past-ridge": 6.93,
    "decode-idle": 0.99661,
    "users-64": 1519,
    "tp8-bytes": 17.64e9,
    "gpt-fast-bytes": 1386e9,
    "kappa-llama2": 524_288,
    "copied-bytes": 343.6e9,
    "attention-floor-h100": 321e-6,
    "attention-floor-h200": 224e-6,
    "attention-one-sequence": 16.38e-6,
    "crossover-70b-1": 430_626,
    "ceiling-8b-32k": 780,
    "linear-8k": 131.6e12,
    "attention-8k": 17.6e12,
    "attention-half-70b": 107_656,
    "step-floor-2": 10.67e-3,
    "law-slope-h200": 1.04,
    "law-slope-trt": 1.07,
}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_verdict_is_what_the_numbers_say(chapter):
    mine = [claim for claim in ALL.values() if claim.chapter == chapter]
    assert [(c.id, c.verdict) for c in mine] == [(c.id, c.judged()) for c in mine]
    assert {c.verdict for c in mine} == {"right", "wrong"}, "a chapter has claims of both kinds"


def test_the_slip_yields_the_printed_number_and_not_the_true_one():
    for claim in ALL.values():
        if claim.slip:
            assert claim.slip() == pytest.approx(claim.number, rel=0.005), claim.id
            if claim.verdict == "wrong":
                assert claim.slip() != pytest.approx(claim.exact(), rel=0.01), claim.id


def test_the_numbers_of_the_chapters_are_what_the_expressions_give():
    assert {id: ALL[id].exact() for id in KNOWN} == pytest.approx(KNOWN, rel=1e-3)


def test_every_row_says_what_it_computes_and_why():
    for claim in ALL.values():
        assert claim.expression() and claim.why.endswith("."), claim.id
    assert ALL["ridge-h100"].expression() == 'card("h100_sxm").ridge("bf16")'
    assert ALL["profile-mean"].expression().startswith("(0.824 * 0.0124 + 128")


# ------------------------------------------------------------------ what people print


@pytest.mark.parametrize(
    ("text", "number", "unit", "above"),
    [
        ("295 FLOP/byte", 295, "FLOP/byte", False),
        ("1,979 TFLOP/s", 1.979e15, "FLOP/s", False),
        ("1,397 GB/s", 1.397e12, "B/s", False),
        ("42.1 ms", 0.0421, "s", False),
        ("321 µs", 321e-6, "s", False),
        ("140 GB", 140e9, "B", False),
        ("131,072 B", 131072, "byte", False),
        ("88.6 %", 0.886, "%", False),
        ("8 times", 8, "", False),
        ("1.04", 1.04, "", False),
        ("about 200 rows", 200, "rows", False),
        ("more than 100 %", 1, "%", True),
        ("a dozen", None, "", False),
    ],
)
def test_a_printed_number_is_read_back_in_si_units(text, number, unit, above):
    assert quantity(text) == Quantity(number, unit, above)


# ------------------------------------------------------------------ one claim


def made(**changes) -> Claim:
    return right(
        **{"id": "a", "statement": "S", "printed": "295", "exact": lambda: 295.3, "why": "W."} | changes
    )


def test_a_claim_is_judged_by_its_tolerance_or_by_exceeding():
    assert made().judged() == "right"
    assert made(printed="330").judged() == "wrong", "a wrong number would be noticed"
    assert made(printed="330", tolerance=0.2).judged() == "right"
    assert made(printed="more than 290").judged() == made(printed="290", above=True).judged() == "right"
    assert made(printed="more than 300").judged() == "wrong"


def test_a_printed_text_without_a_number_needs_one():
    with pytest.raises(ValueError, match="claim 'a': printed = 'a dozen': holds no number; give number="):
        made(printed="a dozen")
    assert made(printed="a dozen", number=12).number == 12


def test_an_id_that_is_used_twice_is_refused(monkeypatch):
    from book.claims import ch01_roofline

    claims.claims.cache_clear()
    monkeypatch.setattr(ch01_roofline, "CLAIMS", ch01_roofline.CLAIMS + (made(id="kappa-8b"),))
    with pytest.raises(ValueError, match="claim 'kappa-8b': ch05_kv_cache has it again"):
        claims.claims()


# ------------------------------------------------------------------ the table


def test_the_table_shows_every_claim_with_both_numbers():
    shown = claims.table().html
    assert shown.count("<tr>") == len(ALL) + 1
    assert "95 ms" in shown and "102.6 ms" in shown
    assert "516,096 B" in shown and "29.8 %" in shown
    assert len(re.findall("class=.trap.>wrong", shown)) == sum(c.verdict == "wrong" for c in ALL.values())


def test_the_table_of_one_chapter():
    assert claims.table("05").html.count("<tr>") == sum(c.chapter == "05" for c in ALL.values()) + 1
    with pytest.raises(ValueError, match="chapter = '99'.*01, 02"):
        claims.table("99")


def test_the_place_where_a_number_was_seen_stands_beside_the_reason():
    claim = wrong("a", "S", "2", lambda: 1 + 2, "It is three.", where="a talk of 2024")
    *_, exact, verdict, why = row(claim)
    assert ">It is three. Seen: a talk of 2024<" in why.html
    assert 'title="1 + 2"' in exact.html and verdict.key == "wrong"

"""The ledger of numbers in circulation: every row recomputed, every verdict held against its numbers."""

import re

import pytest

from book import claims
from book.claims.claim import PLACES, Claim, right, wrong
from book.claims.ledger import row
from book.claims.printed import Quantity, quantity
from book.site.contents import chapters

ALL = {claim.id: claim for claim in claims.claims()}
CHAPTERS = [f"{chapter.number:02}" for chapter in chapters()]


def test_every_verdict_is_what_the_numbers_say():
    assert {c.id: c.verdict for c in ALL.values()} == {c.id: c.judged() for c in ALL.values()}
    assert {c.verdict for c in ALL.values()} == {"right", "wrong"}
    assert {c.chapter for c in ALL.values()} <= set(CHAPTERS)


def test_every_number_was_seen_somewhere():
    assert len(ALL) >= 40
    assert [c.id for c in ALL.values() if c.seen not in PLACES] == []
    linked = [c for c in ALL.values() if c.link]
    assert len(linked) >= 40 and len({c.link for c in linked}) >= 20


def test_a_number_that_nobody_has_seen_is_not_in_circulation(monkeypatch):
    from book.claims import ch01_roofline

    claims.claims.cache_clear()
    monkeypatch.setattr(ch01_roofline, "CLAIMS", (made(),))
    with pytest.raises(ValueError, match="doesn't say where it was seen"):
        claims.claims()


def test_a_place_is_one_of_a_few_and_an_address_is_whole():
    with pytest.raises(ValueError, match="seen = 'a dream': no kind of place; use one of blog"):
        made(seen="a dream")
    with pytest.raises(ValueError, match="link = 'example.org': give a whole address"):
        made(seen="blog", link="example.org")


def test_the_slip_yields_the_printed_number_and_not_the_true_one():
    for claim in ALL.values():
        if claim.slip:
            assert claim.slip() == pytest.approx(claim.number, rel=0.005), claim.id
            if claim.verdict == "wrong":
                assert claim.slip() != pytest.approx(claim.exact(), rel=0.01), claim.id


def test_every_row_says_what_it_computes_and_why():
    for claim in ALL.values():
        assert claim.expression() and claim.why.endswith("."), claim.id
    assert ALL["ridge-h100"].expression() == 'card("h100_sxm").ridge("bf16")'
    assert ALL["mfu-sparse"].expression() == '480e12 / card("h100_sxm").peak("bf16")'


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
    megabyte = {"exact": lambda: 0.82e6}
    assert made(printed="1 MB", **megabyte).judged() == "right", "to the digit that is printed"
    assert made(printed="1.0 MB", **megabyte).judged() == "wrong"
    assert made(printed="more than 290").judged() == made(printed="290", above=True).judged() == "right"
    assert made(printed="more than 300").judged() == "wrong"


def test_a_printed_text_without_a_number_needs_one():
    with pytest.raises(ValueError, match="claim 'a': printed = 'a dozen': holds no number; give number="):
        made(printed="a dozen")
    assert made(printed="a dozen", number=12).number == 12


def test_an_id_that_is_used_twice_is_refused(monkeypatch):
    from book.claims import ch01_roofline

    claims.claims.cache_clear()
    again = made(id="kappa-8b", seen="blog")
    monkeypatch.setattr(ch01_roofline, "CLAIMS", ch01_roofline.CLAIMS + (again,))
    with pytest.raises(ValueError, match="claim 'kappa-8b': ch05_kv_cache has it again"):
        claims.claims()


# ------------------------------------------------------------------ the table


def test_the_table_shows_every_claim_with_both_numbers_wrong_ones_first():
    shown = claims.table().html
    assert shown.count("<tr") == len(ALL) + 1
    assert "123.05 GB" in shown and "66.06 GB" in shown
    assert "327,680 B" in shown and "27.8 %" in shown
    verdicts = re.findall(r'data-name="verdict" data-key="(\w+)"', shown)
    assert verdicts == sorted(verdicts, reverse=True) and len(verdicts) == len(ALL)
    assert verdicts.count("wrong") == sum(c.verdict == "wrong" for c in ALL.values())


def test_each_row_can_be_linked_to_and_links_to_where_it_was_seen():
    shown = claims.table().html
    for claim in ALL.values():
        assert f'<tr id="claim-{claim.id}">' in shown and f'href="#claim-{claim.id}"' in shown
        assert not claim.link or f'href="{claim.link}"' in shown


def test_the_table_of_one_chapter():
    assert claims.table("05").html.count("<tr") == sum(c.chapter == "05" for c in ALL.values()) + 1
    with pytest.raises(ValueError, match="chapter = '99'.*01, 02"):
        claims.table("99")


def test_the_place_where_a_number_was_seen_stands_in_its_row():
    claim = wrong("a", "S", "2", lambda: 1 + 2, "It is three.", seen="forum", link="https://example.org/a")
    verdict, _, _, exact, why, seen = row(claim)
    assert seen.html == '<a href="https://example.org/a">a forum</a>'
    assert "It is three." in why.html
    assert "<code>1 + 2</code>" in exact.html and verdict.key == "wrong"

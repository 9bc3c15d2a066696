"""The ledger of numbers in circulation: every row recomputed, every broken row refused."""

import re

import pytest
import yaml

from book import claims
from book.catalog import CatalogError
from book.claims.ledger import PATH

ALL = claims.claims()
SLIPPED = [c for c in ALL if c.slip]


@pytest.mark.parametrize("claim", ALL, ids=lambda c: c.id)
def test_the_exact_value_is_what_its_expression_gives(claim):
    assert claim.expression() == pytest.approx(claim.exact, rel=1e-6)


@pytest.mark.parametrize("claim", ALL, ids=lambda c: c.id)
def test_the_verdict_is_what_the_numbers_say(claim):
    assert claim.judged() == claim.verdict


@pytest.mark.parametrize("claim", SLIPPED, ids=lambda c: c.id)
def test_the_slip_yields_the_printed_number(claim):
    assert claim.slip() == pytest.approx(claim.printed, rel=0.005)


def test_a_slip_is_not_the_truth():
    wrong = [c for c in SLIPPED if c.verdict == "wrong"]
    assert len(wrong) >= 15
    for claim in wrong:
        assert claim.slip() != pytest.approx(claim.expression(), rel=0.01), claim.id


# Numbers of the chapters, typed here a second time: the ledger can't move away from them unseen.
@pytest.mark.parametrize(
    ("id", "exact"),
    [
        ("ridge-h100", 295.34),
        ("intensity-is-m-large", 2730.7),
        ("rows-to-ridge", 318.3),
        ("fp8-doubles-critical-batch", 295.4),
        ("profile-hbm", 0.298),
        ("profile-bytes", 47.8e9),
        ("profile-prompt", 629),
        ("profile-mean", 0.0248),
        ("floor-70b", 42.12e-3),
        ("rate-8b", 223.2),
        ("kappa-405b", 516_096),
        ("kappa-head-dim", 262_144),
        ("copied-95ms", 102.6e-3),
        ("h200-sequences", 33),
        ("decode-intensity-8b", 4),
        ("crossover-70b", 13_457),
        ("batch-never-ends", 312),
        ("ttft-8k", 150.8e-3),
        ("ttft-linear", 6.68),
        ("fused-1024", 1638.4),
        ("law-overhead", 6.3e-3),
        ("ridge-t4", 203.1),
        ("compute-b200", 7.21),
        ("bandwidth-b200", 3.92),
        ("rows-to-ridge-16384", 306.4),
        ("prefill-past-ridge", 6.93),
        ("decode-idle", 0.99661),
        ("users-64", 1519),
        ("tp8-bytes", 17.64e9),
        ("gpt-fast-bytes", 1386e9),
        ("kappa-llama2", 524_288),
        ("copied-bytes", 343.6e9),
        ("attention-floor-h100", 321e-6),
        ("attention-floor-h200", 224e-6),
        ("attention-one-sequence", 16.38e-6),
        ("crossover-70b-1", 430_626),
        ("ceiling-8b-32k", 780),
        ("linear-8k", 131.6e12),
        ("attention-8k", 17.6e12),
        ("attention-half-70b", 107_656),
        ("step-floor-2", 10.67e-3),
        ("law-slope-h200", 1.04),
        ("law-slope-trt", 1.07),
    ],
)
def test_the_chapters_numbers(id, exact):
    (claim,) = (c for c in ALL if c.id == id)
    assert claim.exact == pytest.approx(exact, rel=1e-3)


def test_every_chapter_has_claims_of_both_kinds():
    for chapter in (f"{n:02}" for n in range(1, 10)):
        verdicts = {c.verdict for c in ALL if c.chapter == chapter}
        assert verdicts == {"right", "wrong"}, chapter


def test_every_expression_is_used():
    used = {e.name for c in ALL for e in (c.expression, c.slip) if e}
    assert used == set(claims.EXPRESSIONS)


def test_the_table_shows_every_claim_with_both_numbers():
    shown = claims.table().html
    assert shown.count("<tr>") == len(ALL) + 1
    assert "95 ms" in shown and "102.6 ms" in shown
    assert "516,096 B" in shown and "29.8 %" in shown
    assert len(re.findall("class=.trap.>wrong", shown)) == sum(c.verdict == "wrong" for c in ALL)


def test_the_table_of_one_chapter():
    assert claims.table("05").html.count("<tr>") == sum(c.chapter == "05" for c in ALL) + 1
    with pytest.raises(ValueError, match="chapter = '99'.*01, 02"):
        claims.table("99")


def edited(tmp_path, **changes):
    document = yaml.safe_load(PATH.read_text())
    document["claims"] = [document["claims"][1] | changes]
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_wrong_number_would_be_noticed(tmp_path):
    (claim,) = claims.claims(edited(tmp_path, printed=330))
    assert (claim.judged(), claim.verdict) == ("wrong", "right")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expression": "ridgee"}, "ridge-h100: expression = 'ridgee': no such.*ridge"),
        ({"expression": "__import__('os')"}, "no such expression"),
        ({"inputs": {"card": "t4"}}, "inputs = .*takes accelerator, dtype"),
        ({"verdict": "perhaps"}, "verdict = 'perhaps'.*right, wrong"),
        ({"printed": "295"}, "printed = '295': not a number"),
        ({"exakt": 3}, "exakt = 3: unknown field; did you mean exact"),
    ],
)
def test_a_broken_row_is_named_with_the_remedy(tmp_path, changes, message):
    with pytest.raises(CatalogError, match=message):
        claims.claims(edited(tmp_path, **changes))

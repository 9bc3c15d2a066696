"""The book's own numbers, computed again; the best known ones typed twice."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "own_numbers"
ALL = {
    claim.id: claim
    for path in sorted(FOLDER.glob("ch*.py"))
    for claim in importlib.import_module(f"tests.book.own_numbers.{path.stem}").CLAIMS
}

# Numbers of the chapters, typed here a second time: neither a formula nor a card can move unseen.
KNOWN = {
    "ridge-h100": 295.34,
    "intensity-is-m-large": 2730.7,
    "rows-to-ridge": 318.3,
    "fp8-doubles-critical-batch": 295.4,
    "floor-70b": 41.49e-3,
    "rate-8b": 223.2,
    "kappa-405b": 516_096,
    "kappa-head-dim": 262_144,
    "copied-95ms": 102.6e-3,
    "h200-sequences": 38,  # of the memory that a program sees, not of the label
    "decode-intensity-8b": 4,
    "crossover-70b": 13_257,
    "batch-never-ends": 312,
    "ttft-8k": 133.4e-3,
    "ttft-linear": 6.68,
    "fused-1024": 1638.4,
    "law-overhead": 5.02e-3,
    "ridge-t4": 203.1,
    "compute-b200": 7.21,
    "bandwidth-b200": 3.92,
    "rows-to-ridge-16384": 306.4,
    "prefill-past-ridge": 6.93,
    "decode-idle": 0.99661,
    "users-64": 1542,
    "tp8-bytes": 17.64e9,
    "tp8-read": 17.38e9,
    "gpt-fast-bytes": 1386e9,
    "kappa-llama2": 524_288,
    "copied-bytes": 343.6e9,
    "attention-floor-h100": 321e-6,
    "attention-floor-h200": 224e-6,
    "attention-one-sequence": 16.38e-6,
    "crossover-70b-1": 424_213,
    "ceiling-8b-32k": 780,
    "linear-8k": 131.6e12,
    "attention-8k": 17.6e12,
    "attention-half-70b": 107_656,
    "step-floor-2": 10.67e-3,
    "law-slope": 1.039,
    "split-tables": 0.587e-3,
    "others-prompts": 13.52e-3,
}


def test_every_verdict_is_what_the_numbers_say():
    assert len(ALL) > 100
    assert {c.id: c.verdict for c in ALL.values()} == {c.id: c.judged() for c in ALL.values()}


def test_no_number_of_the_book_is_called_one_in_circulation():
    assert [c.id for c in ALL.values() if c.seen] == []


def test_the_numbers_of_the_chapters_are_what_the_expressions_give():
    assert {id: ALL[id].exact() for id in KNOWN} == pytest.approx(KNOWN, rel=1e-3)

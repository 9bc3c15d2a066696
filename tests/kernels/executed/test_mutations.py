"""What the race detector misses when a synchronisation is gone, held as a table (`mutations`)."""

from __future__ import annotations

import json
import os
from importlib.metadata import version

import pytest

from tests.kernels.compiling import told
from tests.kernels.executed import mutations

STORED = json.loads(mutations.TABLE.read_text(encoding="utf-8"))
CHOSEN = mutations.CASES if os.environ.get("EVERY_CHIP") else mutations.QUICK
REGENERATE = "look at it, then: python -m tests.kernels.executed.mutations --write"
WATCHED = [kind for kind in mutations.KINDS if kind not in mutations.NOT_WATCHED]


@pytest.fixture(scope="module")
def made():
    """The table of the chosen cases, made now in a process that compiles."""
    return told("-m", "tests.kernels.executed.mutations", "--only", ",".join(CHOSEN))["cases"]


def entries(cases):
    for case, kernels in cases.items():
        for kernel, kinds in kernels.items():
            for kind, entry in kinds.items():
                yield f"{case} {kernel}", kind, entry


@pytest.mark.parametrize("case", CHOSEN)
def test_what_is_missed_is_what_the_table_says(made, case):
    if version("triton") != STORED["triton"]:
        pytest.skip(f"the table is of Triton {STORED['triton']}, whose code has its own synchronisations")
    assert made[case] == STORED["cases"][case], f"another table of {case}: {REGENERATE}"


def test_the_table_has_every_case():
    assert list(STORED["cases"]) == mutations.CASES, REGENERATE


def test_detector_and_brute_force_agree_on_every_barrier(made):
    for where, kind, entry in entries(made):
        assert "against brute force" not in entry, (where, kind, entry["against brute force"])


def test_everything_not_missed_has_a_reason():
    for where, kind, entry in entries(STORED["cases"]):
        assert len(entry["not missed"]) == entry["there"] - entry["missed"], (where, kind)
        assert all(line and reason for line, reason in entry["not missed"]), (where, kind)


def test_most_of_what_is_watched_is_missed_and_hardly_any_of_it_changes_a_result():
    watched = [
        one for where, kind, one in entries(STORED["cases"]) if kind in WATCHED and "sm_100" not in where
    ]
    there, missed, changes = (sum(one[name] for one in watched) for name in ("there", "missed", "changes"))
    assert missed > 3 / 4 * there
    assert changes < missed / 4, "numbers would find what a detector isn't needed for"

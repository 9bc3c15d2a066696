"""The imaginary card, in a process whose Triton compiles."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kernels.contract.processes import ROOT
from kernels.evidence import child_process

TWO_CARDS = """
import json
from kernels.contract.targets import target
from kernels.evidence.executed.execution import execute
from kernels.linear import experiment
sizes = {"m": 16, "k": 1024, "n": 64}
chip, both = target("sm_90"), ({}, {"count": False})
cards = [execute(experiment, chip, "bf16", sizes, **options)[0] for options in both]
print(json.dumps([[(one.label, one.outcome.counts is None) for one in card.launched] for card in cards]))
"""


@pytest.fixture
def compiling():
    """Runs a program in a process whose Triton compiles; returns what it printed, read as JSON."""

    def run(program: str):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=child_process.environment(interpret=False),
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return run


def test_a_kernel_that_was_compiled_for_one_card_reports_to_the_card_that_it_runs_on(compiling):
    first, second = compiling(TWO_CARDS)
    assert [label for label, _ in first] == [label for label, _ in second] and len(first) == 2
    assert [silent for _, silent in first] == [False, False]
    assert [silent for _, silent in second] == [True, True], "each card has its own options"

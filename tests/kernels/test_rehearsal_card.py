"""`rehearsal.card`: what an imaginary card is told of launches, and how long each takes there."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from book import roofline
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.executed.races import UNFENCED
from kernels.evidence.rehearsal.card import RehearsalClock
from kernels.evidence.rehearsal.stream import Costs
from kernels.evidence.timed.clocks import GraphClock
from kernels.evidence.timed.launched import OneRun
from kernels.measure.rehearsal import Rehearsal
from tests.kernels.toy import experiment as toy

US = 1e-6
SIZES = {"m": 16, "k": 8192, "n": 8192}


@pytest.fixture
def card():
    return Rehearsal("sm_90", costs=Costs(noise=0.0, resolution=0.0)).card()


def seconds(card, work):
    return RehearsalClock(card, GraphClock(card.gpu)).time(work, 0.01).seconds


@pytest.mark.parametrize("launches", [1, 3])
def test_the_launches_of_a_run_take_the_time_of_its_formula_and_each_a_start(card, launches):
    tensors = {"x_ptr": torch.empty(4)}
    run = dataclasses.replace(toy, run=lambda: [card._starts("part", tensors) for _ in range(launches)])
    cost = toy.formula("bf16", **SIZES)
    floor = roofline.time(cost.flops, cost.bytes, card.row.peaks["bf16"], card.row.bandwidth)
    true = floor / card.truth.kernels + launches * card.truth.start
    assert seconds(card, OneRun(run, {}, "bf16", SIZES)) == pytest.approx(true, rel=0.01)


def test_a_launch_of_no_run_moves_its_tensors_once(card):
    x, y = torch.empty(2**24), torch.empty(2**24)
    work = lambda: card._starts("copy", {"x_ptr": x, "y_ptr": y, "again_ptr": x})  # noqa: E731
    true = 2 * x.nbytes / (card.truth.kernels * card.row.bandwidth) + card.truth.start
    assert seconds(card, work) == pytest.approx(true, rel=0.01)


def test_an_operation_of_torch_takes_the_longer_of_moving_and_computing(card):
    x = torch.empty(2**12, 2**12, dtype=torch.bfloat16)
    peak = card.truth.torch * card.row.peaks["bf16"]
    assert seconds(card, lambda: x @ x) == pytest.approx(2 * 2**36 / peak + card.truth.start, rel=0.01)
    moving = 2 * x.nbytes / card.gpu.bandwidth
    assert seconds(card, lambda: x + 1) == pytest.approx(moving + card.truth.start, rel=0.01)


def test_only_while_a_clock_times_is_nothing_executed(card):
    tensors = {"x_ptr": torch.empty(4)}
    assert card._starts("part", tensors)
    with card.timing():
        assert not card._starts("part", tensors)
    assert card._starts("part", tensors)
    assert [one.label for one in card.gpu.launched] == ["part"] * 3, "and of each the stream is told"


def test_a_work_that_fails_leaves_the_card_as_it_was(card):
    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        seconds(card, OneRun(dataclasses.replace(toy, run=fails), {}, "bf16", SIZES))
    assert card._starts("part", {"x_ptr": torch.empty(4)})


def test_a_race_is_raised_and_a_fence_that_triton_left_out_is_not(card):
    def ended(*races):
        card._launched = [1]
        card._ended(SimpleNamespace(label="part", outcome=SimpleNamespace(races=races)))

    ended(f"a store {UNFENCED} before it")
    assert card._launched == []
    with pytest.raises(PhysicsDisagrees, match="part: 1 data races, the first: a store by"):
        ended("a store by two programs")

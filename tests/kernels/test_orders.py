"""kernels.evidence.counted: an experiment runs in two orders of its programs, and both must agree."""

from dataclasses import replace

import pytest
import torch

from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence import counted
from kernels.evidence.counted.orders import counts_differ, results_differ
from tests.kernels import racing_kernels as made
from tests.kernels.toy import experiment, toy

SIZES = {"m": 3, "k": 16, "n": 20}


def _ran(*after):
    """The toy's product, and then these launches on it."""

    def run(x, w):
        y = toy(x, w)
        for launch in after:
            launch(y)
        return y

    return counted.run(replace(experiment, run=run), **SIZES)


def test_a_right_kernel_agrees_with_itself_in_both_orders():
    row = _ran()
    assert row.race == row.disagreement == ""
    row.check(experiment)


def test_a_race_fails_the_check_with_its_sentence():
    row = _ran(lambda y: made.last_one_stays_kernel[(3,)](y.float()))
    with pytest.raises(PhysicsDisagrees, match=r"toy \(m = 3.*program 1 writes y'?\[0, 0\], which 0 of the"):
        row.check(experiment)


def _first_stays(y):
    made.first_one_stays_kernel[(3,)](torch.zeros(1, dtype=torch.int32), y.view(-1)[5:])


def test_a_result_that_depends_on_the_order_is_named_by_tensor_and_element_also_without_a_race():
    row = _ran(_first_stays)
    assert row.race == ""
    assert row.disagreement.startswith("y[0, 5] is 1 when the programs run in order, and 3 when they run in")
    assert "1 of the 60 numbers differ" in row.disagreement
    with pytest.raises(PhysicsDisagrees, match="when they run in reverse"):
        row.check(experiment)


def test_counts_that_depend_on_the_order_are_named():
    def run(order):
        with counted.count(order=order) as tally:
            ticket = torch.zeros(1, dtype=torch.int32)
            made.greedy_kernel[(2,)](torch.ones(16), ticket, torch.empty(2), BLOCK=16)
        return tally

    said = counts_differ(run("in order"), run("reversed"))
    assert said.startswith(
        "unique bytes read of x: 64 when the programs run in order, and 4 when they run in"
    )
    assert counts_differ(run("in order"), run("in order")) == ""


def test_atomics_that_add_numbers_in_another_order_agree_within_the_tolerance_and_not_bit_by_bit():
    x = torch.rand(8 * 64, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 3, 512)
    sums = []
    for order in ("in order", "reversed"):
        y = torch.zeros(64)
        with counted.count(order=order) as tally:
            made.atomic_sum_kernel[(8,)](x, y, BLOCK=64, SEM="relaxed")
        sums.append(y)
    assert tally.atomics == 512
    assert results_differ(["y"], sums[:1], sums[1:], allowed=0.0).startswith("y[")
    assert results_differ(["y"], sums[:1], sums[1:], allowed=experiment.tolerance("fp32")) == ""


def test_a_number_that_is_nan_in_both_orders_agrees():
    nan = torch.full((3,), float("nan"))
    assert results_differ(["y"], [nan], [nan.clone()], allowed=0.0) == ""


@pytest.mark.parametrize("order", ["in order", "reversed", 3])
def test_in_any_order_every_program_runs_once(order):
    x, y = torch.rand(60), torch.empty(60)
    with counted.count(order=order) as tally:
        made.copy_kernel[(3, 2)](x, y, 60, AGAIN=1, OVERLAP=0, BLOCK=32)
    assert tally.programs == 6
    with counted.count(order=order) as tally:
        made.copy_kernel[(4,)](x, y, 60, AGAIN=1, OVERLAP=0, BLOCK=16)
    assert torch.equal(x, y) and tally.race == ""

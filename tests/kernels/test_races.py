"""kernels.evidence.counted: programs that meet in memory, named, whichever of them runs first."""

import pytest
import torch

from kernels.evidence import counted
from kernels.evidence.counted.tally import NeverEnds
from tests.kernels import racing_kernels as made

ORDERS = ("in order", "reversed", 0, 7)


def _race(work, order="in order"):
    with counted.count(order=order) as tally:
        work()
    return tally.race


def test_a_program_that_reads_what_another_one_writes_is_named_with_the_element():
    said = _race(lambda: made.split_sum(torch.ones(20, 50)))
    assert said.startswith("program (0, 1) reads scratch[0], which (0, 0) of the same launch writes: a GPU ")


@pytest.mark.parametrize("order", ORDERS)
def test_a_race_is_seen_whichever_of_the_two_comes_first(order):
    said = _race(lambda: made.split_sum(torch.ones(4, 50)), order)
    assert "scratch[" in said and "of the same launch" in said
    x = torch.arange(9.0)
    assert "x[" in _race(lambda: made.shift_in_place_kernel[(8,)](x), order)


def test_a_write_of_what_another_program_has_read_is_named():
    x = torch.arange(9.0)
    assert _race(lambda: made.shift_in_place_kernel[(8,)](x)).startswith(
        "program 1 writes x[1], which 0 of the same launch reads"
    )
    assert torch.equal(x, torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8, 8])), "right in program order, by luck"


def test_two_programs_that_write_the_same_element_are_named():
    said = _race(lambda: made.last_one_stays_kernel[(3,)](torch.zeros(2)))
    assert said.startswith("program 1 writes y[0], which 0 of the same launch writes too")


def test_the_same_kernel_launched_twice_is_ordered():
    def twice():
        x = torch.ones(64)
        made.copy_kernel[(4,)](x, x, 64, AGAIN=1, OVERLAP=0, BLOCK=16)
        made.copy_kernel[(2,)](x, x, 64, AGAIN=1, OVERLAP=0, BLOCK=32)

    assert _race(twice) == ""


@pytest.mark.parametrize("order", ORDERS)
def test_a_ticket_with_acquire_and_release_orders_the_last_arriver_behind_all_others(order):
    x, y = torch.rand(128), torch.empty(1)
    launch = made.ticket_kernel[(8,)]
    given = (x, torch.empty(8), torch.zeros(1, dtype=torch.int32), y)
    assert _race(lambda: launch(*given, SEM="acq_rel", PARTS=8, BLOCK=16), order) == ""
    assert y.item() == pytest.approx(x.sum().item())


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release"])
def test_a_ticket_that_does_not_both_acquire_and_release_orders_nothing(sem):
    given = (torch.rand(128), torch.empty(8), torch.zeros(1, dtype=torch.int32), torch.empty(1))
    said = _race(lambda: made.ticket_kernel[(8,)](*given, SEM=sem, PARTS=8, BLOCK=16))
    assert said.startswith("program 7 reads parts[0], which 0 of the same launch writes")


def test_atomics_do_not_race_with_each_other_but_with_a_plain_store():
    x, y = torch.ones(4 * 16), torch.zeros(16)
    assert _race(lambda: made.atomic_sum_kernel[(4,)](x, y, BLOCK=16, SEM="relaxed")) == ""
    assert y.tolist() == [4.0] * 16
    said = _race(lambda: made.half_atomic_kernel[(2,)](torch.zeros(1)))
    assert said.startswith("programs 1 and 0 of the same launch touch y[0], one with an atomic")


def test_two_views_of_one_memory_are_one_memory():
    both = torch.zeros(17)
    x, y = both[:16], both[1:]
    said = _race(lambda: made.copy_kernel[(4,)](x, y, 16, AGAIN=1, OVERLAP=0, BLOCK=4))
    assert said.startswith("program 1 reads x[4], which 0 of the same launch writes")
    narrow = both.view(torch.int16)
    said = _race(lambda: made.copy_kernel[(2,)](both[:8], narrow[16:24], 8, AGAIN=1, OVERLAP=0, BLOCK=4))
    assert said == ""


def test_numbers_of_another_width_in_the_same_memory_meet():
    wide = torch.zeros(8)
    narrow = wide.view(torch.float16)
    said = _race(lambda: made.copy_kernel[(4,)](wide, narrow, 8, AGAIN=1, OVERLAP=0, BLOCK=2))
    assert "of the same launch" in said


def test_a_matrix_element_is_named_by_row_and_column():
    rows = torch.zeros(6, 4).T  # stored by columns
    with counted.count({"a": rows}) as tally:
        made.last_one_stays_kernel[(2,)](rows[2:, 3:])
    assert "y[0, 0]" in tally.race


def test_a_program_that_waits_for_one_behind_it_is_stopped_with_a_sentence():
    def wait():
        made.waiting_kernel[(2,)](torch.zeros(1, dtype=torch.int32), torch.zeros(1))

    assert _race(wait) == ""
    with pytest.raises(Exception, match="it waits for another program of its launch") as stopped:
        _race(wait, "reversed")
    assert NeverEnds.__name__ in repr(stopped.value)

"""kernels.evidence.counted.extra_traffic: why bytes were asked for again, read off the trace."""

import torch

from kernels.evidence import counted
from kernels.evidence.counted.extra_traffic import sentences
from tests.kernels import racing_kernels as made
from tests.kernels.toy import toy


def _said(work):
    with counted.count() as tally:
        work()
    return sentences(tally)


def _copy(programs, size, **options):
    made.copy_kernel[(programs,)](torch.ones(size), torch.empty(size), size, **options)


def test_each_byte_once_needs_no_word():
    assert _said(lambda: _copy(4, 64, AGAIN=1, OVERLAP=0, BLOCK=16)) == ()


def test_an_index_that_wraps_around_is_named_by_its_columns_and_the_program():
    x, w = torch.ones(16, 16).half(), torch.ones(16, 100).half()
    of_w, of_x = sorted(_said(lambda: made.wrapping_product(x, w, tile=64)))
    assert of_x == "x: read 2 times, by 2 programs, since the grid has that many that need the same part."
    assert of_w == (
        "w, columns 0 to 27: read again by the last tile (program (0, 1)), which reads as far as column 99; "
        "an index that wraps around with % starts over at the other end: mask those lanes off."
    )


def test_rows_that_wrap_around_are_named_too_also_where_all_is_read_by_several():
    x, w = torch.ones(40, 16).half(), torch.ones(16, 64).half()
    of_w, of_x = sorted(_said(lambda: made.wrapping_product(x, w, tile=32)))
    assert of_x.startswith(
        "x, rows 0 to 23: read again by the last tile (program (1, 1)), which reads as far"
    )
    assert of_w.startswith("w: read 2 times, by 2 programs")


def test_a_product_with_masks_reads_again_for_its_grid_alone():
    x, w = torch.ones(70, 16).half(), torch.ones(16, 100).half()
    of_w, of_x = sorted(_said(lambda: toy(x, w)))
    assert of_x.startswith("x: read 2 times, by 2 programs") and of_w.startswith("w: read 2 times, by 2")


def test_the_same_bytes_stored_twice_by_one_program():
    of_x, of_y = _said(lambda: _copy(2, 32, AGAIN=3, OVERLAP=0, BLOCK=16))
    assert of_x == "x: read 3 times by the same program, which loads the same part again and again."
    assert of_y.startswith("y: 32 of its 32 elements are stored 3 times by the same program")


def test_the_same_bytes_stored_by_two_programs():
    of_x, of_y = _said(lambda: _copy(2, 28, AGAIN=1, OVERLAP=4, BLOCK=16))
    assert of_x == "x, elements 12 to 15: read up to 2×, the rest 1×."
    assert of_y.startswith("y: 4 of its 28 elements are stored more than once, by 2 programs (elements 12")


def _uneven(programs, of):
    """How the launches are judged of which program 0 copies `of` blocks, and each other one its own."""
    x, y = torch.ones(64 * 16), torch.empty(64 * 16)
    with counted.count() as tally:
        made.lopsided_kernel[(programs,)](x, y, OF=of, BLOCK=16)
    return tally.balance.sentences()


def test_a_program_that_does_most_of_a_launchs_bytes_is_named():
    assert _uneven(64, 64) == (
        "program 0 does 100% of the bytes of a launch of 64 programs: a GPU's other multiprocessors wait for "
        "it; give each program its part.",
    )
    assert _uneven(9, 9)[0].startswith("program 0 does 100% of the bytes of a launch of 9 programs")


def test_programs_that_share_the_bytes_or_are_few_need_no_word():
    assert _uneven(64, 1) == _uneven(64, 32) == _uneven(8, 8) == _uneven(1, 1) == ()


def test_atomics_are_named_as_such():
    x, y = torch.ones(64), torch.zeros(16)
    said = _said(lambda: made.atomic_sum_kernel[(4,)](x, y, BLOCK=16, SEM="relaxed"))
    assert said == ("y: changed by 64 atomics, each of which reads and writes it.",)

"""Faults that numbers can't find are found, and their right versions pass, in every order of programs."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.evidence.executed.machine import ORDERS
from tests.kernels.executed import snippets

PROGRAMS = 8
EXCHANGE = """
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, 2;
st.shared.b32 [%r1], %r0;
{barrier}
xor.b32 %r2, %r1, {other};
ld.shared.b32 %r3, [%r2];
ret;
"""
COPY = """
ld.param.b64 %rd0, [snippet_param_0];
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, 2;
cvt.u64.u32 %rd1, %r1;
add.s64 %rd2, %rd0, %rd1;
cp.async.ca.shared.global [%r1], [%rd2], 4;
cp.async.commit_group;
{wait}
ld.shared.b32 %r3, [%r1];
ret;
"""
# Each program leaves its number; whoever draws the last ticket reads what the first has left.
TICKET = """
ld.param.b64 %rd0, [snippet_param_0];
ld.param.b64 %rd1, [snippet_param_1];
mov.u32 %r0, %ctaid.x;
shl.b32 %r1, %r0, 2;
cvt.u64.u32 %rd2, %r1;
add.s64 %rd3, %rd0, %rd2;
mov.u32 %r2, %tid.x;
setp.eq.s32 %p0, %r2, 0;
@%p0 st.global.b32 [%rd3], %r0;
@%p0 atom.global.gpu.{order}.add.u32 %r3, [%rd1], 1;
@!%p0 mov.b32 %r3, 0;
setp.eq.s32 %p1, %r3, 7;
@%p1 ld.global.b32 %r4, [%rd0];
@%p1 ld.global.b32 %r5, [%rd0+28];
ret;
"""


@pytest.mark.parametrize(
    ("barrier", "other", "raced"), [("", 128, True), ("bar.sync 0;", 128, False), ("", 4, False)]
)
def test_another_warps_store_is_read_behind_a_barrier_only(barrier, other, raced):
    found = snippets.run(EXCHANGE.format(barrier=barrier, other=other), threads=64, shared=256)
    assert bool(found.races) == raced
    if raced:
        assert "shared memory is read by snippet.py:7: ld.shared.b32" in found.races[0]


@pytest.mark.parametrize(
    ("wait", "raced"), [("", True), ("cp.async.wait_group 1;", True), ("cp.async.wait_group 0;", False)]
)
def test_what_is_copied_is_read_behind_its_wait_only(wait, raced):
    found = snippets.run(COPY.format(wait=wait), np.zeros(32, np.uint32), shared=128)
    assert bool(found.races) == raced


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("semantics", "raced"), [("relaxed", True), ("release", True), ("acq_rel", False)])
def test_a_ticket_orders_programs_if_it_acquires_and_releases(semantics, raced, order):
    left, lock = np.zeros(PROGRAMS, np.uint32), np.zeros(1, np.uint32)
    found = snippets.run(TICKET.format(order=semantics), left, lock, grid=(PROGRAMS, 1, 1), order=order)
    assert lock[0] == PROGRAMS
    assert left.tolist() == list(range(PROGRAMS)), "no number shows it"
    assert bool(found.races) == raced


# All threads of a program leave a number; one of them draws the ticket, the last program reads all.
PARTIALS = """
ld.param.b64 %rd0, [snippet_param_0];
ld.param.b64 %rd1, [snippet_param_1];
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %tid.x;
mad.lo.s32 %r2, %r0, 64, %r1;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd0, %rd2;
st.global.b32 [%rd3], %r2;
{before}
mov.b32 %r3, 0;
setp.eq.s32 %p0, %r1, 0;
@%p0 atom.global.gpu.acq_rel.add.u32 %r3, [%rd1], 1;
setp.eq.s32 %p1, %r3, 7;
@%p1 ld.global.b32 %r4, [%rd0+{where}];
ret;
"""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("before", "where", "raced"),
    [("", 128, True), ("bar.sync 0;", 128, False), ("", 0, False)],
    ids=["another warp's", "behind a barrier", "its own warp's"],
)
def test_a_release_covers_its_own_warp_and_the_others_before_the_last_barrier(before, where, raced, order):
    left, lock = np.zeros(PROGRAMS * 64, np.uint32), np.zeros(1, np.uint32)
    # in whichever order: the last to arrive is another program than the one whose part is read
    where += 4 * 64 if order == "forward" else 4 * 64 * 3
    body = PARTIALS.format(before=before, where=where)
    found = snippets.run(body, left, lock, grid=(PROGRAMS, 1, 1), threads=64, order=order, batch=1)
    assert bool(found.races) == raced, found.races
    assert left.tolist() == list(range(PROGRAMS * 64)), "no number shows it"


@pytest.mark.parametrize(("barrier", "raced"), [("", True), ("bar.sync 0;", False)])
def test_what_another_warp_left_in_global_memory_is_read_behind_a_barrier_only(barrier, raced):
    body = f"""
ld.param.b64 %rd0, [snippet_param_0];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd0, %rd2;
st.global.b32 [%rd3], %r1;
{barrier}
xor.b32 %r2, %r1, 32; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd5, %rd0, %rd4; ld.global.b32 %r3, [%rd5]; ret;"""
    found = snippets.run(body, np.zeros(64, np.uint32), threads=64)
    assert [("with no barrier since" in race) for race in found.races] == [True] * raced


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("plain", ["st.global.b32 [%rd0], %r1;", "ld.global.b32 %r2, [%rd0];"])
def test_an_atomic_of_one_program_and_a_plain_access_of_another_race(plain, order):
    body = f"""
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x; mov.b32 %r1, 1;
setp.eq.s32 %p0, %r0, 0; @%p0 bra plain;
red.global.gpu.relaxed.add.u32 [%rd0], 1; ret;
plain: {plain} ret;"""
    one = np.zeros(1, np.uint32)
    assert snippets.run(body, one, grid=(4, 1, 1), order=order, batch=1).races
    assert not snippets.run(body.replace("setp.eq", "setp.lt"), one, grid=(4, 1, 1), order=order).races


STRONG = {
    "plain load": "ld.global.b32 %r2, [%rd0];",
    "plain store": "st.global.b32 [%rd0], %r1;",
    "strong load": "ld.volatile.global.b32 %r2, [%rd0];",
    "strong store": "st.relaxed.gpu.global.b32 [%rd0], %r1;",
    "atomic": "red.global.gpu.relaxed.add.u32 [%rd0], 1;",
}


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("first", STRONG)
@pytest.mark.parametrize("second", STRONG)
def test_two_programs_race_if_one_writes_and_one_is_not_strong(first, second, order):
    """PTX ISA, "Memory consistency model": a data race is a conflict that is not of two strong operations."""
    body = f"""
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x; mov.b32 %r1, 1;
setp.eq.s32 %p0, %r0, 0; @%p0 bra second; {STRONG[first]} ret;
second: {STRONG[second]} ret;"""
    found = snippets.run(body, np.zeros(1, np.uint32), grid=(2, 1, 1), order=order, batch=1)
    writes = not {first, second} <= {"plain load", "strong load"}
    plain = "plain" in first + second
    assert bool(found.races) == (writes and plain), found.races


@pytest.mark.parametrize(("shift", "wavefronts"), [(2, 1), (3, 2), (7, 32)])
def test_lanes_that_meet_in_a_bank_take_a_wavefront_each(shift, wavefronts):
    body = f"mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, {shift}; ld.shared.b32 %r2, [%r1]; ret;"
    counts = snippets.run(body, shared=4096, races=False).counts
    assert counts.shared["wavefronts", "load"] == wavefronts
    assert counts.shared["ideal", "load"] == 1


WIDE = "mov.u32 %r0, %tid.x; {place} {on} ld.shared.v{words}.b32 {{{names}}}, [%r1]; ret;"
NAMES = {2: "%r2, %r3", 4: "%r2, %r3, %r4, %r5"}


def wide(words: int, place: str, on: str = "") -> tuple[int, int]:
    """Wavefronts, and the fewest possible, of a load of `words` words a lane at the place %r1."""
    body = WIDE.format(place=place, on=on, words=words, names=NAMES[words])
    counts = snippets.run(body, shared=8192, races=False).counts
    return counts.shared["wavefronts", "load"], counts.shared["ideal", "load"]


@pytest.mark.parametrize("words", [2, 4])
def test_a_wide_load_of_a_whole_warp_takes_its_phases_one_after_another(words):
    assert wide(words, f"shl.b32 %r1, %r0, {words // 2 + 2};") == (words, words)
    # twice as far apart: in each phase every second bank is asked for twice
    assert wide(words, f"shl.b32 %r1, %r0, {words // 2 + 3};") == (2 * words, words)


@pytest.mark.parametrize("words", [2, 4])
def test_lanes_that_share_words_count_what_their_busiest_bank_gives(words):
    """NVIDIA, forum thread 77228: where pairs of lanes agree, LDS.128 takes two requests, not four."""
    pairs = f"shr.u32 %r1, %r0, 1; shl.b32 %r1, %r1, {words // 2 + 2};"
    assert wide(words, pairs) == (words // 2, words // 2)
    assert wide(words, "mov.u32 %r1, 16;") == (1, 1)
    same_bank = "and.b32 %r1, %r0, 7; shl.b32 %r1, %r1, 7;"  # eight places, a whole row of banks apart
    assert wide(words, same_bank) == (8, words // 4 or 1)


def test_a_warp_of_which_some_lanes_idle_counts_the_least_as_well():
    """A lane of each quarter: nobody says that hardware gives an idle quarter a turn."""
    one_in_eight = "shl.b32 %r1, %r0, 4; and.b32 %r9, %r0, 7; setp.eq.u32 %p1, %r9, 0;"
    assert wide(4, one_in_eight, "@%p1") == (4, 1)  # they meet in their banks
    apart = "shl.b32 %r1, %r0, 1; and.b32 %r9, %r0, 7; setp.eq.u32 %p1, %r9, 0;"
    assert wide(4, apart, "@%p1") == (1, 1)


@pytest.mark.parametrize(("shift", "sectors"), [(2, 4), (3, 8), (5, 32)])
def test_a_request_asks_for_each_sector_that_its_lanes_touch(shift, sectors):
    body = f"""ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, {shift};
    cvt.u64.u32 %rd1, %r1; add.s64 %rd2, %rd0, %rd1; ld.global.b32 %r2, [%rd2]; ret;"""
    counts = snippets.run(body, np.zeros(512, np.uint32)).counts
    assert [counts.total(what) for what in ("bytes", "requests", "sectors")] == [128, 1, sectors]

"""Races in global memory: of warps of one program, by scope, by byte, and in cells that many read."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.evidence.executed.flow import goes_only_into_stores
from kernels.evidence.executed.machine import ORDERS
from tests.kernels.executed import snippets

PROGRAMS = 8
MINE_AND_YOURS = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %tid.x; mov.b32 %r9, 1;
mul.wide.u32 %rd1, %r0, 4; add.s64 %rd2, %rd0, %rd1;
xor.b32 %r1, %r0, {other}; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd0, %rd3;
"""
PLACE = {"mine": "%rd2", "another's": "%rd4"}
ACCESS = {
    "load": "ld.global.b32 %r2, [{}];",
    "store": "st.global.b32 [{}], %r9;",
    "strong load": "ld.relaxed.gpu.global.b32 %r3, [{}];",
    "strong store": "st.relaxed.cta.global.b32 [{}], %r9;",
    "atomic": "red.global.gpu.relaxed.add.u32 [{}], 1;",
    "atomic of its program": "red.global.cta.relaxed.add.u32 [{}], 1;",
}
READS = {"load", "strong load"}


@pytest.mark.parametrize("first", ACCESS)
@pytest.mark.parametrize("second", ACCESS)
@pytest.mark.parametrize(
    ("barrier", "other"), [("", 32), ("bar.sync 0;", 32), ("", 1)], ids=["", "barrier", "same warp"]
)
def test_two_warps_race_if_one_writes_and_one_is_not_strong(first, second, barrier, other):
    body = MINE_AND_YOURS.format(other=other) + ACCESS[first].format("%rd2")
    body += barrier + ACCESS[second].format("%rd4") + "ret;"
    found = snippets.run(body, np.ones(64, np.uint32), threads=64)
    raced = not barrier and other == 32 and not {first, second} <= READS
    raced = raced and bool({first, second} & {"load", "store"})
    assert bool(found.races) == raced, found.races


@pytest.mark.parametrize("synchronises", ["", "ld.global.gpu.acquire.b32 %r8, [%rd0+256];"])
def test_where_programs_are_ordered_warps_are_watched_too(synchronises):
    body = MINE_AND_YOURS.format(other=32) + synchronises
    body += "ld.global.b32 %r2, [%rd2]; {} st.global.b32 [%rd4], %r9; ret;"
    data = np.ones(65, np.uint32)
    (race,) = snippets.run(body.format(""), data, threads=64).races
    assert "global memory is written by snippet.py:7: st.global.b32: read by another warp" in race
    assert not snippets.run(body.format("bar.sync 0;"), data, threads=64).races


# Triton has all warps load a small tensor, and one of them store its result.
ALIKE = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31;
mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %rd0, %rd1; mov.u32 %r5, %warpid; setp.eq.u32 %p1, %r5, {warp};
ld.global.b32 %r2, [%rd2]; add.s32 %r3, %r2, 1; {use} @%p1 st.global.b32 [%rd2], %r3; ret;
"""


@pytest.mark.parametrize("warp", [0, 1])
@pytest.mark.parametrize(
    ("use", "raced"),
    [
        ("", False),
        ("ld.global.b32 %r2, [%rd2]; add.s32 %r3, %r2, 1;", False),
        ("bar.sync 0;", False),
        ("setp.eq.s32 %p2, %r2, 5;", False),  # that nobody asks for
        ("setp.eq.s32 %p2, %r2, 5; @%p2 bra over; mov.b32 %r7, 1; over:", True),
        ("shfl.sync.bfly.b32 %r7, %r3, 1, 31, -1;", True),
        ("st.shared.b32 [0], %r3;", True),
    ],
)
def test_numbers_that_all_warps_hold_and_one_stores_race_only_if_they_are_used_elsewhere(use, raced, warp):
    body = ALIKE.format(warp=warp, use=use)
    data = np.arange(100, 132, dtype=np.uint32)
    found = [
        one
        for one in snippets.run(body, data, threads=64, shared=64).races
        if one.startswith("global memory is written")
    ]
    assert bool(found) == raced, found


def test_what_several_warps_load_and_store_races():
    body = ALIKE.format(warp=0, use="").replace("@%p1 st", "st")
    assert snippets.run(body, np.zeros(32, np.uint32), threads=64).races


@pytest.mark.parametrize(
    ("lines", "only"),
    [
        ("st.global.b32 [%rd2], %r2;", True),
        ("add.s32 %r3, %r2, 1; mov.b32 %r4, %r3; @%p1 st.global.b32 [%rd2], %r4;", True),
        ("st.shared.b32 [%r9], %r2;", False),
        ("st.shared.b32 [%r2], %r9;", False),
        ("cvt.u64.u32 %rd3, %r2; st.global.b32 [%rd3], %r9;", False),
        ("setp.eq.s32 %p1, %r2, 0; @%p1 st.global.b32 [%rd2], %r9;", False),
        ("red.global.gpu.relaxed.add.u32 [%rd2], %r2;", False),
    ],
)
def test_where_a_loaded_number_goes_is_followed_through_arithmetic(lines, only):
    kernel = snippets.kernel(f"ld.global.b32 %r2, [%rd2]; {lines} ret;")
    assert goes_only_into_stores(kernel, kernel.code[0]) == only


# Every program leaves its number and draws a ticket; the last one reads what the others have left.
TICKET = """
ld.param.b64 %rd0, [snippet_param_0]; ld.param.b64 %rd1, [snippet_param_1]; mov.u32 %r0, %ctaid.x;
mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd0, %rd2; mov.u32 %r2, %tid.x; setp.eq.s32 %p0, %r2, 0;
@%p0 st.global.b32 [%rd3], %r0; mov.b32 %r3, 0;
{fence} @%p0 atom.global.{scope}.{order}.add.u32 %r3, [%rd1], 1; {fence}
setp.eq.s32 %p1, %r3, 7; @%p1 ld.global.b32 %r4, [%rd0]; @%p1 ld.global.b32 %r5, [%rd0+28]; ret;
"""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("scope", "raced"), [("cta", True), ("cluster", True), ("gpu", False), ("sys", False)]
)
def test_a_ticket_orders_programs_only_if_its_scope_holds_them(scope, raced, order):
    body = TICKET.format(scope=scope, order="acq_rel", fence="")
    left, lock = np.zeros(PROGRAMS, np.uint32), np.zeros(1, np.uint32)
    found = snippets.run(body, left, lock, grid=(PROGRAMS, 1, 1), order=order)
    assert bool(found.races) == raced, found.races
    reads = [race for race in found.races if "is read" in race]
    assert bool(reads) == raced, "what was left is not ordered either"


def test_a_fence_of_one_program_orders_no_others():
    body = TICKET.format(scope="gpu", order="relaxed", fence="fence.acq_rel.cta;")
    left, lock = np.zeros(PROGRAMS, np.uint32), np.zeros(1, np.uint32)
    assert snippets.run(body, left, lock, grid=(PROGRAMS, 1, 1)).races


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("scopes", [("cta", "cta"), ("cta", "gpu"), ("gpu", "cta"), ("gpu", "gpu")])
def test_atomics_of_two_programs_race_unless_both_are_of_the_device(scopes, order, batch):
    body = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x; setp.eq.s32 %p0, %r0, 0; @%p0 bra second;
red.global.{}.relaxed.add.u32 [%rd0], 1; ret;
second: red.global.{}.relaxed.add.u32 [%rd0], 1; ret;""".format(*scopes)
    one = np.zeros(1, np.uint32)
    found = snippets.run(body, one, grid=(2, 1, 1), order=order, batch=batch)
    assert one[0] == 64
    assert bool(found.races) == ("cta" in scopes)


@pytest.mark.parametrize(
    "load", ["ld.relaxed.cta.global.b32", "ld.global.cta.acquire.b32", "ld.global.gpu.relaxed.b32"]
)
def test_a_strong_load_is_beside_atomics_of_other_programs_by_its_scope(load):
    body = f"""
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x; setp.eq.s32 %p0, %r0, 0; @%p0 bra second;
red.global.gpu.relaxed.add.u32 [%rd0], 1; ret;
second: {load} %r1, [%rd0]; ret;"""
    found = snippets.run(body, np.zeros(1, np.uint32), grid=(2, 1, 1), batch=1)
    assert bool(found.races) == ("cta" in load)


@pytest.mark.parametrize("order", ["forward", "random", "interleaved"])
@pytest.mark.parametrize(("kind", "raced"), [("acquire", False), ("relaxed", True)])
def test_a_load_that_acquires_sees_what_was_released(kind, raced, order):
    """A flag: program 0 leaves a number and releases, all others wait for it."""
    body = f"""
ld.param.b64 %rd0, [snippet_param_0]; ld.param.b64 %rd1, [snippet_param_1]; mov.u32 %r0, %ctaid.x;
setp.ne.u32 %p0, %r0, 0; @%p0 bra wait;
mov.b32 %r1, 7; st.global.b32 [%rd0], %r1; red.global.gpu.release.add.u32 [%rd1], 1; ret;
wait: ld.global.gpu.{kind}.b32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0; @%p1 bra wait;
ld.global.b32 %r3, [%rd0]; ret;"""
    tensors = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    found = snippets.run(body, *tensors, grid=(4, 1, 1), order=order)
    assert bool(found.races) == raced, found.races


@pytest.mark.parametrize(("kind", "size", "raced"), [("b8", 1, False), ("b16", 2, False), ("b32", 1, True)])
@pytest.mark.parametrize("batch", [1, 8])
def test_a_cell_is_as_wide_as_the_narrowest_access(kind, size, raced, batch):
    """Programs store side by side, byte by byte; words a byte apart overlap, but no card takes those."""
    body = f"""ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x;
{"shr.u32 %r0, %r0, 1;" if raced else ""} mul.wide.u32 %rd1, %r0, {4 if raced else size};
add.s64 %rd2, %rd0, %rd1; st.global.{kind} [%rd2], {"%rh1" if kind == "b16" else "%r0"}; ret;"""
    found = snippets.run(body, np.zeros(64, np.uint8), grid=(PROGRAMS, 1, 1), batch=batch)
    assert bool(found.races) == raced, found.races


# All programs read x, and whoever draws the last ticket writes it.
OVERWRITTEN = """
ld.param.b64 %rd0, [snippet_param_0]; ld.param.b64 %rd1, [snippet_param_1]; mov.u32 %r0, %tid.x;
mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd0, %rd2; ld.global.b32 %r2, [%rd3];
{barrier} mov.b32 %r3, 0; setp.eq.s32 %p0, %r0, 0; @%p0 atom.global.gpu.{order}.add.u32 %r3, [%rd1], 1;
bar.sync 0;
setp.eq.s32 %p1, %r3, {last}; mul.wide.u32 %rd4, {other}, 4; add.s64 %rd5, %rd0, %rd4;
@%p1 st.global.b32 [%rd5], %r3; ret;
"""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("programs", [2, 8])
@pytest.mark.parametrize(
    ("barrier", "kind", "other", "raced"),
    [
        ("bar.sync 0;", "acq_rel", 40, False),
        ("bar.sync 0;", "relaxed", 40, True),
        ("bar.sync 0;", "release", 40, True),
        ("", "acq_rel", 40, True),  # what another warp has read, the ticket does not release
        ("", "acq_rel", 4, False),
    ],
)
def test_what_all_have_read_is_written_by_who_has_synchronised_with_all(
    barrier, kind, other, raced, programs, order
):
    body = OVERWRITTEN.format(barrier=barrier, order=kind, other=other, last=programs - 1)
    found = snippets.run(
        body,
        np.zeros(64, np.uint32),
        np.zeros(1, np.uint32),
        grid=(programs, 1, 1),
        threads=64,
        order=order,
    )
    assert bool(found.races) == raced, found.races


@pytest.mark.parametrize("late", [False, True])
def test_one_reader_that_has_not_synchronised_is_named(late):
    """Program 3 reads what the last of the others overwrites, before or after it drew no ticket."""
    body = OVERWRITTEN.format(barrier="bar.sync 0;", order="acq_rel", other=40, last=PROGRAMS - 2)
    draws = "setp.eq.s32 %p0, %r0, 0;"
    other_than_3 = "mov.u32 %r5, %ctaid.x; setp.ne.s32 %p3, %r5, 3; and.pred %p0, %p0, %p3;"
    body = body.replace(draws, draws + other_than_3)
    order = "reverse" if late else "forward"
    tensors = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    found = snippets.run(body, *tensors, grid=(PROGRAMS, 1, 1), threads=64, order=order, batch=1, shared=64)
    assert any("program 3 of the same launch had been there" in race for race in found.races), found.races


@pytest.mark.parametrize(("use", "raced"), [("", False), ("st.shared.b32 [0], %r2;", True)])
def test_a_number_that_all_warps_load_and_one_stores_is_released_by_that_one(use, raced):
    """A program's first thread stores what it has read and draws a ticket; who draws the last one writes."""
    body = f"""
ld.param.b64 %rd0, [snippet_param_0]; ld.param.b64 %rd1, [snippet_param_1]; mov.u32 %r0, %tid.x;
ld.global.b32 %r2, [%rd0]; {use} mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd0, %rd2;
setp.eq.s32 %p0, %r0, 0; mov.b32 %r3, 0; @%p0 st.global.b32 [%rd3+4], %r2;
@%p0 atom.global.gpu.acq_rel.add.u32 %r3, [%rd1], 1;
setp.eq.s32 %p1, %r3, {PROGRAMS - 1}; @%p1 st.global.b32 [%rd0], %r3; ret;"""
    tensors = np.ones(PROGRAMS + 1, np.uint32), np.zeros(1, np.uint32)
    found = snippets.run(body, *tensors, grid=(PROGRAMS, 1, 1), threads=64, shared=64)
    between = [race for race in found.races if "of the same launch" in race]
    assert bool(between) == raced, found.races

"""The scheduler: divergence, barriers, returns, spin locks; every order of programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernels.contract.errors import CardRefuses, NotExecutable
from kernels.evidence.executed import machine, scheduler
from kernels.evidence.executed.memory import GlobalMemory
from tests.kernels.executed import snippets
from tests.kernels.executed.test_ptx import ONE_EACH, STORE, each_thread

MINE = """
mov.u32 %r0, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r0;
mul.wide.u32 %rd9, %r4, 4; ld.param.b64 %rd0, [snippet_param_0];"""


SPECIAL = {
    "%tid.x": lambda thread: thread,
    "%laneid": lambda thread: thread % 32,
    "%warpid": lambda thread: thread // 32,
    "%ntid.x": lambda thread: 96,
    "%nctaid.x": lambda thread: 1,
    "%ntid.y": lambda thread: 1,
    "%tid.y": lambda thread: 0,
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_registers_of_a_thread(name):
    assert each_thread(f"mov.u32 %r1, {name};", threads=96) == [SPECIAL[name](t) for t in range(96)]


def test_programs_of_a_grid_are_numbered_along_x_first():
    out = np.zeros(2 * 3 * 4, np.uint32)
    body = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
mad.lo.s32 %r6, %r3, %r5, %r2; mad.lo.s32 %r6, %r6, %r4, %r1;
mul.wide.u32 %rd1, %r6, 4; add.s64 %rd1, %rd0, %rd1;
mad.lo.s32 %r7, %r3, 10, %r2; mad.lo.s32 %r7, %r7, 10, %r1; st.global.b32 [%rd1], %r7; ret;"""
    snippets.run(body, out, grid=(2, 3, 4))
    places = itertools.product(range(4), range(3), range(2))
    assert out.tolist() == [100 * z + 10 * y + x for z, y, x in places]


def test_a_loop_whose_length_differs_inside_a_warp():
    """Collatz: each lane leaves when it is at 1."""
    body = """
mov.u32 %r1, 0; add.s32 %r2, %r0, 1;
again: setp.eq.u32 %p1, %r2, 1; @%p1 bra done;
and.b32 %r3, %r2, 1; setp.eq.u32 %p2, %r3, 1; shr.u32 %r4, %r2, 1; mad.lo.s32 %r5, %r2, 3, 1;
selp.b32 %r2, %r5, %r4, %p2; add.s32 %r1, %r1, 1; bra.uni again;
done:"""

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    assert each_thread(body, threads=64) == [steps(n) for n in range(1, 65)]


def test_both_sides_of_an_if_run_and_meet_again():
    body = """
setp.lt.u32 %p1, %r0, 10; @%p1 bra then;
mov.u32 %r1, 1; bra both;
then: mov.u32 %r1, 2;
both: shfl.sync.idx.b32 %r3, %r1, 31, 31, -1; add.s32 %r1, %r1, %r3;"""
    assert each_thread(body) == [3] * 10 + [2] * 22


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.sync 0;", "bar.sync 0, 128;"])
def test_a_barrier_lets_all_warps_see_what_each_has_written(barrier):
    body = f"""
shl.b32 %r2, %r0, 2; st.shared.b32 [%r2], %r0; {barrier}
xor.b32 %r3, %r2, 0x1FC; ld.shared.b32 %r1, [%r3];"""
    out = np.zeros(128, np.uint32)
    assert snippets.run(ONE_EACH + body + STORE, out, threads=128, shared=512).races == ()
    assert out.tolist() == list(range(127, -1, -1))


def test_a_barrier_of_a_warp_is_passed():
    """Its threads run together anyway."""
    assert each_thread("add.s32 %r1, %r0, 1; bar.warp.sync -1;") == list(range(1, 33))


def test_threads_that_have_returned_are_not_waited_for():
    """The upper half of a warp, and another warp, return; the rest meet at the barrier behind it."""
    body = ONE_EACH + """
setp.ge.u32 %p1, %r0, 16; @%p1 ret;
bar.sync 0;
mov.u32 %r1, 5; """ + STORE  # fmt: skip
    out = np.zeros(64, np.uint32)
    assert snippets.run(body, out, threads=64).counts.barriers == 1
    assert out.tolist() == [5] * 16 + [0] * 48


def test_the_last_thread_to_return_frees_those_who_wait():
    body = ONE_EACH + """
setp.lt.u32 %p1, %r0, 32; @%p1 bra wait;
mov.u32 %r2, 0;
more: add.s32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 50; @%p2 bra more;
exit;
wait: bar.sync 0; mov.u32 %r1, 6; """ + STORE  # fmt: skip
    out = np.zeros(64, np.uint32)
    snippets.run(body, out, threads=64)
    assert out.tolist() == [6] * 32 + [0] * 32


@pytest.mark.parametrize("order", machine.ORDERS)
def test_a_spin_lock_between_programs_ends_in_every_order(order):
    """Pitfall: a group that spins at the lowest place starves the one that holds the lock."""
    body = """
ld.param.b64 %rd0, [snippet_param_0]; ld.param.b64 %rd1, [snippet_param_1];
mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 bra out;
try: atom.global.gpu.acquire.cas.b32 %r1, [%rd0], 0, 1; setp.ne.b32 %p2, %r1, 0; @%p2 bra try;
ld.global.b32 %r2, [%rd1]; add.s32 %r2, %r2, 1; st.global.b32 [%rd1], %r2;
atom.global.gpu.release.exch.b32 %r3, [%rd0], 0;
out: ret;"""
    lock, total = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    outcome = snippets.run(body, lock, total, grid=(40, 1, 1), order=order)
    assert (lock[0], total[0], outcome.races) == (0, 40, ())


def test_a_flag_is_waited_for_by_programs_that_begin_earlier():
    """Program 0 spins on what the last one of its batch writes; both run in lockstep."""
    body = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x; setp.eq.u32 %p1, %r0, 7; @%p1 bra set;
wait: atom.global.gpu.acquire.add.u32 %r1, [%rd0], 0; setp.eq.u32 %p2, %r1, 0; @%p2 bra wait;
ret;
set: red.global.gpu.release.add.u32 [%rd0], 1; ret;"""
    flag = np.zeros(1, np.uint32)
    snippets.run(body, flag, grid=(8, 1, 1))
    assert flag[0] == 32


ACQUIRES = "atom.global.gpu.acquire.add.u32 %r1, [%rd0], 0"
WAITS_FOR_THE_EIGHTH = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x; setp.eq.u32 %p1, %r0, 7; @%p1 bra set;
wait: LOOKS; bar.sync 0; setp.eq.u32 %p2, %r1, 0; @%p2 bra wait;
ret;
set: red.global.gpu.release.add.u32 [%rd0], 1; ret;"""


@pytest.mark.parametrize("order", machine.ORDERS)
@pytest.mark.parametrize("looks", ["atom.global.gpu.acquire.add.u32 %r1, [%rd0], 0",
                                   "ld.volatile.global.b32 %r1, [%rd0]"])  # fmt: skip
def test_where_all_wait_more_begin_as_long_as_the_card_has_room(order, looks):
    flag = np.zeros(1, np.uint32)
    body = WAITS_FOR_THE_EIGHTH.replace("LOOKS", looks)
    snippets.run(body, flag, grid=(11, 1, 1), batch=2, order=order, resident=11)
    assert flag[0] == 32


@pytest.mark.parametrize("order", ["forward", "interleaved"])
def test_who_waits_for_what_cannot_begin_is_refused_with_how_many_fit(monkeypatch, order):
    monkeypatch.setattr(machine, "WAITED", 400)
    body = WAITS_FOR_THE_EIGHTH.replace("LOOKS", ACQUIRES)
    with pytest.raises(
        CardRefuses, match="this launch needs 5,000 programs at once; the card holds 6 at most"
    ):
        snippets.run(
            body, np.zeros(1, np.uint32), grid=(5000, 1, 1), batch=3, resident=6, order=order, seed=1
        )


def test_a_place_that_is_free_again_is_given_to_the_next():
    """Each waits for the one before it, so two at once are enough."""
    body = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %ctaid.x; mov.u32 %r2, %tid.x;
wait: ld.volatile.global.b32 %r1, [%rd0]; bar.sync 0; setp.lt.u32 %p2, %r1, %r0; @%p2 bra wait;
setp.ne.u32 %p1, %r2, 0; @%p1 bra out; red.global.gpu.release.add.u32 [%rd0], 1;
out: ret;"""
    count = np.zeros(1, np.uint32)
    snippets.run(body, count, grid=(9, 1, 1), batch=1, resident=2)
    assert count[0] == 9


@pytest.mark.parametrize("order", ["forward", "interleaved"])
def test_who_waits_for_what_nobody_does_is_told_so_and_does_not_hang(monkeypatch, order):
    monkeypatch.setattr(machine, "WAITED", 400)
    body = WAITS_FOR_THE_EIGHTH.replace("LOOKS", ACQUIRES)
    with pytest.raises(
        CardRefuses, match="all programs that have not ended wait, and none is left to end that"
    ):
        snippets.run(body, np.zeros(1, np.uint32), grid=(7, 1, 1), order=order)


def test_a_loop_that_never_ends_and_looks_at_nothing_is_told_so(monkeypatch):
    monkeypatch.setattr(scheduler, "PATIENCE", 500)
    with pytest.raises(
        NotExecutable, match="program 0 and others of its batch have run 500 basic blocks, and no"
    ):
        snippets.run("again: bra again; ret;", np.zeros(1, np.uint32))


@pytest.mark.parametrize("order", machine.ORDERS)
def test_a_lock_of_several_basic_blocks_starves_nobody(order):
    """As Triton has it: one thread tries, and tells the others through shared memory."""
    body = """
ld.param.b64 %rd0, [snippet_param_0]; ld.param.b64 %rd1, [snippet_param_1];
mov.u32 %r0, %tid.x; mov.u32 %r9, 0; setp.eq.u32 %p1, %r0, 0;
try: bar.sync 0; @%p1 atom.global.gpu.acquire.cas.b32 %r1, [%rd0], 0, 1; @%p1 st.shared.b32 [%r9], %r1;
bar.sync 0; ld.shared.b32 %r1, [%r9]; setp.ne.b32 %p2, %r1, 0; @%p2 bra try;
mov.u32 %r3, 0;
more: add.s32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 20; @%p2 bra more;
@%p1 ld.global.b32 %r2, [%rd1]; add.s32 %r2, %r2, 1; @%p1 st.global.b32 [%rd1], %r2; bar.sync 0;
@%p1 atom.global.gpu.release.exch.b32 %r3, [%rd0], 0; ret;"""
    lock, total = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    outcome = snippets.run(body, lock, total, grid=(20, 1, 1), threads=64, shared=64, order=order)
    assert (lock[0], total[0], outcome.races) == (0, 20, ())


def test_races_of_many_programs_need_no_square_of_them():
    out = np.zeros(32, np.uint32)
    body = "ld.param.b64 %rd0, [snippet_param_0]; ld.global.b32 %r1, [%rd0]; ret;"
    assert snippets.run(body, out, grid=(100_000, 1, 1), count=False).races == ()


@pytest.mark.parametrize("order", machine.ORDERS)
@pytest.mark.parametrize("batch", [1, 3, None])
def test_every_order_and_batch_runs_every_program_once(order, batch):
    body = MINE + "add.s64 %rd1, %rd0, %rd9; ld.global.b32 %r1, [%rd1]; add.s32 %r1, %r1, %r4;" + STORE
    out = np.ones(10 * 32, np.uint32)
    outcome = snippets.run(body, out, grid=(10, 1, 1), order=order, batch=batch)
    assert out.tolist() == list(range(1, 321))
    assert outcome.races == ()
    assert outcome.counts.total("bytes", "store", "tensor0") == 4 * 320


def test_an_order_that_is_none_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"order = 'sideways': choose one of forward, reverse"):
        snippets.run("ret;", np.zeros(1, np.uint32), order="sideways")


def test_arguments_are_whole_numbers_and_floats_of_their_types():
    memory, out = GlobalMemory(), np.zeros(16, np.uint8)
    body = """
ld.param.b64 %rd0, [snippet_param_0]; ld.param.b32 %r1, [snippet_param_1];
ld.param.f32 %r2, [snippet_param_2]; ld.param.u64 %rd1, [snippet_param_3];
st.global.v2.b32 [%rd0], {%r1, %r2}; st.global.b64 [%rd0+8], %rd1; ret;"""
    kernel = snippets.kernel(body, parameters=["u64", "s32", "f32", "s64"])
    at = memory.put("out", out)
    machine.launch(kernel, memory, (1, 1, 1), [at, -3, 1.5, -(2**40)], 0)
    found = memory.get(at, 16)
    assert found[:4].view(np.int32)[0] == -3
    assert found[4:8].view(np.float32)[0] == 1.5
    assert found[8:].view(np.int64)[0] == -(2**40)


def test_nobody_counts_or_looks_for_races_when_not_asked_to():
    outcome = snippets.run("ret;", np.zeros(1, np.uint32), count=False, races=False)
    assert outcome == machine.Outcome(None, ())

"""mbarrier: arrivals, phases, and who waits for them."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.evidence.executed.ptx import NotExecutable
from tests.kernels.executed import snippets
from tests.kernels.executed.test_ptx import ONE_EACH, STORE

ONE_THREAD = "setp.eq.u32 %p1, %r0, 0; mov.u32 %r9, 0;"


@pytest.mark.parametrize("space", ["shared", "shared::cta"])
@pytest.mark.parametrize("verb", ["try_wait", "test_wait"])
def test_the_last_of_its_arrivals_ends_a_phase_and_begins_the_next(verb, space):
    wait = f"mbarrier.{verb}.parity.{space}.b64"
    arrive = f"mbarrier.arrive.{space}.b64 _, [%r9];"
    lines = f"mbarrier.init.{space}.b64 [%r9], 2;" + "".join(
        f"{wait} %p{i}, [%r9], {parity};" + (arrive if i % 2 else "")
        for i, parity in enumerate([0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
    )
    state = snippets.here(body=lines, shared=64)
    snippets.step(state, np.arange(32)[None] == 0)
    seen = [bool(snippets.get(state, f"%p{i}")[0, 0]) for i in range(10)]
    # Nothing has ended (and what was before the first phase has): then one arrival, two, three, four.
    assert seen == [False, True, False, True, True, False, True, False, False, True]


def test_an_arrival_may_count_for_several():
    """Pitfall: `mbarrier.arrive _, [a], n` counts n."""
    body = "mbarrier.init.shared.b64 [%r9], 4; mbarrier.arrive.shared.b64 _, [%r9], 3;"
    wait = "mbarrier.try_wait.parity.shared.b64 {}, [%r9], 0;"
    body += wait.replace("{}", "%p1") + "mbarrier.arrive.shared.b64 _, [%r9];" + wait.replace("{}", "%p2")
    state = snippets.here(body=body, shared=64)
    snippets.step(state, np.arange(32)[None] == 0)
    assert [bool(snippets.get(state, name)[0, 0]) for name in ("%p1", "%p2")] == [False, True]


def test_every_thread_arrives_for_itself():
    body = "@%p1 mbarrier.init.shared.b64 [%r9], 32; mbarrier.arrive.shared.b64 _, [%r9];"
    state = snippets.here(
        body=body + "mbarrier.try_wait.parity.shared.b64 %p2, [%r9], 0;", shared=64, programs=3
    )
    snippets.put(state, {"%p1": np.arange(32) == 0})
    snippets.step(state)
    assert snippets.get(state, "%p2").all()


def test_warps_that_wait_in_a_loop_let_the_one_that_arrives_go_on():
    """Pitfall: a group that spins at the lowest place starves the rest."""
    body = f"""{ONE_EACH} {ONE_THREAD} @%p1 mbarrier.init.shared.b64 [%r9], 32; bar.sync 0;
setp.ge.u32 %p2, %r0, 96; @%p2 bra arrive;
wait: mbarrier.try_wait.parity.shared.b64 %p3, [%r9], 0; @!%p3 bra wait;
mov.u32 %r1, 1; bra end;
arrive: mov.u32 %r2, 0;
more: add.s32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, 20; @%p4 bra more;
mov.u32 %r1, 2; mbarrier.arrive.shared.b64 _, [%r9];
end: {STORE}"""
    out = np.zeros(128, np.uint32)
    snippets.run(body, out, threads=128, shared=64)
    assert out.tolist() == [1] * 96 + [2] * 32


NEEDY = ["mbarrier.arrive.shared.b64 _, [%r9];", "mbarrier.try_wait.parity.shared.b64 %p2, [%r9], 0;"]


@pytest.mark.parametrize("line", NEEDY)
def test_a_place_without_an_mbarrier_is_an_error(line):
    state = snippets.here(body=line, shared=64)
    with pytest.raises(NotExecutable, match=r"snippet.py:7: mbarrier.*: there is no mbarrier at 0"):
        snippets.step(state)
    body = "@%p1 mbarrier.init.shared.b64 [%r9], 1; @%p1 mbarrier.inval.shared.b64 [%r9];"
    state = snippets.here(body=body + line, shared=64)
    snippets.put(state, {"%p1": np.arange(32) == 0})
    with pytest.raises(NotExecutable, match="there is no mbarrier at 0"):
        snippets.step(state)


REFUSED = [
    f"{form} [%r9], 1"
    for form in (
        "mbarrier.arrive.expect_tx.shared.b64",
        "mbarrier.try_wait.shared.b64",
        "mbarrier.init.global.b64",
        "mbarrier.arrive.release.cluster.shared::cluster.b64",
    )
]
FORMS = [
    *(f"mbarrier.{verb}.{space}.b64" for verb in ("init", "arrive") for space in ("shared", "shared::cta")),
    "mbarrier.inval.shared.b64",
    *(f"mbarrier.{v}_wait.parity.{s}.b64" for v in ("try", "test") for s in ("shared", "shared::cta")),
]

"""Instructions in which the threads of a warp see each other, against the manual's own pseudo-code."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import pytest

from kernels.evidence.executed.ptx import NotExecutable
from tests.kernels.executed import snippets
from tests.kernels.executed.oracles import code, number

MODES = ("bfly", "idx", "up", "down")
SEGMENTS = (0, 0x10, 0x18, 0x1C)  # bits of a lane's number that stay: halves, quarters, eighths


def shuffled(mode: str, lane: int, by: int, clamp: int) -> tuple[int, bool]:
    """The lane whose value `lane` gets, and whether it lies inside (PTX ISA, shfl.sync)."""
    by, bound, segment = by & 31, clamp & 31, clamp >> 8 & 31
    last, first = (lane & segment) | (bound & ~segment & 31), lane & segment
    other = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": first | (by & ~segment & 31)}[mode]
    inside = other >= last if mode == "up" else other <= last
    return (other if inside else lane), inside


@pytest.mark.parametrize("segment", SEGMENTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_shuffle_takes_the_lane_that_the_manual_says(mode, segment):
    """Pitfall: amounts and clamps may be immediates or registers, and only five bits of an amount count."""
    values = np.arange(1000, 1064, dtype=np.uint32)
    for by in (0, 1, 2, 7, 16, 31, 33):
        clamp = segment << 8 | (0 if mode == "up" else 31)
        for amount in (str(by), "%r5"):
            state = snippets.here(64, body=f"shfl.sync.{mode}.b32 %r1|%p1, %r0, {amount}, {clamp}, -1;")
            snippets.put(state, {"%r0": values, "%r5": np.uint32([by])})
            snippets.step(state)
            wanted = [shuffled(mode, thread % 32, by, clamp) for thread in range(64)]
            found = snippets.get(state, "%r1")[0].tolist()
            assert found == [1000 + thread // 32 * 32 + wanted[thread][0] for thread in range(64)]
            assert snippets.get(state, "%p1")[0].tolist() == [inside for _, inside in wanted]


def test_each_lane_may_ask_for_a_lane_of_its_own():
    state = snippets.here(body="shfl.sync.idx.b32 %r1, %r0, %r5, 31, -1;")
    asked = np.random.default_rng(6).permutation(32).astype(np.uint32)
    snippets.put(state, {"%r0": np.arange(32, dtype=np.uint32), "%r5": asked})
    snippets.step(state)
    np.testing.assert_array_equal(snippets.get(state, "%r1")[0], asked)


def test_one_thread_of_each_warp_is_elected_the_lowest_that_is_there():
    state = snippets.here(96, body="elect.sync %r1|%p1, -1;")
    on = np.ones((1, 96), bool)
    on[0, :5] = False  # of the first warp
    on[0, 32:64] = False
    snippets.step(state, on)
    assert np.flatnonzero(snippets.get(state, "%p1")[0]).tolist() == [5, 64]
    assert snippets.get(state, "%r1")[0, [5, 64]].tolist() == [5, 0]


REDUCTIONS = {
    **{f"redux.sync.add.{kind}": (operator.add, kind) for kind in ("u32", "s32")},
    **{f"redux.sync.{f.__name__}.{kind}": (f, kind) for f in (min, max) for kind in ("u32", "s32")},
    "redux.sync.and.b32": (operator.and_, "b32"),
    "redux.sync.or.b32": (operator.or_, "b32"),
    "redux.sync.xor.b32": (operator.xor, "b32"),
    **{f"redux.sync.{f.__name__}.f32": (f, "f32") for f in (min, max)},
    **{f"redux.sync.{f.__name__}.NaN.f32": (f, "f32") for f in (min, max)},
}


@pytest.mark.parametrize("form", REDUCTIONS)
def test_a_reduction_gives_every_lane_the_whole_warps(form):
    function, kind = REDUCTIONS[form]
    values = np.random.default_rng(7).integers(0, 1 << 32, (2, 32), np.uint64).astype(np.uint32)
    values[1] = np.float32(np.random.default_rng(8).normal(size=32)).view(np.uint32)
    if kind == "f32":
        values[0] = values[1][::-1]
        values[0, 7] = 0x7FC00000
    state = snippets.here(64, body=f"{form} %r1, %r0, -1;")
    snippets.put(state, {"%r0": values.reshape(-1)})
    snippets.step(state)
    for warp in range(2):
        numbers = [number(int(one), kind) for one in values[warp]]
        kept = [one for one in numbers if kind != "f32" or not math.isnan(one)]
        found = {int(one) for one in snippets.get(state, "%r1")[0, 32 * warp : 32 * warp + 32]}
        if "NaN" in form and len(kept) < 32:
            assert math.isnan(number(found.pop(), "f32"))
        else:
            assert found == {code(functools.reduce(function, kept), kind)}


REFUSED = [
    "redux.sync.add.f32 %r1, %r0, -1",
    "redux.sync.and.u32 %r1, %r0, -1",
    "redux.sync.add.b32 %r1, %r0, -1",
    "redux.sync.min.NaN.u32 %r1, %r0, -1",
    "redux.sync.max.abs.f32 %r1, %r0, -1",
    "shfl.sync.xor.b32 %r1, %r0, 1, 31, -1",
    "shfl.bfly.b32 %r1, %r0, 1, 31, -1",
    "vote.sync.any.pred %r1, %r0, -1",
    "match.any.sync.b32 %r1, %r0, -1",
]


def test_a_reduction_by_a_part_of_a_warp_is_refused():
    state = snippets.here(body="redux.sync.add.u32 %r1, %r0, -1;")
    with pytest.raises(NotExecutable, match="redux.sync.add.u32 by a part of a warp"):
        snippets.step(state, np.arange(32)[None] < 9)


FORMS = [*(f"shfl.sync.{mode}.b32" for mode in MODES), "elect.sync", *REDUCTIONS]

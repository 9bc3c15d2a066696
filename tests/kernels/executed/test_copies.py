"""Asynchronous copies from global into shared memory, form by form."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.executed import snippets
from tests.kernels.executed.test_access import random_bytes

COPY_POLICIES = ("", ".L2::64B", ".L2::128B", ".L2::256B")


@pytest.mark.parametrize(("level", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
@pytest.mark.parametrize("space", ["shared", "shared::cta"])
@pytest.mark.parametrize("policy", COPY_POLICIES)
def test_an_asynchronous_copy_lands_at_its_wait_and_not_before(level, size, space, policy):
    form = f"cp.async.{level}.{space}.global{policy}"
    body = f"{form} [%r1], [%rd1], {size}; cp.async.commit_group; ld.shared.b32 %r2, [%r1]; "
    state = snippets.here(body=body + "cp.async.wait_group 0; ld.shared.b32 %r3, [%r1];", shared=1024)
    given, lane = random_bytes(32 * size), np.arange(32)
    where = state.memory.put("x", given)
    snippets.put(
        state, {"%r1": (size * lane).astype(np.uint32), "%rd1": (where + size * lane).astype(np.uint64)}
    )
    snippets.step(state)
    assert (snippets.get(state, "%r2") == 0xFFFFFFFF).all(), "it is on its way"
    np.testing.assert_array_equal(state.shared[: 32 * size], given)
    np.testing.assert_array_equal(snippets.get(state, "%r3")[0], given.view(np.uint32)[:: size // 4])


WAITS = {"wait_group 2": 1, "wait_group 1": 2, "wait_group 0": 3, "wait_all": 4}


@pytest.mark.parametrize(("wait", "landed"), WAITS.items())
def test_a_wait_leaves_the_newest_groups_on_their_way(wait, landed):
    """Three groups and one copy that no commit has followed, which wait_all takes along."""
    copies = "".join(
        f"cp.async.ca.shared.global [%r1+{512 * i}], [%rd1], 4;" + ("cp.async.commit_group;" if i < 3 else "")
        for i in range(4)
    )
    state = snippets.here(body=f"{copies} cp.async.{wait};", shared=4096)
    where = state.memory.put("x", np.zeros(128, np.uint8))
    lane = np.arange(32)
    snippets.put(state, {"%r1": (4 * lane).astype(np.uint32), "%rd1": (where + 4 * lane).astype(np.uint64)})
    snippets.step(state)
    assert [int((state.shared[512 * i : 512 * i + 128] == 0).all()) for i in range(4)] == [1] * landed + [
        0
    ] * (4 - landed)


def test_a_copy_of_no_bytes_fills_with_zeros_and_reads_nothing():
    state = snippets.here(body="cp.async.cg.shared.global [%r1], [%rd1], 16, %r2; cp.async.commit_group; "
                          "cp.async.wait_group 0;", shared=1024)  # fmt: skip
    given, lane = random_bytes(64), np.arange(32)
    where = state.memory.put("x", given)
    snippets.put(
        state,
        {
            "%r1": (16 * lane).astype(np.uint32),
            "%rd1": (where + 16 * lane).astype(np.uint64),  # past the end from lane 4 on
            "%r2": np.where(lane < 4, 16, 0).astype(np.uint32),
        },
    )
    snippets.step(state)
    np.testing.assert_array_equal(state.shared[:512], np.concatenate([given, np.zeros(448, np.uint8)]))
    assert state.counts.total("bytes", "load", "x") == 64


def test_copies_of_a_program_that_has_waited_land_while_another_ones_do_not():
    body = "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.commit_group; @%p1 cp.async.wait_group 0;"
    state = snippets.here(body=body, shared=1024, programs=2)
    where = state.memory.put("x", np.zeros(128, np.uint8))
    lane = np.arange(32)
    snippets.put(state, {"%r1": (4 * lane).astype(np.uint32), "%rd1": (where + 4 * lane).astype(np.uint64)})
    snippets.put(state, {"%p1": np.array([[False], [True]])})
    snippets.step(state)
    assert (state.shared[:128] == 255).all()
    assert (state.shared[state.size : state.size + 128] == 0).all()


REFUSED = """
cp.async.cg.shared.global.L3::9 [%r1], [%rd1], 16
cp.async.cg.shared.global [%r1], [%rd1], 16, %r2, %rd2
cp.async.bulk.commit_group
""".strip().splitlines()


FORMS = [
    *(f"cp.async.{level}.{space}.global" for level in ("ca", "cg") for space in ("shared", "shared::cta")),
    *(f"cp.async.{level}.shared.global{policy}" for level in ("ca", "cg") for policy in COPY_POLICIES),
    "cp.async.commit_group",
    *(f"cp.async.{wait.split()[0]}" for wait in WAITS),
]

"""Lower bounds of time from counts: which resource binds, and that no sum of anything else decides it."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from book import catalog
from kernels import flash_attention
from kernels.contract.errors import Unsupported
from kernels.contract.targets import TARGETS
from kernels.evidence import executed
from kernels.evidence.executed.ceilings import binding, ceilings, sentence

HEAD = {"batch": 1, "heads": 1, "kv_heads": 1}
SHORT, LONG = 256, 2048


@pytest.fixture(scope="module")
def attention():
    """(chip, head dimension) -> the executed row of a short prompt."""
    wanted = [
        (flash_attention.experiment, chip, {**HEAD, "length": SHORT, "head_dim": d})
        for chip in ("sm_90", "sm_100")
        for d in (64, 128)
    ]
    return {(row.target, row.sizes["head_dim"]): row for row in executed.cases(wanted)}


def card_of(row):
    return catalog.accelerator(TARGETS[row.target].accelerator)


def by_resource(row):
    return {one.resource: one for one in ceilings(row, card_of(row))}


# A score takes 4 d FLOP, 2 d in each product, and one exponential: 4 d / F cycles against 1 / 16.
@pytest.mark.parametrize(
    ("chip", "d", "flops_per_cycle", "slower"),
    [
        ("sm_90", 64, 4096, "special functions"),  # level but for the rescaling's exponentials
        ("sm_90", 128, 4096, "tensor cores, bf16"),
        ("sm_100", 64, 8192, "special functions"),
        ("sm_100", 128, 8192, "special functions"),  # level again, at twice the products' rate
    ],
)
def test_softmax_takes_as_long_as_the_products(attention, chip, d, flops_per_cycle, slower):
    found = by_resource(attention[chip, d])
    special, products = found["special functions"], found["tensor cores, bf16"]
    assert max(special, products, key=lambda one: one.seconds).resource == slower
    by_hand = (1 / 16) / (4 * d / flops_per_cycle)
    # Online softmax rescales what it has, an exponential more for each thread that holds a part of a row.
    assert by_hand < special.seconds / products.seconds < 1.15 * by_hand


def test_cycles_are_those_of_a_multiprocessor_worked_out_by_hand(attention):
    row = attention["sm_90", 64]
    card, found = card_of(row), by_resource(row)
    tiles = SHORT // 64 * (SHORT // 64 + 1) // 2  # of 64 by 64 scores, on or below the diagonal
    a_second = card.clock * card.sm_count
    assert found["tensor cores, bf16"].seconds * a_second == pytest.approx(tiles * 64 * 64 * 4 * 64 / 4096)
    exponentials = sum(row.launches[0].special.values())
    assert exponentials >= tiles * 64 * 64
    assert found["special functions"].seconds * a_second == pytest.approx(exponentials / 16)


def test_a_short_prompt_waits_for_memory(attention):
    for row in attention.values():
        assert binding(ceilings(row, card_of(row))).resource == "memory", row.sizes


@pytest.mark.skipif(not os.environ.get("EVERY_CHIP"), reason="half a minute: make test-executed")
@pytest.mark.parametrize(
    ("chip", "d", "binds"),
    [
        ("sm_90", 64, "special functions"),
        ("sm_90", 128, "tensor cores, bf16"),
        ("sm_100", 64, "special functions"),
        ("sm_100", 128, "shared memory"),  # tiles of 64 queries carry K and V there too often
    ],
)
def test_what_binds_a_long_prompt(chip, d, binds):
    (row,) = executed.run(flash_attention.experiment, targets=[chip], length=LONG, head_dim=d, **HEAD)
    assert binding(ceilings(row, card_of(row))).resource == binds


def test_memory_is_what_the_formula_says_and_requests_only_what_caches_may_spare(attention):
    row = attention["sm_90", 64]
    found = by_resource(row)
    assert found["memory"].amount == 2 * 4 * SHORT * 64  # q, k, v and y once, two bytes each
    assert found["requested"].amount == 32 * row.asked("sectors") > found["memory"].amount
    assert not found["requested"].bounds
    assert max(one.share for one in found.values() if one.bounds) == 1


def test_shared_memory_gives_a_wavefront_a_cycle(attention):
    row = attention["sm_90", 64]
    card, found = card_of(row), by_resource(row)
    assert found["shared memory"].seconds == pytest.approx(
        row.total("wavefronts") / card.sm_count / card.clock
    )


def test_blackwell_ultra_gives_twice_the_exponentials(attention):
    row = attention["sm_100", 64]
    special = {
        name: next(
            one for one in ceilings(row, catalog.accelerator(name)) if one.resource == "special functions"
        )
        for name in ("b200", "b300")
    }
    assert special["b300"].rate == pytest.approx(2 * special["b200"].rate)


def test_the_sentence_names_the_largest_and_the_next_and_what_is_not_known(attention):
    row = attention["sm_90", 64]
    known = {"special functions": 2e-6, "tensor cores, bf16": 1e-6}
    rows = [replace(one, seconds=known.get(one.resource, 0.0)) for one in ceilings(row, card_of(row))]
    told = sentence(rows, card_of(row))
    assert told.startswith("On the H100 SXM no run takes less than 2e-06 s, for special functions; next is ")
    assert "tensor cores, bf16, at 50% of that" in told
    assert "no latencies, no caches and no overlap" in told


def test_a_card_whose_clock_is_not_known_is_refused(attention):
    for name in ("h100_nvl", "mi300x"):
        with pytest.raises(Unsupported, match=f"accelerator = '{name}'.*choose h100_sxm"):
            ceilings(attention["sm_90", 64], catalog.accelerator(name))

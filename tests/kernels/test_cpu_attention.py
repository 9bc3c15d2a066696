"""Attention on this CPU: heads that share a read of the cache, and what is said of them, whatever it is."""

import dataclasses

import pytest

from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.cpu_attention import GAIN, cpu_attention
from kernels.evidence.timed.clocks import Timing
from kernels.evidence.timed.cpu import APART, PACKED

pytestmark = pytest.mark.quiet

SMALL = {"kv_heads": 4, "head_dim": 64, "context": 8192, "budget": 0.05}


@pytest.fixture(scope="module")
def here():
    return cpu_attention(groups=(1, 8), **SMALL)


def made(here, *points, noise=0.01):
    """The same with these (heads, packed seconds, apart seconds)."""
    kept = tuple(
        {"heads": heads, "intensity": 1.0}
        | {way: Timing(s, s, s * (1 + noise), 9) for way, s in ((PACKED, packed), (APART, apart))}
        for heads, packed, apart in points
    )
    return dataclasses.replace(here, points=kept)


def test_heads_that_share_a_read_are_faster(here):
    if not here.gain.above(GAIN):  # a matter of the machine and of its neighbours: reported, no failure
        pytest.skip(here.finding)
    assert "the packed ones were" in here.finding


def test_its_intensities_are_those_of_fp32(here):
    assert [p["heads"] for p in here.points] == [4, 32]
    assert [p["intensity"] for p in here.points] == pytest.approx([0.5, 4], rel=1e-2)


def test_it_says_whose_machine_and_whose_kernels(here):
    assert "timed, this CPU, torch" in repr(here) and "timed, this CPU, torch" in here._repr_html_()


def test_growth_and_gain_compare_the_right_times(here):
    it = made(here, (4, 1.0, 2.0), (32, 3.0, 12.0))
    assert (it.growth(PACKED), it.growth(APART), it.gain.likely) == (3, 6, 4)


@pytest.mark.parametrize(
    ("packed", "noise", "said"),
    [
        (2.0, 0.01, "Of 32 heads the packed ones were 4.0 times faster."),
        (7.0, 0.30, "too busy to show it"),
        (8.0, 0.01, "packing 32 heads hardly pays with torch (1.00 times as fast)"),
    ],
)
def test_what_is_said_follows_from_the_times(here, packed, noise, said):
    it = made(here, (4, 1.0, 1.0), (32, packed, 8.0), noise=noise)
    assert "8 times the query heads took 8.0 times as long with one read a head" in it.finding
    assert said in it.finding and said in repr(it) and said in it._repr_html_()


def test_ways_that_disagree_are_refused(monkeypatch):
    import torch

    true = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda q, k, v, **more: true(q, k, v, **more) + (q.shape[2] == 1),
    )
    with pytest.raises(PhysicsDisagrees, match="8 query heads: packed and apart"):
        cpu_attention(groups=(2,), **SMALL)

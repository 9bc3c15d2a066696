"""Attention on this CPU: heads that share a read of the cache, and what is said about them."""

import dataclasses

import pytest

from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.timed import cpu_attention as module
from kernels.evidence.timed.cpu_attention import APART, PACKED, cpu_attention

pytestmark = pytest.mark.quiet

SMALL = {"kv_heads": 4, "head_dim": 64, "context": 8192, "budget": 0.02}


@pytest.fixture(scope="module")
def here():
    return cpu_attention(groups=(1, 8), **SMALL)


def test_heads_that_share_a_read_are_faster(here):
    try:
        here.check()
    except PhysicsDisagrees:  # another program took the cores just then: once more, and no oftener
        cpu_attention(groups=(1, 8), **SMALL | {"budget": 0.1}).check()


def test_its_intensities_are_those_of_fp32(here):
    assert [p["heads"] for p in here.points] == [4, 32]
    assert [p["intensity"] for p in here.points] == pytest.approx([0.5, 4], rel=1e-2)


def test_it_says_whose_machine_and_whose_kernels(here):
    assert "timed, this CPU, torch" in repr(here) and "timed, this CPU, torch" in here._repr_html_()


def test_growth_and_gain_compare_the_right_times(here):
    points = ({"heads": 4, PACKED: 1.0, APART: 2.0}, {"heads": 32, PACKED: 3.0, APART: 12.0})
    made = dataclasses.replace(here, points=points)
    assert (made.growth(PACKED), made.growth(APART), made.gain) == (3, 6, 4)
    made.check()


def test_no_gain_is_refused_with_the_usual_cause(here):
    flat = dataclasses.replace(here, points=({"heads": 32, PACKED: 1.0, APART: 1.1},))
    with pytest.raises(PhysicsDisagrees, match="32 query heads packed ran 1.10 times.*close other programs"):
        flat.check()


def test_ways_that_disagree_are_refused(monkeypatch):
    import torch

    true = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda q, k, v, **more: true(q, k, v, **more) + (q.shape[2] == 1),
    )
    with pytest.raises(PhysicsDisagrees, match="8 query heads: packed and apart"):
        module.cpu_attention(groups=(2,), **SMALL)

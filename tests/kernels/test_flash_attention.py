"""kernels.flash_attention: right at any length, the exact bytes and triangle, plans that don't spill."""

from dataclasses import replace

import pytest
import torch

from kernels import flash_attention as module
from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.flash_attention import experiment, flash_attention, plan

HEAD_DIMS = (64, 96, 128, 256)
SHAPE = {"batch": 1, "heads": 2, "kv_heads": 1, "head_dim": 64}


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize(("batch", "heads", "kv_heads"), [(2, 3, 3), (1, 4, 2), (1, 3, 1)])
def test_every_head_dim_and_grouping_is_exact(head_dim, batch, heads, kv_heads):
    sizes = {"batch": batch, "length": 70, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    row = counted.run(experiment, **sizes)
    row.check(experiment)
    assert row.relative_error < 5e-4


def test_the_tile_of_a_long_prompt_is_exact_too(monkeypatch):
    tile = plan(1, 8192, 32, 8, 64)
    monkeypatch.setattr(module, "plan", lambda *sizes, **named: tile)
    row = counted.run(replace(experiment, plan=module.plan), **{**SHAPE, "length": 200})
    assert (row.plan.block_m, row.plan.block_n) == (128, 64)
    row.check(experiment)


def test_blocks_above_the_diagonal_are_skipped_and_only_those():
    row = counted.run(experiment, **{**SHAPE, "length": 256})
    assert (row.plan.block_m, row.plan.block_n) == (64, 64)
    visited = 1 + 2 + 3 + 4  # of the 16 blocks of a head
    assert row.dot_flops == 2 * visited * 64 * 64 * 4 * 64
    useful = experiment.cost(**row.sizes).flops
    assert row.dot_flops / useful == 20 / 16


def test_keys_and_values_cross_memory_once_however_many_heads_share_them():
    sizes = {"batch": 1, "length": 65, "head_dim": 64}
    rows = [counted.run(experiment, **sizes, heads=h, kv_heads=1) for h in (1, 4)]
    assert [r.reads["k"].unique for r in rows] == [65 * 64 * 2] * 2
    # without a cache each head reads them for each of its blocks of queries
    assert rows[1].reads["k"].block == 4 * rows[0].reads["k"].block


def _random(*shape, scale=1.0):
    return (scale * torch.randn(shape, generator=torch.Generator().manual_seed(3))).half()


def test_the_future_has_no_influence():
    q, k, v = _random(1, 100, 2, 64), _random(1, 100, 1, 64), _random(1, 100, 1, 64)
    before = flash_attention(q, k, v)
    k[:, 41:], v[:, 41:] = 100.0, float("nan")  # a hidden value may be anything, even that
    after = flash_attention(q[:, :41], k[:, :41], v[:, :41])
    assert torch.equal(before[:, :41], after)
    assert torch.equal(before[:, 0], v[:, 0].expand(-1, 2, -1))  # the first sees itself alone


@pytest.mark.parametrize("scale", [30.0, 1e-4])
def test_scores_far_from_one_neither_overflow_nor_vanish(scale):
    inputs = {"q": _random(1, 90, 1, 64, scale=scale), "k": _random(1, 90, 1, 64), "v": _random(1, 90, 1, 64)}
    y, expected = flash_attention(**inputs), experiment.reference(**inputs)
    assert torch.isfinite(y).all()
    assert counted.relative_error(y, expected) < 1e-3


def test_slices_of_one_projection_are_read_where_they_lie():
    qkv = _random(2, 70, 4 + 2 + 2, 64)
    q, k, v = qkv.split([4, 2, 2], dim=2)
    assert not q.is_contiguous()
    with counted.count() as tally:
        y = flash_attention(q, k, v)
    assert y.is_contiguous()
    assert counted.relative_error(y, experiment.reference(q, k, v)) < 5e-4
    # q, k and v begin in one storage, at three places
    assert sum(t.unique for t in tally.reads().values()) == qkv.numel() * 2


def test_heads_before_tokens_is_a_transposed_view():
    q, k, v = (_random(1, n, 70, 64).transpose(1, 2) for n in (2, 1, 1))
    y = flash_attention(q, k, v)
    assert counted.relative_error(y, experiment.reference(q, k, v)) < 5e-4


def test_the_reference_is_torchs_own_attention():
    inputs = experiment.inputs(batch=2, length=33, heads=4, kv_heads=2, head_dim=64)
    q, k, v = (x.double().transpose(1, 2) for x in inputs.values())
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    assert torch.allclose(experiment.reference(**inputs), theirs.transpose(1, 2), atol=1e-12)


# ---------------------------------------------------------------------------------- plans


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_a_long_prompt_gets_the_largest_tile_and_a_short_one_more_programs(target, head_dim):
    dtype = "fp16" if target == "sm_75" else "bf16"
    long, short = (plan(1, n, 32, 8, head_dim, dtype, target) for n in (8192, 64))
    assert long.block_dim >= head_dim and long.block_dim & (long.block_dim - 1) == 0
    assert long.programs(1, 8192, 32) >= TARGETS[target].sm_count
    assert short.block_m <= (64 if head_dim < 256 else long.block_m)

"""kernels.decode_attention: right at ragged sizes, K and V read once, splits that fill the card."""

import pytest
import torch

from book import cost
from kernels.contract.errors import Unsupported
from kernels.contract.targets import TARGETS
from kernels.decode_attention import (
    decode_attention,
    experiment,
    ragged_experiment,
    ragged_lengths,
    unpacked_experiment,
)
from kernels.evidence import compiled, counted
from kernels.tiling import decode


def case(sizes):
    return dict(zip(experiment.sizes, sizes, strict=True))


@pytest.mark.parametrize("kernel", [experiment, unpacked_experiment, ragged_experiment])
def test_an_fp8_cache_is_read_at_one_byte_a_number(kernel):
    row = counted.run(kernel, **case((2, 8, 2, 64, 200)), dtype="fp8")
    row.check(kernel)
    tokens = sum(ragged_lengths(2, 200)) if kernel is ragged_experiment else 400
    assert row.reads["k"].unique == tokens * 2 * 64
    assert row.reads["q"].unique == 2 * 8 * 64 * 2


@pytest.mark.parametrize("heads", [2, 8, 32])
def test_kv_bytes_are_the_same_whatever_the_number_of_query_heads(heads):
    row = counted.run(experiment, **case((2, heads, 2, 64, 256)))
    row.check(experiment)
    for kind in ("unique", "block"):
        assert sum(getattr(row.reads[x], kind) for x in "kv") == 2 * 2 * 2 * 256 * 64 * 2


def test_unpacked_heads_read_the_cache_once_each_and_pad_every_tile():
    sizes = case((1, 8, 2, 64, 128))
    packed, apart = (counted.run(e, **sizes) for e in (experiment, unpacked_experiment))
    apart.check(unpacked_experiment)
    for name in "kv":
        assert apart.reads[name].unique == packed.reads[name].unique
        assert apart.reads[name].block == 4 * packed.reads[name].block
    assert apart.dot_flops == 4 * packed.dot_flops == 16 * experiment.cost(**sizes).flops


def test_partial_results_are_a_named_term():
    row = counted.run(experiment, **case((1, 8, 2, 64, 512)))
    assert row.plan.splits > 2
    outputs = row.plan.splits * 8
    assert row.reads["partials"].unique == row.writes["partials"].unique == outputs * 64 * 4
    assert row.reads["lse"].unique == row.writes["lse"].unique == outputs * 4
    tiles = experiment.issued(row.plan, **row.sizes)
    assert tiles.workspace == {"partials", "lse"}
    assert tiles.bytes - tiles.workspace_bytes == cost.decode_attention(**row.sizes).bytes


# -------------------------------------------------------------------------- the public function


def tensors(seed=0, **sizes):
    return experiment.inputs(**{**case((3, 4, 2, 32, 300)), **sizes}, seed=seed)


def close(o, q, k, v, lengths=None):
    return counted.relative_error(o, experiment.reference(q, k, v, lengths)) < 1e-3


@pytest.mark.parametrize("most", [1, 256], ids=["one program", "split"])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_lengths_from_nothing_to_more_than_there_is(monkeypatch, most, kind):
    monkeypatch.setattr(decode, "MAX_SPLITS", most)
    x = tensors(batch=5)
    assert (decode.plan(**case((5, 4, 2, 32, 300))).splits > 1) == (most > 1)
    most_of_all = 9999 if kind == torch.int32 else 2**32 + 1  # which cut to 32 bits would be one token
    lengths = torch.tensor([0, 1, 64, 65, most_of_all], dtype=kind)
    for i, n in enumerate(lengths.tolist()):  # what lies behind a sequence's end must not leak in
        x["k"][i, :, n:], x["v"][i, :, n:] = float("nan"), float("nan")
    o = decode_attention(**x, lengths=lengths)
    assert (o[0] == 0).all()
    rest = {name: t[1:] for name, t in x.items()}
    assert close(o[1:], **rest, lengths=lengths[1:])


def test_the_split_result_is_the_unsplit_one(monkeypatch):
    x = tensors()
    parts = decode_attention(**x)
    monkeypatch.setattr(decode, "MAX_SPLITS", 1)
    whole = decode_attention(**x)
    assert torch.allclose(parts.float(), whole.float(), atol=2e-3)


@pytest.mark.parametrize("packed", [True, False])
def test_large_scores_neither_overflow_nor_vanish(packed):
    x = tensors()
    x["q"] *= 100
    o = decode_attention(**x, packed=packed)
    assert torch.isfinite(o).all() and close(o, **x)


def test_scale_takes_the_place_of_the_root():
    x = tensors()
    twice = decode_attention(**x, scale=2 * 32**-0.5)
    assert close(twice, 2 * x["q"], x["k"], x["v"])


LAYOUTS = {
    "[batch, context, kv_heads, head_dim]": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "the start of a longer cache": lambda x: torch.cat([x, x], 2)[:, :, :300],
    "every second sequence": lambda x: x.repeat_interleave(2, 0)[::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_caches_of_any_strides(layout):
    x = tensors()
    k, v = LAYOUTS[layout](x["k"]), LAYOUTS[layout](x["v"])
    with counted.count() as tally:
        o = decode_attention(x["q"], k, v)
    assert close(o, **x)
    assert tally.reads()["k"].unique == x["k"].numel() * 2


# -------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "sm_75"])
@pytest.mark.parametrize(("batch", "heads", "kv_heads"), [(1, 32, 8), (3, 64, 8), (1, 8, 1), (40, 32, 8)])
def test_a_long_context_gives_two_programs_a_multiprocessor(target, batch, heads, kv_heads):
    chosen = decode.plan(batch, heads, kv_heads, 128, 32768, "fp16", target)
    wanted = min(1.75 * TARGETS[target].sm_count, decode.MAX_SPLITS * batch * kv_heads)
    assert chosen.programs(batch, heads, kv_heads) >= 0.9 * wanted


def test_a_batch_that_fills_the_card_is_not_split():
    assert decode.plan(64, 32, 8, 128, 8192, "fp16", "sm_90").splits == 1
    assert decode.plan(33, 32, 8, 128, 8192, "fp16", "sm_90").splits == 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["fp16", "fp8"])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(32, 32, 64), (64, 8, 128), (71, 1, 64), (8, 4, 256)])
def test_every_plan_covers_the_context_fits_and_limits_its_workspace(target, dtype, heads, kv_heads, dim):
    if dtype == "fp8" and target in ("sm_75", "sm_80"):
        with pytest.raises(ValueError, match=rf"dtype = 'fp8': .*\({target}\) has none; use"):
            decode.plan(1, heads, kv_heads, dim, 64, dtype, target)
        return
    size = 1 if dtype == "fp8" else 2
    for batch, context in [(1, 1), (1, 65), (2, 5000), (1, 131_072), (500, 4096)]:
        chosen = decode.plan(batch, heads, kv_heads, dim, context, dtype, target)
        assert (chosen.splits - 1) * chosen.split_context < context <= chosen.splits * chosen.split_context
        assert chosen.split_context % chosen.block_context == 0
        # without asynchronous copies one stage less is stored: it waits in registers
        stages = chosen.num_stages - (target in ("gfx942", "sm_75"))
        held = 2 * stages * chosen.block_context * chosen.block_dim * size
        assert held <= TARGETS[target].max_shared_per_block
        sizes = case((batch, heads, kv_heads, dim, context))
        tiles = experiment.issued_by(chosen, dtype, **sizes)
        caches = 2 * batch * kv_heads * context * dim * size
        # once for the write and once for the read; a last split that is short may add a little
        assert tiles.workspace_bytes <= 1.1 * decode.WORKSPACE_SHARE * caches


def test_fp8_is_for_chips_that_have_it():
    with pytest.raises(Unsupported, match=r"dtype = 'fp8': sm_80 .*has none; choose bf16 or fp16"):
        compiled.run(experiment, targets=["sm_80"], dtype="fp8")

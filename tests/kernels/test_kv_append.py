"""kernels.kv_append: each token in its own place, kappa / N bytes a token, nothing else touched."""

import pytest
import torch

from book import catalog
from kernels.evidence import counted
from kernels.kv_append import experiment, kv_append, plan

FP8 = torch.float8_e4m3fn


def case(sizes):
    return dict(zip(experiment.sizes, sizes, strict=True))


@pytest.mark.parametrize("dtype", ["fp16", "fp8"])
def test_a_token_writes_kappa_over_n_bytes_a_layer(dtype):
    model = catalog.model("llama3.1-8b")
    row = counted.run(experiment, batch=4, kv_heads=8, head_dim=128, context=32, dtype=dtype)
    written = sum(t.unique for t in row.writes.values())
    kappa = 131_072 * catalog.itemsize(dtype) / 2  # chapter 05's number for this model in bf16
    assert (model.layers, written / 4) == (32, kappa / 32)
    assert sum(row.reads[x].unique for x in "kv") == written
    assert row.reads["positions"].unique == 4 * 4  # the named term
    assert row.flops == 0


def filled(kind=torch.float16):
    """k and v of 3 sequences, caches that hold something, and places to write to."""
    generator = torch.Generator().manual_seed(2)
    k, v = torch.randn(2, 3, 2, 32, generator=generator).to(kind)
    k_cache, v_cache = torch.randn(2, 3, 2, 5, 32, generator=generator).to(kind)
    return k, v, k_cache, v_cache


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, FP8])
@pytest.mark.parametrize("table", [torch.int32, torch.int64])
def test_what_was_in_the_cache_stays(kind, table):
    k, v, k_cache, v_cache = filled(kind)
    places = [4, 0, 2]
    expected = k_cache.clone(), v_cache.clone()
    for i, place in enumerate(places):
        expected[0][i, :, place], expected[1][i, :, place] = k[i], v[i]
    kv_append(k, v, k_cache, v_cache, torch.tensor(places, dtype=table))
    assert torch.equal(k_cache.float(), expected[0].float())
    assert torch.equal(v_cache.float(), expected[1].float())


def test_a_place_outside_the_cache_is_padding():
    k, v, k_cache, v_cache = filled()
    before = k_cache.clone(), v_cache.clone()
    with counted.count() as tally:  # it would raise OutOfBounds
        kv_append(k, v, k_cache, v_cache, torch.tensor([-1, 5, 2**40]))
    assert torch.equal(k_cache, before[0]) and torch.equal(v_cache, before[1])
    assert not tally.writes()


def test_caches_of_any_strides():
    k, v, k_cache, v_cache = filled()
    stored = torch.zeros(2, 3, 5, 2, 32).half()  # [batch, context, kv_heads, head_dim], as some keep it
    places = torch.tensor([1, 3, 4])
    with counted.count():
        kv_append(k, v, *stored.transpose(2, 3), places)
    kv_append(k, v, k_cache.zero_(), v_cache.zero_(), places)
    assert torch.equal(stored[0].transpose(1, 2), k_cache) and torch.equal(stored[1].transpose(1, 2), v_cache)


def test_a_program_takes_2_kib_of_k_and_less_only_where_there_is_less():
    assert (plan(1, 8, 128, 64, "bf16").block_heads, plan(1, 8, 128, 64, "fp32").block_heads) == (8, 4)
    assert plan(1, 1, 128, 64, "bf16").block_heads == 1
    assert plan(7, 5, 96, 64, "bf16").grid(7, 5) == (7,)

"""What chapters 06 and 08 say of attention as others measured it, over all rows of both cards."""

from __future__ import annotations

import statistics

import pytest

from book import catalog, cost
from book.catalog.measured import decode_attention, mla_decode, prefill_attention

SHAPE = ("accelerator", "cache_dtype", "heads", "kv_heads", "head_dim", "batch", "context")


@pytest.fixture(scope="module")
def took() -> dict[tuple, float]:
    """Seconds by card, cache's format, heads, KV heads, head_dim, batch, context; no windows."""
    return {
        tuple(row[c] for c in SHAPE): row["seconds"] for row in decode_attention.rows() if not row["window"]
    }


def test_an_fp8_cache_never_halves_the_time(took):
    gains = [t / took[k[0], "fp8", *k[2:]] for k, t in took.items() if k[1] == "bf16"]
    assert len(gains) > 1500
    assert max(gains) < 2


def test_eight_times_the_query_heads_cost_about_nothing(took):
    ratios = [
        t / took[k[0], k[1], 8, *k[3:]]
        for k, t in took.items()
        if k[2:4] == (64, 8) and (k[0], k[1], 8, *k[3:]) in took
    ]
    assert len(ratios) > 500
    assert statistics.median(ratios) < 1.01
    assert max(ratios) < 1.4


@pytest.mark.parametrize("card", ["h100_sxm", "h200_sxm"])
def test_the_rows_of_latent_attention_in_the_catalog_are_those_of_the_table(card):
    series = catalog.series("mla_decode", accelerator=card, engine="TensorRT-LLM")
    table = {
        row["heads"]: row["seconds"]
        for row in mla_decode.rows()
        if (row["accelerator"], row["cache_dtype"], row["batch"], row["context"]) == (card, "bf16", 128, 4096)
    }
    assert len(series.points) == 4
    assert all(p["seconds"] == pytest.approx(table[p["heads"]], rel=1e-6) for p in series.points)


def test_no_prefill_attention_in_bf16_reaches_seven_tenths_of_the_peak():
    shares = []
    for row in prefill_attention.rows():
        if (row["attention_dtype"], row["cache_dtype"]) == ("bf16", "bf16"):
            shape = (row["batch"], row["tokens"], row["heads"], row["kv_heads"], row["head_dim"])
            peak = catalog.accelerator(row["accelerator"]).peak("bf16")
            shares.append(cost.flash_attention(*shape).flops / row["seconds"] / peak)
    assert len(shares) > 900
    assert 0.6 < max(shares) < 0.7

"""No published time lies below our floor for its card, and where the model claims to be sharp it is.

Every kind of published measurement is judged here or listed with the reason why it has no floor.
"""

from itertools import pairwise

import pytest

from book import catalog, cost, serving
from book.roofline import Roof
from book.serving import step_law

JUDGED = (
    "linear",
    "decode_attention",
    "decode_attention_fp8",
    "prefill_attention",
    "mla_decode",
    "decode_step",
    "single_stream",
)
NO_FLOOR = {
    "all_reduce": "the floor of a link, not of a card: chapter 18",
    "experts_touched": "counts, not times",
    "mixed_step": "neither card nor model is named",
}
# SGLang drafts five tokens by default, so a verify step emits at most six.
TOKENS_A_STEP = {"plain": 1, "eagle2": 6, "eagle3": 6}


def roof(series, dtype=None):
    card = catalog.accelerator(series.accelerator)
    return Roof(card.short_name, card.peak(dtype or series.dtype or "bf16"), card.bandwidth)


def points(kind):
    return [(s, p) for s in catalog.published(kind) for p in s.points]


def name(pair):
    series, point = pair
    values = {**series.fixed, **point}
    return f"{series.accelerator}-" + "-".join(f"{k}={v}" for k, v in values.items() if "second" not in k)


def deployed(series, weight_itemsize, gpus):
    return serving.deploy(series.model, series.accelerator, weight_itemsize=weight_itemsize, gpus=gpus)


def step_floor(series, gpus):
    """Seconds: the mean step of a run, when half of the output is in the cache."""
    fixed = series.fixed
    context = fixed["input_tokens"] + fixed["output_tokens"] / 2
    return serving.tpot(deployed(series, 1, gpus), fixed["concurrency"], context)


def test_every_kind_is_judged_or_says_why_not():
    assert {*JUDGED, *NO_FLOOR} == set(catalog.published_kinds())


@pytest.mark.parametrize("pair", points("linear"), ids=name)
def test_linear(pair):
    series, point = pair
    floor = roof(series).time(cost.linear(point["m"], series.fixed["k"], series.fixed["n"]))
    assert floor <= point["seconds"]
    if point["m"] >= 1024:
        assert floor >= 0.7 * point["seconds"]


@pytest.mark.parametrize("pair", points("decode_attention"), ids=name)
def test_decode_attention(pair):
    series, point = pair
    c = cost.decode_attention(point["batch"], context=point["context"], **series.fixed)
    floor = roof(series).time(c)
    assert floor <= point["seconds"]
    if c.reads["k"] + c.reads["v"] >= 0.5e9:
        assert floor >= 0.7 * point["seconds"]


@pytest.mark.parametrize("pair", points("decode_attention_fp8"), ids=name)
def test_decode_attention_with_an_fp8_cache(pair):
    # The products may run in FP8, too: the floor takes the faster arithmetic and the smaller cache.
    series, point = pair
    c = cost.decode_attention(point["batch"], context=point["context"], **series.fixed, kv_itemsize=1)
    assert roof(series).time(c) <= point["seconds"]


def test_half_the_cache_is_not_half_the_time():
    # Chapter 06: 64 sequences of 4,096 tokens on an H100, the same 64 heads over 8 KV heads.
    same = {"accelerator": "h100_sxm", "heads": 64, "kv_heads": 8}
    bf16, fp8 = (
        next(
            p["seconds"]
            for p in catalog.series(kind, **same).points
            if (p["batch"], p["context"]) == (64, 4096)
        )
        for kind in ("decode_attention", "decode_attention_fp8")
    )
    assert (bf16, fp8) == (354.98e-6, 211.376e-6)
    assert bf16 / fp8 == pytest.approx(1.68, abs=0.005)


def test_some_rows_are_large_enough_to_be_sharp():
    large = [p for s, p in points("decode_attention") if p["batch"] >= 32 and s.fixed["kv_heads"] == 8]
    assert len(large) >= 20
    assert sum(p["m"] >= 1024 for _, p in points("linear")) == 12


@pytest.mark.parametrize("pair", points("prefill_attention"), ids=name)
def test_prefill_attention(pair):
    series, point = pair
    c = cost.flash_attention(1, point["tokens"], **series.fixed)
    assert roof(series).time(c) <= point["seconds"]


@pytest.mark.parametrize("pair", points("mla_decode"), ids=name)
def test_mla_decode(pair):
    series, point = pair
    a = catalog.model("deepseek-v3").attention
    c = cost.mla_decode(
        series.fixed["batch"], point["heads"], a.kv_lora_rank, a.qk_rope_head_dim, series.fixed["context"]
    )
    assert roof(series).time(c) <= point["seconds"]


@pytest.mark.parametrize("pair", points("decode_step"), ids=name)
def test_decode_step(pair):
    series, point = pair
    assert step_floor(series, point["gpus"]) <= point["seconds"]


@pytest.mark.parametrize("pair", points("single_stream"), ids=name)
def test_single_stream(pair):
    # The floor is per step: a speculative step may emit several tokens.
    series, point = pair
    gpus = point.get("gpus", series.fixed.get("gpus", 1))
    size = catalog.itemsize(point.get("weights", "bf16"))  # without scales: the lowest floor there can be
    floor = serving.tpot(deployed(series, size, gpus), 1, 1)
    tokens_a_step = TOKENS_A_STEP[point.get("decoding", "plain")]
    assert floor <= tokens_a_step / point["tokens_per_second"]


def test_speculation_beats_the_floor_of_a_token_and_not_of_a_step():
    series = next(s for s in catalog.published("single_stream") if "decoding" in s.columns)
    rate = {p["decoding"]: p["tokens_per_second"] for p in series.points}
    floor = serving.tpot(deployed(series, 2, 1), 1, 1)
    assert 1 / rate["plain"] > floor > 1 / rate["eagle3"]


# ----------------------------------------------------------------------- the step law, fitted


def fitted(card, engine):
    series = next(
        s for s in catalog.published("decode_step") if s.accelerator == card and s.fixed["engine"] == engine
    )
    floors = [step_floor(series, p["gpus"]) for p in series.points]
    return floors, step_law.fit(floors, [p["seconds"] for p in series.points])


def test_the_floors_of_the_tensor_parallel_rows():
    floors, _ = fitted("h100_sxm", "vLLM")
    read = 70_553_706_496 - 128_256 * 8192 + 4 * 1536 * 327_680  # FP8 weights, bf16 cache
    assert floors == pytest.approx([read / n / 3.35e12 for n in (2, 4, 8)])
    assert floors == pytest.approx([10.67e-3, 5.34e-3, 2.67e-3], rel=1e-3)


@pytest.mark.parametrize(
    ("card", "engine", "slope", "overhead"),
    [
        ("h100_sxm", "vLLM", 1.04, 6.3e-3),
        ("h200_sxm", "vLLM", 1.04, 6.0e-3),
        ("h200_sxm", "TensorRT-LLM", 1.07, 4.1e-3),
    ],
)
def test_the_law_fits_the_tensor_parallel_rows(card, engine, slope, overhead):
    floors, found = fitted(card, engine)
    assert 0.95 <= found.slope <= 1.10
    assert found.slope == pytest.approx(slope, abs=0.006)
    assert found.overhead == pytest.approx(overhead, abs=0.06e-3)
    assert found.efficiency == pytest.approx(1 / found.slope)
    assert max(map(abs, found.residuals)) < 0.6e-3
    assert sum(found.residuals) == pytest.approx(0, abs=1e-9)


def test_eight_cards_run_at_thirty_percent_of_their_roof():
    floors, found = fitted("h100_sxm", "vLLM")
    assert floors[-1] / found.law(floors[-1]) == pytest.approx(0.3, abs=0.02)
    low, high = found.intervals["slope"]
    assert low < 1 < 1.2 < high  # and the line doesn't say why


def test_an_exact_line_is_found():
    found = step_law.fit([1e-3, 2e-3, 5e-3], [3.2e-3, 4.4e-3, 8.0e-3])
    assert (found.slope, found.overhead) == pytest.approx((1.2, 2e-3))
    assert all(a < b for a, b in pairwise(map(found.law, (1e-3, 2e-3, 3e-3))))


@pytest.mark.parametrize(
    ("floors", "times", "message"),
    [
        ([1e-3], [2e-3], "two points at least"),
        ([1e-3, 2e-3], [2e-3], "2 numbers, times = 1"),
        ([1e-3, 1e-3], [2e-3, 3e-3], "all 0.001 s"),
        ([1e-3, 2e-3], [2e-3, float("nan")], "times: nan"),
        ([0, 2e-3], [2e-3, 3e-3], "floors: 0.0"),
    ],
)
def test_a_fit_refuses_what_it_can_not_use(floors, times, message):
    with pytest.raises(ValueError, match=message):
        step_law.fit(floors, times)


# ------------------------------------------------------------------- chapter 06, in microseconds


def decode_microseconds(card, heads, kv_heads, batch, context):
    series = catalog.series("decode_attention", accelerator=card, heads=heads, kv_heads=kv_heads)
    c = cost.decode_attention(batch, context=context, **series.fixed)
    (measured,) = (p["seconds"] for p in series.points if (p["batch"], p["context"]) == (batch, context))
    return round(measured * 1e6, 1), roof(series).time(c) * 1e6


@pytest.mark.parametrize(
    ("card", "measured", "floor"),
    [("h100_sxm", [353.7, 353.6, 355.0], 321), ("h200_sxm", [255.0, 270.9, 255.6], 224)],
)
def test_eight_times_the_heads_for_nothing(card, measured, floor):
    found = [decode_microseconds(card, heads, 8, 64, 4096) for heads in (8, 32, 64)]
    assert [m for m, _ in found] == measured
    assert [f for _, f in found] == pytest.approx([floor] * 3, abs=0.8)


def test_one_short_stream_cannot_fill_a_card():
    measured, floor = decode_microseconds("h100_sxm", 8, 1, 1, 8192)
    assert (measured, floor) == (16.4, pytest.approx(1.3, abs=0.05))

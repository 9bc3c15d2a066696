"""The numbers of chapters 03, 04, 05, 07, 08 and 09, each worked out a second time here."""

import dataclasses

import numpy as np
import pytest

from book import catalog, cost, serving
from book.serving import deploy, step_law

F, BETA = 989.4e12, 3.35e12  # H100 SXM, bf16
P8, P70 = 8_030_261_248, 70_553_706_496
TABLE8, TABLE70 = 128_256 * 4096, 128_256 * 8192
K8, K70 = 2 * 32 * 8 * 128 * 2, 2 * 80 * 8 * 128 * 2
near = pytest.approx


def h100(model, **options):
    return deploy(model, "h100_sxm", **options)


def at_any_length(d):
    """The same deployment of a model that takes any context: for formulas beyond its limit."""
    return dataclasses.replace(d, model=dataclasses.replace(d.model, max_context=10**12))


# ------------------------------------------------------------------ 03 prefill and decode


def test_rows_decide_how_much_of_the_peak_is_used():
    assert serving.utilisation(1, F, BETA) == near(0.00339, abs=5e-6)
    assert 1 - serving.utilisation(1, F, BETA) == near(0.99661, abs=5e-6)
    assert serving.utilisation(32, F, BETA) == near(0.108, abs=5e-4)
    assert serving.utilisation(32, F, BETA) * F == near(107.2e12)
    assert serving.utilisation(2048, F, BETA) == 1
    assert 2048 / serving.critical_rows(F, BETA) == near(6.93, abs=0.005)


def test_critical_rows_follow_the_stored_bytes_and_the_rate():
    fp8 = catalog.accelerator("h100_sxm").peak("fp8")
    assert fp8 / BETA == near(590.7, abs=0.05)
    assert serving.critical_rows(fp8, BETA, 1) == near(295.4, abs=0.06)  # the ridge doubled, s halved
    assert serving.critical_rows(F, BETA, 1) == near(serving.critical_rows(F, BETA, 2) / 2)


# ------------------------------------------------------------------------ 04 the decode floor


def test_the_floor_of_the_70b():
    assert catalog.model("llama3.1-70b").parameters == P70
    assert serving.weight_bytes(catalog.model("llama3.1-70b")) == near(141.107e9, rel=1e-5)
    d = h100("llama3.1-70b", count="all")
    step = serving.decode_step(d, np.array([1, 32, 64]), 1)
    assert step.weight_time == near(2 * P70 / BETA)
    assert step.weight_time == near(42.12e-3, rel=2e-4)
    assert np.array([1, 32, 64]) / step.weight_time == near(np.array([23.74, 759.7, 1519]), rel=5e-4)
    assert serving.weight_bytes(d.model) > d.accelerator.usable
    h200 = catalog.accelerator("h200_sxm")  # by its label it is 0.1 GB short, the card isn't
    assert h200.capacity < serving.weight_bytes(d.model) < h200.usable


def test_eight_cards_share_the_floor():
    step = serving.decode_step(h100("llama3.1-70b", count="all", gpus=8), 1, 1)
    assert step.linear.bytes == near(17.64e9, rel=2e-4)
    assert step.weight_time == near(5.265e-3, rel=2e-4)
    assert 1 / step.weight_time == near(189.9, rel=5e-4)


def test_the_input_table_is_not_read_and_the_head_is():
    m = catalog.model("llama3.1-8b")
    assert serving.weight_bytes(m) == 2 * P8 == near(16.06e9, rel=1e-4)
    assert serving.weight_bytes_read(m) == 2 * (P8 - TABLE8) == near(15.01e9, rel=1e-4)
    everything = serving.decode_step(h100("llama3.1-8b", count="all"), 1, 1)
    assert (everything.weight_time, 1 / everything.weight_time) == near((4.794e-3, 208.6), rel=3e-4)
    assert 1 / serving.decode_step(h100("llama3.1-8b"), 1, 1).weight_time == near(223.2, rel=3e-4)


def test_a_tied_table_is_read_as_the_head():
    m = catalog.model("llama3.2-1b")
    assert serving.weight_bytes_read(m) == serving.weight_bytes(m) == 2 * m.parameters


def test_gpt_fast_moves_what_it_says():
    (series,) = (s for s in catalog.published("single_stream") if "bytes_per_s" in s.columns)
    point = series.points[0]
    read = serving.weight_bytes_read(catalog.model("llama2-7b"))
    assert read * point["tokens_per_second"] == near(point["bytes_per_s"], rel=0.015)


# -------------------------------------------------------------------------- 05 the KV cache


@pytest.mark.parametrize(
    ("model", "kappa"),
    [
        ("llama2-7b", 524_288),
        ("llama3.1-8b", 131_072),
        ("llama3.1-70b", 327_680),
        ("llama3.1-405b", 516_096),
        ("deepseek-v3", 70_272),
        ("kimi-k2", 70_272),
        ("qwen3-32b", 262_144),
        ("phi3-mini", 393_216),
    ],
)
def test_bytes_per_token(model, kappa):
    assert serving.kv_bytes_per_token(catalog.model(model)) == kappa
    assert serving.kv_bytes_per_token(catalog.model(model), 1) == kappa / 2


@pytest.mark.parametrize(("model", "times"), [("llama3.1-70b", 8), ("llama3.1-8b", 4), ("llama2-7b", 1)])
def test_what_sharing_kv_heads_saves(model, times):
    m = catalog.model(model)
    unshared = dataclasses.replace(m, kv_heads=m.heads)
    assert serving.kv_bytes_per_token(unshared) == times * serving.kv_bytes_per_token(m)


def test_the_70b_at_32768_tokens():
    m = catalog.model("llama3.1-70b")
    assert serving.kv_bytes(m, 32_768) == 10 * 2**30 == near(10.74e9, rel=5e-4)
    assert 32 * serving.kv_bytes(m, 32_768) == near(343.6e9, rel=1e-4)
    assert serving.decode_step(h100("llama3.1-70b"), 32, 32_768).kv_time == near(102.6e-3, rel=5e-4)


def test_what_fits_beside_the_70b_on_an_h200():
    d = deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1)
    label = {"memory": d.accelerator.capacity, "fraction": 0.9}
    assert serving.kv_capacity(d, **label) == near((0.9 * 141e9 - P70) / K70)
    assert serving.kv_capacity(d, **label) == near(171_900, rel=1e-3)
    assert serving.sequences(d, 5120, **label) == 33
    assert serving.kv_capacity(d) > serving.kv_capacity(d, **label)  # a program sees 150 GB there
    assert serving.kv_capacity(d, reserve=10e9) == near(serving.kv_capacity(d) - 10e9 / K70)


def test_nothing_fits_where_the_weights_do_not():
    assert serving.kv_capacity(h100("llama3.1-70b")) == 0
    assert serving.sequences(h100("llama3.1-70b", gpus=4), 8192) > 0


@pytest.mark.parametrize(
    ("model", "gpus", "share"),
    [
        ("llama3.1-70b", 4, 1 / 4),
        ("llama3.1-70b", 16, 1 / 8),  # eight heads on sixteen cards: each is held twice
        ("phi4", 4, 3 / 10),  # ten heads on four cards: one of them holds three
        ("deepseek-v3", 8, 1),  # the latent is copied
    ],
)
def test_tensor_parallelism_deals_out_whole_heads(model, gpus, share):
    assert serving.kv_share(catalog.model(model), gpus) == near(share)


def test_a_sliding_window_stops_growing():
    m = catalog.model("gemma2-9b")
    a_layer = 2 * 8 * 256 * 2
    assert serving.kv_bytes(m, 1000) == 42 * 1000 * a_layer
    assert serving.kv_bytes(m, 8192) == (21 * 8192 + 21 * 4096) * a_layer
    assert serving.kv_bytes(catalog.model("phi3-mini"), 4096) == 32 * 2048 * 2 * 32 * 96 * 2


# ---------------------------------------------------------------------- 07 weights against KV


@pytest.mark.parametrize(
    ("model", "batch", "tokens", "exact"),
    [
        ("llama3.1-70b", 32, 13_457, 2 * P70 / (32 * K70)),
        ("llama3.1-70b", 1, 430_626, 2 * P70 / K70),
        ("llama3.1-8b", 32, 3_829, 2 * P8 / (32 * K8)),
        ("llama3.1-8b", 1, 122_532, 2 * P8 / K8),
    ],
)
def test_the_context_at_which_cache_and_weights_are_equal(model, batch, tokens, exact):
    d = h100(model, count="all")
    found = serving.crossover_context(d, batch)
    assert found == near(exact) == near(tokens, abs=1)
    step = serving.decode_step(at_any_length(d), batch, found)
    assert step.weight_time == near(step.kv_time)
    assert step.time == near(2 * step.weight_time)


@pytest.mark.parametrize(
    ("model", "context", "tokens_per_s", "exact"),
    [
        ("llama3.1-70b", 32_768, 312, BETA / (32_768 * K70)),
        ("llama3.1-70b", 8_192, 1_248, BETA / (8_192 * K70)),
        ("llama3.1-8b", 32_768, 780, BETA / (32_768 * K8)),
    ],
)
def test_no_batch_gets_past_the_ceiling(model, context, tokens_per_s, exact):
    d = h100(model)
    assert serving.throughput_ceiling(d, context) == near(exact) == near(tokens_per_s, rel=1e-3)
    reached = serving.throughput(d, np.array([1, 100, 10_000]), context)
    assert (np.diff(reached) > 0).all() and reached[-1] < exact < 1.01 * reached[-1]


def test_without_a_cache_arithmetic_is_the_ceiling():
    flops = 2 * (P8 - TABLE8) + 4 * 32 * 32 * 128 * 1
    assert serving.throughput_ceiling(h100("llama3.1-8b"), 1) == near(F / flops)


def test_cards_share_the_work_evenly():
    for count in ("read", "all"):
        one, eight = (h100("llama3.1-70b", gpus=n, count=count) for n in (1, 8))
        for step in (lambda d: serving.decode_step(d, 4, 5000), lambda d: serving.prefill(d, 5000, 3)):
            alone, shared = step(one), step(eight)
            for part in ("linear", "attention"):
                assert getattr(alone, part).flops == near(8 * getattr(shared, part).flops)
                assert getattr(alone, part).bytes == near(8 * getattr(shared, part).bytes)


def test_prompts_in_a_batch_add_up():
    d = h100("llama3.1-8b", count="all")
    assert serving.prefill(d, 5000, 3).cost.flops == near(3 * serving.prefill(d, 5000).cost.flops)
    assert serving.prefill(d, 5000, 3).attention.bytes == 3 * 5000 * K8  # the cache, written


def test_blended_intensity():
    batch, context = 32, 8192
    step = serving.decode_step(h100("llama3.1-8b", count="all"), batch, context)
    flops = 2 * P8 * batch + 4 * 32 * 32 * 128 * context * batch
    assert step.cost.flops == flops
    assert step.cost.intensity == near(flops / (2 * P8 + batch * context * K8))
    assert step.time == near(max(flops / F, (2 * P8 + batch * context * K8) / BETA))
    assert step.bound == "memory"


def test_only_short_contexts_become_compute_bound():
    d = h100("llama3.1-8b")
    assert serving.decode_step(d, 4096, 64).bound == "compute"
    assert list(serving.decode_step(d, np.array([64, 4096]), 32_768).bound) == ["memory", "memory"]


def test_the_floor_is_at_most_the_parts_in_turn():
    d = h100("llama3.1-8b")
    step = serving.decode_step(d, np.array([1, 300, 4096]), np.array([1, 100, 4096]))
    assert (step.time <= step.time_in_turn * (1 + 1e-12)).all()
    assert step.time_in_turn[2] > step.time[2]


# ------------------------------------------------------------------ 08 prefill attention, TTFT


def test_ttft_of_the_8b():
    d = h100("llama3.1-8b", count="all")
    step = serving.prefill(d, 8192)
    assert step.linear.flops == 2 * P8 * 8192 == near(131.6e12, rel=5e-4)
    assert step.attention.flops == near(2 * 32 * 32 * 128 * 8192**2) == near(17.6e12, rel=2e-3)
    assert serving.ttft(d, 8192) == near(150.8e-3, rel=5e-4)
    long = serving.prefill(d, 131_072)
    assert serving.ttft(d, 131_072) == near(6.68, abs=0.005)
    assert long.attention.flops / long.cost.flops == near(2 / 3, abs=0.02)


@pytest.mark.parametrize(("model", "tokens"), [("llama3.1-8b", 61_266), ("llama3.1-70b", 107_656)])
def test_attention_overtakes_the_linear_layers(model, tokens):
    m, d = catalog.model(model), h100(model, count="all")
    found = serving.attention_equals_linear(d)
    assert found == near(m.parameters / (m.layers * m.heads * m.head_dim)) == near(tokens, abs=1)


@pytest.mark.parametrize(("model", "tokens"), [("llama3.1-8b", 53_249), ("llama3.1-70b", 104_450)])
def test_attention_overtakes_sooner_where_the_head_is_charged_once(model, tokens):
    d = h100(model)
    found = serving.attention_equals_linear(d)
    assert found == near(tokens, abs=2)
    step = serving.prefill(d, found)
    assert step.attention.flops == near(step.linear.flops, rel=1e-4)


@pytest.mark.parametrize("model", ["gemma2-9b", "gemma3-27b", "gpt-oss-20b", "deepseek-v3"])
def test_attention_overtakes_with_windows_and_latents_too(model):
    d = at_any_length(deploy(model, "h200_sxm", count="all"))
    length = serving.attention_equals_linear(d)
    step = serving.prefill(d, length)
    assert step.attention.flops == near(step.linear.flops, rel=1e-6)


def test_narrow_windows_everywhere_never_overtake():
    assert serving.attention_equals_linear(h100("phi3-mini")) == np.inf


def test_windowed_prefill_is_a_band_of_the_square():
    m, length = catalog.model("phi3-mini"), 4096
    pairs = sum(min(i + 0.5, 2048) for i in range(length))  # half of the diagonal, as in L^2 / 2
    flops = serving.prefill_attention_flops(m, length)
    assert flops == near(4 * 32 * 32 * 96 * pairs, rel=1e-3)


def test_prefill_reads_the_head_once_a_prompt():
    everything, needed = (serving.prefill(h100("llama3.1-8b", count=c), 8192, 2) for c in ("all", "read"))
    saved = 2 * TABLE8 * 2 * 8192 + 2 * TABLE8 * 2 * 8191
    assert everything.linear.flops - needed.linear.flops == near(saved)


HANDED_ON_8B = 32 * (2 * 4096 + 2 * (4096 + 1024) + 2 * 4096 + 3 * (4096 + 14336))  # q, k and v, o; the MLP


def test_a_short_prompt_waits_for_the_weights():
    step = serving.prefill(h100("llama3.1-8b"), 16)
    assert step.bound == "memory"
    assert step.time == near((2 * (P8 - TABLE8) + 16 * (K8 + 2 * HANDED_ON_8B)) / BETA)


def test_a_prompts_bytes_are_activations_as_well():
    m = catalog.model("llama3.1-8b")
    assert serving.linear_numbers(m) == HANDED_ON_8B
    layers = {label: shape for label, shape in m.linear_layers().items() if label != "head"}
    whole = [serving.prefill(h100("llama3.1-8b", count="all"), length).cost for length in (8192, 131_072)]
    one_by_one = [
        m.layers * sum(cost.linear(rows, *shape).bytes - 2 * shape[0] * shape[1] for shape in layers.values())
        for rows in (8192, 131_072)
    ]
    assert [c.reads["activations"] for c in whole] == near(one_by_one)
    assert [c.intensity for c in whole] == near([2483, 9173], rel=5e-4)
    assert [c.bytes / BETA for c in whole] == near([17.9e-3, 215e-3], rel=3e-3)


def test_activations_of_eight_bits_are_half_as_many_bytes_and_cards_share_them():
    one, other = (h100("llama3.1-8b", dtype=dtype) for dtype in ("bf16", "fp8"))
    read = [serving.prefill(d, 4096).linear.reads["activations"] for d in (one, other)]
    assert read[0] == 2 * read[1]
    four = serving.prefill(h100("llama3.1-8b", gpus=4), 4096).linear.reads["activations"]
    assert four == near(read[0] / 4)


def test_a_token_hands_on_what_its_own_experts_take():
    """A mixture counted by hand: Mixtral's two of eight experts, and no head."""
    d, width, kv = 4096, 14336, 1024
    by_hand = 32 * (2 * d + 2 * (d + kv) + 2 * d + (d + 8) + 2 * 3 * (d + width))
    assert serving.linear_numbers(catalog.model("mixtral-8x7b")) == by_hand


# ---------------------------------------------------------------------------- 09 the step law


def test_a_law_turns_a_floor_into_a_time():
    law = step_law.StepLaw(slope=1.25, overhead=2e-3)
    assert law.efficiency == 0.8
    d = h100("llama3.1-8b")
    assert serving.tpot(d, 4, 1000, law) == near(1.25 * serving.tpot(d, 4, 1000) + 2e-3)
    with pytest.raises(ValueError, match="knows nothing of prompts; give law="):
        serving.ttft(d, 1000, law=law)
    assert serving.throughput(d, 4, 1000, law) == near(4 / serving.tpot(d, 4, 1000, law))

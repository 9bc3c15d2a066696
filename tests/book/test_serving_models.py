"""Every model on every card: experts, windows, latents, symbols, arrays, refusals."""

import dataclasses
import time

import numpy as np
import pytest
import sympy

from book import catalog, serving
from book.serving import deploy

BETA = 3.35e12  # H100 SXM
P8 = 8_030_261_248
K8 = 2 * 32 * 8 * 128 * 2
near = pytest.approx


def h100(model, **options):
    return deploy(model, "h100_sxm", **options)


def test_experts_touched():
    assert serving.experts_touched(8, 2, 8) == near(7.2, abs=0.01)
    assert serving.experts_touched(256, 8, 32) == near(163.3, abs=0.05)
    assert serving.experts_touched(256, 8, 1) == near(8)


def test_a_mixture_reads_more_of_itself_in_a_larger_batch():
    m = catalog.model("mixtral-8x7b")
    one, many = serving.weight_bytes_read(m, 1), serving.weight_bytes_read(m, 10_000)
    assert one == 2 * serving.active_parameters(m)
    assert many == near(2 * (m.parameters - m.vocab * m.d_model))


# A vendor's active count leaves out the input table or not; either way it lies in between. GLM's
# leaves out the head, too.
@pytest.mark.parametrize("model", [m for m in catalog.models() if m.experts], ids=lambda m: m.id)
def test_active_parameters_match_the_label(model):
    low, high = (serving.active_parameters(model, count) for count in ("read", "all"))
    label = model.label_active_parameters
    low -= model.parameter_parts["head"] if model.id == "glm4.5-air" else 0
    assert 0.98 * low < label < 1.02 * high


@pytest.mark.parametrize("model", catalog.models(), ids=lambda m: m.id)
def test_every_model_runs_on_every_card(model):
    for card in catalog.accelerators():
        d = deploy(model, card)
        step = serving.decode_step(d, 4, 1000)
        assert 0 < step.time < serving.prefill(d, model.max_context).time
        assert step.attention.bytes == near(4 * serving.kv_bytes(model, 1000))
        assert serving.throughput(d, 4, 1000) < serving.throughput_ceiling(d, 1000)
        assert serving.crossover_context(d, 4) > 0


@pytest.mark.parametrize(
    "model", ["gemma2-9b", "gemma3-27b", "phi3-mini", "deepseek-v3", "llama3.1-8b", "llama4-scout"]
)
def test_at_the_crossover_both_times_are_equal(model):
    d = deploy(dataclasses.replace(catalog.model(model), max_context=10**9), "h200_sxm", gpus=2)
    for batch in (1, 64):
        context = serving.crossover_context(d, batch)
        if np.isfinite(context):
            step = serving.decode_step(d, batch, context)
            assert step.weight_time == near(step.kv_time)
        else:  # the window is full, and the cache is smaller than the weights for ever
            step = serving.decode_step(d, batch, 10**9)
            assert step.weight_time > step.kv_time


def test_symbols_go_in_and_the_formula_comes_out():
    batch, context = sympy.symbols("B S", positive=True)
    step = serving.decode_step(h100("llama3.1-8b", count="all"), batch, context)
    expected = 2 * P8 + batch * context * K8
    assert sympy.simplify(sympy.nsimplify(step.cost.bytes) - expected) == 0


def test_short_formulas_are_those_of_the_text():
    p, w, n, h, g, dim, s = sympy.symbols("P W N H G d s", positive=True)
    kappa, b, context, length, beta, c, r = sympy.symbols("kappa B S L beta C r", positive=True)
    short = serving.short
    assert short.kv_per_token(n, g, dim, s) == 2 * n * g * dim * s
    step = short.decode_step(p, w, n, h, dim, kappa, b, context)
    assert sympy.expand(step.flops - 2 * p * b - 4 * n * h * dim * context * b) == 0
    assert sympy.expand(step.bytes - w - b * context * kappa) == 0
    prompt = short.prefill_flops(p, n, h, dim, length)
    assert sympy.expand(prompt - 2 * p * length - 2 * n * h * dim * length**2) == 0
    assert sympy.simplify(short.attention_equals_linear(p, n, h, dim) - p / (n * h * dim)) == 0
    assert short.crossover_context(w, b, kappa) == w / (b * kappa)
    assert short.throughput_ceiling(beta, context, kappa) == beta / (context * kappa)
    assert sympy.simplify(short.sequences(c, w, r, kappa, context) - (c - w - r) / (kappa * context)) == 0


@pytest.mark.parametrize("model", ["llama2-7b", "llama3.1-8b", "llama3.1-70b", "qwen3-32b"])
def test_short_formulas_give_the_numbers_of_the_long_ones(model):
    m, short = dataclasses.replace(catalog.model(model), max_context=131_072), serving.short
    d = h100(m, count="all")
    kappa = short.kv_per_token(m.layers, m.kv_heads, m.head_dim)
    assert kappa == serving.kv_bytes_per_token(m)
    step = short.decode_step(m.parameters, 2 * m.parameters, m.layers, m.heads, m.head_dim, kappa, 7, 999)
    long = serving.decode_step(d, 7, 999)
    assert (step.flops, step.bytes) == near((long.cost.flops, long.cost.bytes))
    prompt = short.prefill_flops(m.parameters, m.layers, m.heads, m.head_dim, 5000)
    assert prompt == near(serving.prefill(d, 5000).cost.flops)
    assert short.crossover_context(2 * m.parameters, 7, kappa) == near(serving.crossover_context(d, 7))
    assert short.throughput_ceiling(BETA, 9999, kappa) == near(serving.throughput_ceiling(d, 9999))
    equal = short.attention_equals_linear(m.parameters, m.layers, m.heads, m.head_dim)
    assert equal == near(serving.attention_equals_linear(d))


def test_a_million_design_points_take_about_a_second():
    rng, n = np.random.default_rng(0), 10**6
    d = h100(
        "llama3.1-70b",
        gpus=rng.choice([1, 2, 4, 8], n),
        weight_itemsize=rng.choice([0.5, 1, 2], n),
        kv_itemsize=rng.choice([1, 2], n),
    )
    batch, context = rng.integers(1, 512, n), rng.integers(1, 131_072, n)
    start = time.process_time()  # of this process: no neighbour counts
    floors = serving.decode_step(d, batch, context).time
    seconds = time.process_time() - start
    assert floors.shape == (n,)
    assert seconds < 5  # 0.3 s when nothing else runs
    one = h100(
        "llama3.1-70b",
        gpus=int(d.gpus[7]),
        weight_itemsize=float(d.weight_itemsize[7]),
        kv_itemsize=int(d.kv_itemsize[7]),
    )
    assert serving.decode_step(one, int(batch[7]), int(context[7])).time == near(floors[7])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": 0}, "gpus = 0"),
        ({"weight_itemsize": -0.5}, "weight_itemsize = -0.5"),
        ({"count": "some"}, "count = 'some'.*'read' or 'all'"),
        ({"dtype": "fp4"}, "no fp4 rate"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        h100("llama3.1-8b", **options)


def test_bad_sizes_are_refused_by_name():
    with pytest.raises(ValueError, match="batch = 0"):
        serving.decode_step(h100("llama3.1-8b"), 0, 10)
    with pytest.raises(ValueError, match="length = -1"):
        serving.prefill(h100("llama3.1-8b"), -1)

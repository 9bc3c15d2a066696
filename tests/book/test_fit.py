"""Does it fit, and what would; what can't be asked is refused with the field, its value and a remedy."""

import re

import numpy as np
import pytest
import sympy

from book import catalog, serving
from book.serving import deploy, fit, splits

near = pytest.approx
H100 = catalog.accelerator("h100_sxm")


def h100(model, **options):
    return deploy(model, "h100_sxm", **options)


def test_the_impossible_state_that_chapter_07_once_opened_on():
    found = fit(h100("llama3.1-8b"), 64, 32_768)
    assert found.needed == 2 * 8_030_261_248 + 64 * 32_768 * 131_072 == near(291e9, rel=1e-3)
    assert (found.fits, found.sequences, found.cards) == (False, 14, 4)
    assert found.sentence == (
        "does not fit: needs 291 GB; this card has 85.0 GB, of which 76.5 GB may be used; "
        "14 sequences of 32,768 tokens would; 4 cards would hold all"
    )


@pytest.mark.parametrize("context", [512, 8192, 131_072])
def test_the_sequences_that_fit_do_and_one_more_does_not(context):
    d = h100("llama3.1-8b")
    most = int(fit(d, 1, context).sequences)
    assert fit(d, most, context).fits and not fit(d, most + 1, context).fits


@pytest.mark.parametrize("model", ["llama3.1-70b", "phi4", "qwen3-235b-a22b", "deepseek-v3", "gpt-oss-120b"])
def test_the_least_number_of_cards_holds_all_and_the_number_before_does_not(model):
    found = fit(h100(model), 16, 8192)
    numbers = splits(found.deployment.model)
    at = numbers.index(found.cards)
    assert fit(h100(model, gpus=numbers[at]), 16, 8192).fits
    assert at == 0 or not fit(h100(model, gpus=numbers[at - 1]), 16, 8192).fits


def test_cards_are_those_that_heads_can_be_dealt_out_to():
    assert splits(catalog.model("llama3.1-70b")) == (1, 2, 4, 8, 16, 32, 64)  # beyond 8, KV heads are copied
    assert splits(catalog.model("phi4")) == (1, 2, 5, 10, 20, 40)  # 40 heads, 10 KV heads
    assert splits(catalog.model("qwen2.5-7b")) == (1, 2, 4, 28)
    for model in catalog.models():
        for gpus in splits(model):
            assert model.heads % gpus == 0
            assert serving.kv_share(model, gpus) >= 1 / gpus


def test_where_the_latent_is_copied_more_cards_share_the_weights_only():
    one, many = (fit(deploy("deepseek-v3", "h200_sxm", weight_itemsize=1, gpus=n), 8, 8192) for n in (8, 128))
    assert one.cache == many.cache and one.weights == 16 * many.weights
    assert fit(one.deployment, 10**6, 131_072).cards is None
    assert "no number of these cards up to 128 would hold all" in fit(one.deployment, 10**6, 131_072).sentence


SENTENCES = {
    (
        "llama3.1-8b",
        8,
        8192,
    ): "fits: needs 24.7 GB of the 76.5 GB that may be used of 85.0 GB; 56 sequences of "
    "8,192 tokens would fit",
    (
        "llama3.1-70b",
        1,
        8192,
    ): "does not fit: needs 144 GB; this card has 85.0 GB, of which 76.5 GB may be used; "
    "the weights alone take 141 GB; 2 cards would hold all",
}


@pytest.mark.parametrize("asked", SENTENCES, ids=str)
def test_sentences(asked):
    model, batch, context = asked
    assert fit(h100(model), batch, context).sentence == SENTENCES[asked]


def test_sentences_of_several_cards_and_of_one_sequence():
    several = fit(h100("deepseek-v3", gpus=8, checkpoint="fp8"), 1, 8192)
    assert re.match(r"does not fit: needs 86\.\d GB on each card, which has 85\.0 GB", several.sentence)
    # 70B in FP8: room for one sequence of 16,384 tokens, and for none of the longest
    beside = h100("llama3.1-70b", weight_itemsize=1)
    assert "; 1 sequence of 16,384 tokens would; " in fit(beside, 2, 16_384).sentence
    assert "; not one sequence of 131,072 tokens would; " in fit(beside, 1, 131_072).sentence


def test_the_same_bytes_as_capacity_and_as_the_floor():
    d = h100("llama3.1-8b", gpus=2)
    found = fit(d, 16, 4096)
    assert found.there - found.weights == near(serving.cache_bytes(d))
    assert found.sequences == serving.sequences(d, 4096)
    assert found.cache == near(serving.decode_step(d, 16, 4096).attention.bytes)
    assert found.memory == H100.usable


def test_memory_fraction_and_reserve_are_those_of_the_capacity():
    d = h100("llama3.1-8b")
    room = {"memory": 80e9, "fraction": 0.8, "reserve": 5e9}
    assert fit(d, 1, 8192, **room).there == near(0.8 * 80e9 - 5e9)
    assert fit(d, 1, 8192, **room).sequences == serving.sequences(d, 8192, **room)
    with pytest.raises(ValueError, match=r"fraction = 1\.1.*from 0 to 1"):
        fit(d, 1, 8192, fraction=1.1)


def test_arrays_answer_element_by_element_and_have_no_sentence():
    found = fit(h100("llama3.1-8b"), np.array([1, 64]), np.array([8192, 32_768]))
    assert list(found.fits) == [True, False] and list(found.sequences) == [56, 14]
    with pytest.raises(ValueError, match="batch = .*ask for each"):
        _ = found.sentence


# ------------------------------------------------------------------------- what can't be asked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": 1.5}, "gpus = 1.5: cards come whole"),
        ({"gpus": 64}, "gpus = 64: Llama-3.1-8B has 32 heads to deal out; take 32 at most"),
        ({"gpus": np.array([1, 2, 2.5])}, "gpus = 2.5: cards come whole"),
        ({"weight_itemsize": float("inf")}, "weight_itemsize = inf: bytes of a stored number"),
        ({"weight_itemsize": 0}, "weight_itemsize = 0: bytes of a stored number"),
        ({"kv_itemsize": float("nan")}, "kv_itemsize = nan: bytes of a stored number"),
        ({"weight_itemsize": {"experts": 0, "others": 2}}, r"weight_itemsize\['experts'\] = 0"),
    ],
)
def test_deployments_that_can_not_exist(options, message):
    with pytest.raises(ValueError, match=message):
        h100("llama3.1-8b", **options)


@pytest.mark.parametrize(
    ("batch", "context", "message"),
    [
        (0.5, 100, "batch = 0.5: a step needs one sequence at least"),
        (float("inf"), 100, "batch = inf"),
        (1, 0, "context = 0: there is one token at least"),
        (1, 131_073, "context = 131073: Llama-3.1-8B takes 131,072 tokens at most"),
        (np.array([1, 0]), 100, "batch = 0"),
        (1, np.array([5, 10**6]), r"context = 1e\+06"),
    ],
)
def test_requests_that_can_not_exist_are_refused_by_every_result(batch, context, message):
    d = h100("llama3.1-8b")
    for ask in (fit, serving.decode_step, serving.tpot, serving.throughput):
        with pytest.raises(ValueError, match=message):
            ask(d, batch, context)
    for ask in (serving.prefill, serving.ttft):
        with pytest.raises(ValueError, match=message.replace("context", "length")):
            ask(d, context, batch)


def test_symbols_have_no_value_yet_and_pass():
    gpus, size, batch = sympy.symbols("n w B", positive=True)
    d = h100("llama2-7b", weight_itemsize=size, count="all")
    assert serving.decode_step(d, batch, 100).linear.bytes == catalog.model("llama2-7b").parameters * size
    serving.possible(d.model, batch=batch, context=gpus)

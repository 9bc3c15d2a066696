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


M3_MAX = {"model": "llama3.1-70b", "accelerator": "m3_max_40c", "dtype": "fp16"}


def test_a_card_with_no_link_is_not_told_to_take_more_of_its_kind():
    found = fit(deploy(**M3_MAX), 1, 8192)
    assert (found.fits, found.cards) == (False, None)
    assert found.sentence.endswith("; it has no link to another, so more of them would not help")
    assert splits(found.deployment.model, found.deployment.accelerator) == (1,)
    with pytest.raises(catalog.NoLink, match=r"gpus = 8: Apple M3 Max.* has no link .*; take 1\."):
        deploy(**M3_MAX, gpus=8)


@pytest.mark.parametrize(
    ("model", "card", "batch", "words"),
    [
        ("llama3.1-70b", "h100_sxm", 128, "; 8 cards would hold all"),
        ("llama3.1-405b", "h100_sxm", 1, "; 16 cards would hold all, if so many can be joined"),
        (
            "llama3.1-70b",
            "h100_nvl",
            16,
            "; 4 cards would hold all, if so many can be joined",
        ),  # its bridge joins a pair
    ],
)
def test_more_cards_than_are_commonly_joined_are_said_with_a_condition(model, card, batch, words):
    assert fit(deploy(model, card), batch, 8192).sentence.endswith(words)


@pytest.mark.parametrize("model", catalog.models(), ids=lambda m: m.id)
def test_a_deployment_exists_on_as_many_cards_as_splits_says_and_on_no_others(model):
    there = splits(model)
    for gpus in range(1, min(model.heads, 40) + 1):
        if gpus in there:
            assert h100(model, gpus=gpus).gpus == gpus
        else:
            with pytest.raises(ValueError, match=f"gpus = {gpus}: {model.name}'s heads, .* take one of 1, "):
                h100(model, gpus=gpus)


def test_one_sequence_is_singular():
    assert fit(h100("llama3.1-70b", weight_itemsize=1), 1, 16_384).sentence.endswith(
        "; 1 sequence of 16,384 tokens would fit"
    )


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
        (
            {"weight_itemsize": 16},
            "weight_itemsize = 16: bytes of a stored number, from 0.125 to 8; 2 for bf16",
        ),
        ({"weight_itemsize": 1e-9}, "weight_itemsize = 1e-09: bytes of a stored number"),
        (
            {"weight_itemsize": "fp8"},
            "weight_itemsize = 'fp8': bytes of a stored number, not a name.*checkpoint",
        ),
        ({"kv_itemsize": {"k": 1}}, "kv_itemsize = {'k': 1}: one number for all; only weights have parts"),
        ({"weight_itemsize": {}}, "weight_itemsize says nothing of 'input table'"),
        ({"weight_itemsize": {"blok": 1, "others": 2}}, "weight_itemsize names 'blok'"),
        ({"gpus": np.array([1, 2, 3])}, "gpus = 3: Llama-3.1-8B's heads, 32 with 8 for keys and values"),
        ({"gpus": 12}, "gpus = 12: .*take one of 1, 2, 4, 8, 16, 32"),
    ],
)
def test_deployments_that_can_not_exist(options, message):
    with pytest.raises(ValueError, match=message):
        h100("llama3.1-8b", **options)


@pytest.mark.parametrize("what", ["memory", "fraction", "reserve"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_a_memory_that_can_not_be_is_refused_by_every_capacity(what, value):
    d = h100("llama3.1-8b")
    for ask in (
        lambda room: fit(d, 1, 8192, **room),
        lambda room: serving.sequences(d, 8192, **room),
        lambda room: serving.cache_bytes(d, **room),
        lambda room: serving.kv_capacity(d, **room),
    ):
        with pytest.raises(ValueError, match=f"{what} = {value}: "):
            ask({what: value})


def test_a_cache_holds_whole_tokens_but_a_step_may_have_a_mean():
    d = h100("llama3.1-8b")
    with pytest.raises(ValueError, match=r"context = 8192\.5: a cache holds whole tokens"):
        fit(d, 1, 8192.5)
    assert serving.decode_step(d, 1, 8192.5).time > serving.decode_step(d, 1, 8192).time


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


@pytest.mark.parametrize("room", [{"memory": -5}, {"memory": 0}, {"reserve": -1e12}], ids=repr)
def test_a_memory_that_can_not_be_is_refused(room):
    (name, value), *_ = room.items()
    for asked in (
        lambda: fit(h100("llama3.1-8b"), 1, 1000, **room),
        lambda: serving.cache_bytes(h100("llama3.1-8b"), **room),
    ):
        with pytest.raises(ValueError, match=f"{name} = {value:g}".replace("+", r"\+")):
            asked()


def test_the_room_for_sliding_windows_is_the_same_where_a_step_runs_and_where_it_fits():
    from book.serving.step_terms import reached

    d = h100("gemma3-27b", gpus=2)
    fits = fit(d, 1, 100_000).sequences
    assert fits >= 2 and int(reached(d, 10_000, 100_000)) == fits

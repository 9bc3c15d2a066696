"""What memory holds: the sliders' sentence and `serving.fit` say the same; no start is impossible."""

import itertools

import pytest

from book import catalog, serving
from book.widgets.applied import applied
from book.widgets.explorer import explore
from book.widgets.position import position
from book.widgets.remarks import memory
from tests import formulas

CARDS = ["h100_sxm", "h200_sxm", "b200", "l4", "t4"]
HOLDING = tuple(f for f in formulas.ALL if f.capacity)
MODELS = ("llama3.2-1b", "llama3.1-8b", "llama3.1-70b", "llama3.1-405b")


def said(formula, card="h100_sxm", **moves):
    explorer = explore(formula, [card], dtype=catalog.accelerator(card).default_dtype)
    explorer.move(**moves)
    return memory(formula, position(explorer), explorer.preset)


def preset(model):
    return catalog.model(model).name


# ------------------------------------------------------------------------------ as serving says it


@pytest.mark.parametrize("card", ["h100_sxm", "h200_sxm", "l4"])
@pytest.mark.parametrize("model", MODELS)
def test_a_decode_step_holds_what_serving_fit_says(model, card):
    f = formulas.decode_step
    explorer = explore(f, [card], dtype="bf16")
    for batch, context, w in itertools.product((1, 64, 1024), (512, 32_768, 131_072), (0.5, 2)):
        found = serving.fit(serving.deploy(model, card, weight_itemsize=w), batch, context)
        at = {"batch": batch, "context": context, "weight_itemsize": w, "preset": preset(model)}
        explorer.move(**at)
        here = position(explorer)
        held = f.held(**here)
        assert held["needed"] == pytest.approx(found.needed) and held["there"] == pytest.approx(found.there)
        assert held["sequences"] == found.sequences
        one = memory(f, here, explorer.preset)
        assert (one.state == "fits") == found.fits
        if not found.fits:
            would = "No number of these cards" if found.cards is None else f"{found.cards} card"
            assert would in one.sentence


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_cards_share_weights_and_caches_as_serving_says(gpus):
    f = formulas.kv_capacity
    explorer = explore(f, ["h200_sxm"])
    for model, context in itertools.product(("llama3.1-8b", "llama3.1-70b"), (5120, 65_536)):
        found = serving.fit(serving.deploy(model, "h200_sxm", weight_itemsize=1, gpus=gpus), 1, context)
        at = {"gpus": gpus, "context": context, "weight_itemsize": 1, "fraction": 0.9}
        explorer.move(**at, preset=preset(model))
        held = f.held(**position(explorer))
        assert held["weights"] == pytest.approx(found.weights)
        assert held["sequences"] == found.sequences == f(**position(explorer))


def test_what_no_step_reads_is_in_memory_all_the_same():
    explorer = explore(formulas.decode_floor, ["h100_sxm"], model="llama3.1-8b")
    assert "without" in explorer.preset
    assert formulas.decode_floor.held(**position(explorer))["needed"] == 2 * 8_030_261_248


# --------------------------------------------------------------------------------- the sentences


def test_it_fits_and_how_many_more_would():
    assert said(formulas.decode_step, batch=32, context=4096).sentence == (
        "It fits: 33.2 GB of the 76.5 GB that an engine may use of a card's 85.0 GB. "
        "There is room for 112 of these sequences."
    )


def test_it_does_not_fit_and_what_would():
    assert said(formulas.decode_step, batch=64, context=32_768).sentence == (
        "Does not fit: it needs 291 GB on a card of 85.0 GB, of which an engine may use 76.5 GB. "
        "There is room for 14 of these sequences. 4 cards would hold all of it."
    )


def test_weights_that_are_too_much_leave_no_room_to_speak_of():
    one = said(formulas.decode_step, "l4", preset=preset("llama3.1-405b"), batch=1)
    assert one.state == "lacks" and "The weights alone are too much." in one.sentence
    assert "There is room" not in one.sentence


@pytest.mark.parametrize(
    ("formula", "moves", "sentence"),
    [
        (
            formulas.decode_step,
            {"context": 2**20},
            "Llama-3.1-8B takes contexts of up to 131,072 tokens: a longer one can't be served.",
        ),
        (
            formulas.prefill,
            {"length": 2**20},
            "Llama-3.1-8B takes contexts of up to 131,072 tokens: a longer one can't be served.",
        ),
        (
            formulas.decode_attention,
            {"heads": 33, "kv_heads": 8},
            "Every KV head serves as many query heads: 33 of these can't share 8 evenly.",
        ),
        (
            formulas.decode_attention,
            {"heads": 8, "kv_heads": 16},
            "Every KV head serves as many query heads: 8 of these can't share 16 evenly.",
        ),
    ],
)
def test_what_can_not_be_whatever_the_memory_says_why(formula, moves, sentence):
    one = said(formula, **moves)
    assert one.state == "broken" and one.sentence.startswith(sentence)


def test_what_can_not_be_and_does_not_fit_either_gives_both_reasons():
    one = said(formulas.decode_step, context=2**20, batch=1024)
    assert one.state == "broken"
    assert "a longer one can't be served. Does not fit: it needs 141 TB on a card of 85.0 GB" in one.sentence
    short = said(formulas.decode_attention, heads=33, kv_heads=8, batch=1, context=128)
    assert "fit" not in short.sentence


# ------------------------------------------------------------------------------- a step's terms


def test_without_the_sequences_that_run_there_is_no_sum_and_it_says_so():
    told = explore(formulas.step_terms, [], group=1, gpus=1).summary()
    assert "There is no sum at this position, for want of: sequences that run." in told
    assert "No measured row is of this engine on so many of these cards." in told and "add up" not in told


def test_users_who_have_no_room_wait():
    asked = {"group": 2, "gpus": 1, "prompt": 8192, "answer": 8192}
    assert (
        "35.6 of 128 run at a time, the others wait."
        in explore(formulas.step_terms, [], users=128, **asked).summary()
    )
    assert "wait" not in explore(formulas.step_terms, [], users=4, **asked).summary()


def test_heads_that_do_not_come_out_even_on_so_many_cards():
    uneven = [
        (m.name, gpus)
        for m in catalog.models()
        for gpus in (2, 4, 8)
        if m.name in formulas.decode_floor.presets() and m.heads % gpus
    ]
    for model, gpus in uneven:
        label = next(iter(formulas.decode_floor.presets()[model]))
        one = said(formulas.decode_floor, preset=f"{model} / {label}" if label else model, gpus=gpus)
        assert one.state == "broken" and f"evenly to {gpus} cards" in one.sentence


def test_sliders_that_make_a_model_of_their_own_know_no_longest_context():
    assert said(formulas.decode_attention, context=2**20, batch=1).state == "fits"
    named = said(formulas.decode_attention, preset=preset("llama2-7b"), context=8192, batch=1)
    assert named.sentence.startswith("Llama-2-7B takes contexts of up to 4,096 tokens")


# --------------------------------------------------------------------------------- where they start


@pytest.mark.parametrize("formula", formulas.ALL, ids=lambda f: f.name)
def test_no_formula_starts_where_nothing_can_be(formula):
    assert applied(formula)["memory"] in ("", "fits")


def test_every_formula_of_a_whole_model_or_its_cache_knows_the_memory():
    """Weights or a cache in bytes: a symbol of a cache, or a model's parameters."""
    telling = {"kv_itemsize", "parameters"}
    without = [
        f.name for f in formulas.ALL if telling & {p.symbol for p in f.arguments} and f.capacity is None
    ]
    assert without == []


def test_one_layer_fits_on_any_card_wherever_its_sliders_are():
    """So chapter 02's explorer needs no line on memory."""
    f = formulas.linear
    most = {p.symbol: p.high for p in f.parameters if not p.source}
    assert f.evaluate("bytes", **most, itemsize=2) < 0.9 * min(a.usable for a in catalog.accelerators())


# -------------------------------------------------------------------------------- a stated move


def test_a_move_is_made_and_answered_with_every_output():
    told = applied(formulas.decode_step, batch=64, context=32_768, accelerator="b200")
    f = formulas.decode_step
    assert set(f.outputs) < set(told) and told["bound"] == "memory" and told["memory"] == "lacks"
    assert told["kv_time"] == pytest.approx(64 * 32_768 * 131_072 / catalog.accelerator("b200").bandwidth)


def test_an_explorer_stays_where_it_was_moved():
    explorer = explore(formulas.linear, CARDS, model="llama3.1-8b", layer="gate")
    assert applied(explorer, m=1024, k=256)["bound"] == "memory"
    assert applied(explorer, k=32_768)["bound"] == "compute" and explorer.m == 1024

"""What a reader serves: the formula under the sentence is `book.serving`'s, and nothing of it is missing."""

import itertools
import json

import pytest

from book import catalog, serving
from book.catalog import effective_itemsize
from book.formulas.ch00_deployment import deployment
from book.serving.deployment import deploy, splits
from book.widgets import serve

MODELS = [m for m in catalog.models() if m.id in serve.data()["models"]]


def deployments():
    """(model, card, format, people, context, cards) that can be, of every model, card and format."""
    cards = itertools.cycle(catalog.accelerators())
    for model, form, people, context, count in itertools.product(
        MODELS, serve.FORMATS.values(), (1, 48), (1000, 9001), (1, 2, 8)
    ):
        card = next(cards)
        if count in splits(model, card) and context <= model.max_context:
            yield model, card, form, people, context, count


def test_the_formula_is_what_serving_says_of_every_deployment():
    tried = 0
    for model, card, form, people, context, count in deployments():
        weights, cache = effective_itemsize(form.weights), effective_itemsize(form.cache)
        dtype = form.arithmetic if form.arithmetic in card.peaks else card.default_dtype
        d = deploy(model, card, weight_itemsize=weights, kv_itemsize=cache, gpus=count, dtype=dtype)
        at = {
            **deployment.preset_values(model.name),
            **{"batch": people, "context": context, "gpus": count},
            **{"weight_itemsize": weights, "kv_itemsize": cache},
            **{"peak": card.peak(dtype), "bandwidth": card.bandwidth, "capacity": card.usable},
        }
        step, room = serving.decode_step(d, people, context), serving.fit(d, people, context)
        assert deployment(**at) == pytest.approx(step.time, rel=1e-12)
        for part, cost in (("linear", step.linear), ("attention", step.attention)):
            told = deployment.evaluate(f"{part}_intensity", **at)
            assert told == pytest.approx(cost.intensity, rel=1e-12)
        held = deployment.held(**at)
        assert held["needed"] == pytest.approx(room.needed, rel=1e-12)
        assert (held["needed"] <= held["there"]) == room.fits
        tried += 1
    assert tried > 960


def test_every_model_of_the_catalog_can_be_served():
    assert len(MODELS) == len(catalog.models())
    kinds = {(m.attention.type, m.attention.window_kind, m.experts is not None) for m in MODELS}
    assert len(kinds) > 6, "windows, chunks, latents and experts among them"


def test_the_authors_deployment_fits_and_is_one_of_the_choices():
    start, told = serve.START, serve.data()
    assert start.model in told["models"] and start.format in told["formats"]
    form = serve.FORMATS[start.format]
    sizes = {
        "weight_itemsize": effective_itemsize(form.weights),
        "kv_itemsize": effective_itemsize(form.cache),
    }
    d = deploy(start.model, start.card, gpus=start.cards, dtype=form.arithmetic, **sizes)
    assert serving.fit(d, start.people, start.context).fits


def test_every_card_of_the_catalog_can_be_chosen_and_has_all_facts_that_a_formula_may_ask():
    cards = serve.data()["payload"]["accelerators"]
    assert [c["id"] for c in cards] == [c.id for c in catalog.accelerators()]
    assert all({"bandwidth", "capacity"} <= c["facts"].keys() and c["first"] in c["peaks"] for c in cards)


def test_the_script_is_one_statement_of_json_and_small():
    text = serve.script()
    assert text.startswith(f"globalThis.{serve.GLOBAL}=") and text.endswith(";\n")
    assert json.loads(text.split("=", 1)[1][:-2]) == serve.data()
    assert len(text) < 40_000


@pytest.mark.parametrize(
    ("count", "text"), [(8192, "8k"), (1_048_576, "1M"), (1000, "1,000"), (5120, "5k"), (16, "16")]
)
def test_tokens_are_written_short_where_they_are_whole(count, text):
    assert serve.tokens(count) == text


def test_without_scripts_the_sentence_reads_as_the_author_serves():
    shown = serve.static_html()
    assert ">Llama-3.1-70B</option>" in shown and 'value="8k"' in shown and " selected>H100 SXM<" in shown
    assert shown.count("data-serve=") == 6

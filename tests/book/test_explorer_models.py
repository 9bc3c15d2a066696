"""Explorers of whole models: what the dropdowns decide, and the views that a formula has."""

import json
from types import SimpleNamespace

import pytest
from traitlets import TraitError

from book import catalog
from book.widgets.explorer import explore
from book.widgets.position import position
from book.widgets.words import WORDS
from tests import formulas

CARDS = ["h100_sxm", "h200_sxm"]


def step(**more):
    return explore(formulas.decode_step, CARDS, **more)


# ------------------------------------------------------------------------------ who decides what


def test_a_model_decides_its_shape_and_no_slider_does():
    explorer = step(model="llama3.1-70b", batch=32)
    assert explorer.preset == "Llama-3.1-70B" and not explorer.has_trait("heads")
    assert position(explorer)["heads"] == 64
    explorer.preset = "Llama-3.1-8B"
    assert position(explorer)["heads"] == 32 and explorer.batch == 32


def test_it_starts_with_a_model_and_can_not_be_without():
    assert step().preset == "Llama-3.1-8B"
    with pytest.raises(TraitError, match="preset = '': choose one of 'Llama-2-7B'"):
        step().preset = ""
    with pytest.raises(ValueError, match="parameters: decode_step has the sliders batch, context"):
        step(parameters=7e9)


def test_where_sliders_have_the_shape_a_model_is_left_when_one_moves():
    explorer = explore(formulas.kv_bytes_per_token, CARDS, model="llama3.1-70b")
    assert (explorer.preset, explorer.layers) == ("Llama-3.1-70B", 80)
    explorer.kv_heads = 64
    assert explorer.preset == ""


def test_a_model_can_be_counted_in_two_ways():
    counted = [
        explore(formulas.decode_floor, CARDS, model="llama3.1-8b", layer=layer)
        for layer in (None, "all parameters")
    ]
    assert [position(e)["parameters"] for e in counted] == [7_504_924_672, 8_030_261_248]
    assert {position(e)["stored"] for e in counted} == {8_030_261_248}  # memory holds what no step reads


def test_the_card_decides_the_memory_that_a_program_may_use():
    explorer = explore(formulas.kv_capacity, [*CARDS, "l4"])
    seen = {a["id"]: a["facts"]["capacity"] for a in explorer.payload["accelerators"]}
    assert seen == {id: catalog.accelerator(id).usable for id in [*CARDS, "l4"]}
    assert seen["h200_sxm"] > 141e9
    assert position(explorer)["capacity"] == seen["h100_sxm"]


def test_a_slider_with_few_steps_takes_no_other():
    explorer = step(weight_itemsize=0.5)
    with pytest.raises(TraitError, match=r"weight_itemsize = 1.5: .*one of 0.5 \(4 bit\), .* 2 \(16 bit\)"):
        explorer.weight_itemsize = 1.5


@pytest.mark.parametrize("bits", [4, 4.125, 4.25, 4.5, 8, 16])
def test_a_stored_number_may_have_the_bits_of_every_format_with_scales(bits):
    explorer = step(weight_itemsize=bits / 8, kv_itemsize=bits / 8)
    assert position(explorer)["weight_itemsize"] * 8 == bits
    assert f"w = {bits:g} bit, s = {bits:g} bit" in explorer.summary()
    time = formulas.decode_step.evaluate
    sixteen = time("weight_time", weight_itemsize=2)
    assert time("weight_time", weight_itemsize=bits / 8) == pytest.approx(sixteen * bits / 16)


# ---------------------------------------------------------------------------------------- views


@pytest.mark.parametrize(
    ("formula", "views"),
    [
        (formulas.utilisation, ["roofline", "formula"]),
        (formulas.kv_bytes_per_token, ["formula"]),
        (formulas.kv_capacity, ["bars", "formula"]),
        (formulas.decode_step, ["bars", "roofline", "formula"]),
        (formulas.step_law, ["timeline", "formula"]),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_a_formula_has_the_views_that_it_can_fill(formula, views):
    explorer = explore(formula, CARDS)
    assert [v["kind"] for v in explorer.payload["views"]] == views and explorer.view == views[0]


@pytest.mark.parametrize("formula", formulas.OF_A_MODEL, ids=lambda f: f.name)
def test_every_explorer_fits_a_page_and_comes_out_the_same(formula):
    first, second = (explore(formula, CARDS).static_html() for _ in range(2))
    assert first == second and len(first.encode()) < 41_000
    payload = explore(formula, CARDS).payload
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload


def test_a_view_that_a_formula_lacks_is_refused():
    with pytest.raises(TraitError, match="view = 'roofline': choose one of 'timeline', 'formula'"):
        explore(formulas.step_law, CARDS, view="roofline")


def test_bars_start_along_the_slider_that_makes_their_parts_equal():
    assert step().against == "context" and explore(formulas.prefill, CARDS).against == "length"


def test_the_summary_names_every_part():
    assert step(batch=32, context=4096).summary() == (
        "H100 SXM, bf16, Llama-3.1-8B, at B = 32, S = 4,096, w = 16 bit, s = 16 bit: time per step 9.61 ms, "
        "weights 4.48 ms, KV cache 5.13 ms, arithmetic 555 µs, all users 3,330 token/s, "
        "ceiling of any batch 6,240 token/s, intensity 17.1 FLOP/byte, bound by memory. "
        "It fits: 33.2 GB of the 76.5 GB that an engine may use of a card's 85.0 GB. "
        "There is room for 112 of these sequences."
    )
    assert "utilisation 10.8 %" in explore(formulas.utilisation, CARDS).summary()


def test_every_word_that_a_payload_asks_for_is_there():
    for formula in formulas.ALL:
        payload = explore(formula, CARDS).payload
        wanted = {f"view_{v['kind']}" for v in payload["views"]} | {
            f"preset_{payload['formula']['preset_kind']}"
        }
        wanted |= {word for _, word in (pace for view in payload["views"] for pace in view.get("paces", ()))}
        assert wanted <= set(WORDS)


# ------------------------------------------------------------------------------------- evidence


def test_published_attention_lies_on_the_roofline_at_its_own_sizes():
    explorer = explore(formulas.decode_attention, CARDS, published="decode_attention")
    one = next(s for s in explorer.evidence if s["fixed"].get("heads") == 32)
    assert one["fixed"]["kv_itemsize"] == 2 and one["points"][0]["intensity"] == pytest.approx(4, rel=1e-3)


def test_times_are_values_of_a_formula_in_seconds():
    f = formulas.step_law
    series = catalog.series("decode_step", accelerator="h100_sxm")
    fixed = {**f.preset_values("Llama-3.1-70B"), "batch": 4, "context": 1536, "weight_itemsize": 1}
    points = [{"gpus": p["gpus"], "seconds": p["seconds"]} for p in series.points]
    given = {
        "rung": "published",
        "label": "rows",
        "accelerator": "h100_sxm",
        "fixed": fixed,
        "points": points,
    }
    explorer = explore(f, CARDS, model="llama3.1-70b", evidence=[given], view="formula", against="gpus")
    assert explorer.rungs == ["published"]  # nobody asked for a kernel of ours
    assert [(p["at"]["gpus"], p["value"]) for p in explorer.evidence[0]["points"]] == [
        (2, 0.01741),
        (4, 0.01178),
        (8, 0.00911),
    ]


def test_a_point_that_does_not_name_its_model_is_not_put_under_another_ones():
    point = {
        "rung": "timed",
        "accelerator": "h100_sxm",
        "points": [{"batch": 1, "context": 4096, "seconds": 0.01}],
    }
    (one,) = step(evidence=[{**point, "dtype": "bf16"}]).evidence
    assert set(one["points"][0]) == {"at", "value"}


def test_the_button_measures_in_the_models_shape():
    experiment = SimpleNamespace(
        name="decode_step", sizes=("batch", "heads", "head_dim"), axis="batch", sweep={}
    )
    bench = step(model="llama3.1-70b", batch=8).run_here(experiment, measure=lambda *_, **__: None)
    assert bench.sizes() == {"batch": [8], "heads": 64, "head_dim": 128}

"""The explorer as a widget: traits that can be observed and linked, and state that a page can hold."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import ipywidgets
import pytest
from traitlets import TraitError

from book import catalog
from book.formulas.formula import Formula, Parameter, symbol
from book.notebook.source import ROOT
from book.widgets import evidence_series, explorer_payload
from book.widgets.explorer import explore
from tests import formulas

CARDS = ["h100_sxm", "b200", "t4"]
COUNTED = {
    "rung": "counted",
    "label": "counted, k = 1,024, n = 1,024",
    "accelerator": None,
    "points": [{"m": m, "k": 1024, "n": 1024, "intensity": m / (1 + 2 * m / 1024)} for m in (1, 16)],
}


def linear(**more):
    return explore(formulas.linear, CARDS, **more)


# ------------------------------------------------------------------------------------- traits


def test_each_parameter_is_a_trait_that_can_be_observed():
    explorer, seen = linear(m=32), []
    explorer.observe(lambda change: seen.append(change["new"]), "m")
    explorer.m = 64
    assert seen == [64]
    assert explorer.values == {"m": 64, "k": 4096, "n": 14336}


def test_values_and_the_single_traits_are_the_same_thing():
    explorer = linear()
    explorer.values = {**explorer.values, "m": 7, "n": 512}
    assert (explorer.m, explorer.n) == (7, 512)
    with pytest.raises(TraitError, match="'q' is no slider; there is m, k, n"):
        explorer.values = {"q": 1}


def test_links_with_an_ipywidgets_slider_both_ways():
    explorer, control = linear(m=8), ipywidgets.IntSlider(min=1, max=512)
    link = ipywidgets.link((explorer, "m"), (control, "value"))
    assert control.value == 8
    control.value = 100
    assert explorer.m == 100
    explorer.m = 3
    assert control.value == 3
    link.unlink()


def test_the_front_end_moves_the_traits():
    explorer = linear()
    explorer.set_state({"m": 256, "accelerator": "t4", "dtype": "fp16"})
    assert (explorer.m, explorer.accelerator, explorer.dtype) == (256, "t4", "fp16")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"m": 0}, "m = 0: rows in the step must be a whole number from 1 to 8,192"),
        ({"m": 2.5}, "m = 2.5: rows in the step must be a whole number"),
        ({"m": "many"}, "m = 'many'"),
        ({"m": True}, "m = True"),
        ({"m": float("nan")}, "m = nan"),
        ({"accelerator": "h300"}, "accelerator = 'h300': this explorer was given h100_sxm, b200, t4"),
        ({"accelerator": "t4"}, "dtype = 'bf16': T4 has .*fp16.*move"),
        ({"dtype": "fp4"}, "dtype = 'fp4': H100 SXM has .*bf16"),
        ({"view": "pie"}, "view = 'pie': choose one of 'roofline', 'formula'"),
        ({"against": "z"}, "against = 'z': choose one of 'm', 'k', 'n'"),
        ({"preset": "GPT-9 / gate"}, "preset = 'GPT-9 / gate': choose one of"),
        ({"shown": ["tpu"]}, r"shown = \['tpu'\]: this explorer was given"),
        ({"speed": 1}, "speed: no such trait"),
    ],
)
def test_a_wrong_move_is_refused_in_a_sentence_and_nothing_moves(change, sentence):
    explorer = linear(m=32)
    before = explorer.state()
    with pytest.raises(TraitError, match=sentence):
        explorer.move(**change)
    assert explorer.state() == before


def test_card_and_format_move_together():
    explorer = linear()
    explorer.move(accelerator="t4", dtype="fp16")
    assert "T4, fp16" in explorer.summary()


def test_a_whole_float_is_welcome_where_a_whole_number_is_asked():
    explorer = linear(m=16.0)
    assert explorer.m == 16 and isinstance(explorer.m, int)


# ------------------------------------------------------------------------- arguments of explore


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"accelerators": ["h100"]}, catalog.UnknownName, "h100_sxm"),
        ({"accelerators": ["t4", "t4"]}, ValueError, "the same card twice"),
        ({"accelerators": ["t4"]}, TraitError, "dtype = 'bf16': T4 has"),
        ({"dtype": "bf17"}, catalog.UnknownName, "bf16"),
        ({"model": "llama9"}, catalog.UnknownName, "llama"),
        ({"model": "llama3.1-8b", "layer": "gates"}, ValueError, "Llama-3.1-8B has .*gate"),
        ({"published": "lineal"}, catalog.UnknownName, "linear"),
        ({"b": 3}, ValueError, "b: linear has the sliders m, k, n"),
        ({"m": 0}, TraitError, "m = 0"),
        ({"view": "pie"}, TraitError, "view = 'pie'"),
        ({"id": "9 lives"}, ValueError, "start with a letter"),
        ({"evidence": [{**COUNTED, "rung": "felt"}]}, ValueError, "rung = 'felt'; use one of counted"),
        ({"evidence": [{**COUNTED, "points": []}]}, ValueError, "points is empty"),
        ({"evidence": [{"rung": "counted", "points": [{"m": 1}]}]}, ValueError, "can't be placed; give"),
        ({"evidence": [{"rung": "counted", "points": [{"intensity": float("inf")}]}]}, ValueError, "finite"),
    ],
)
def test_bad_input_says_what_to_do(arguments, error, sentence):
    with pytest.raises(error) as refused:
        explore(formulas.linear, **arguments)
    assert re.search(sentence, str(refused.value)), str(refused.value)


def test_a_formula_without_presets_says_so():
    with pytest.raises(ValueError, match="fma_chain has no model presets; leave model out"):
        explore(formulas.fma_chain, model="llama3.1-8b")


def test_a_preset_sets_the_sliders_and_is_left_when_one_moves_away():
    explorer = linear(model="llama3.1-8b", layer="gate")
    assert (explorer.preset, explorer.k, explorer.n) == ("Llama-3.1-8B / gate", 4096, 14336)
    explorer.m = 77
    assert explorer.preset == "Llama-3.1-8B / gate"
    explorer.n = 512
    assert explorer.preset == ""
    explorer.preset = "Llama-3.1-8B / down"
    assert (explorer.k, explorer.n) == (14336, 4096)


def test_every_preset_lies_within_the_sliders_reach():
    ranges = {p.symbol: p for p in explorer_payload.sliders(formulas.linear)}
    for layers in formulas.linear.presets().values():
        for sizes in layers.values():
            assert all(ranges[s].low <= v <= ranges[s].high for s, v in sizes.items())


def test_a_formula_on_no_roofline_needs_no_card():
    square = Formula(
        "square", "A square", "area", "m²", (Parameter("a", "edge", 2, 1, 64),), {"area": symbol("a") ** 2}
    )
    explorer = explore(square, accelerators=[])
    assert explorer.view == "formula"
    assert [v["kind"] for v in explorer.payload["views"]] == ["formula"]
    assert "At a = 2: area 4" in explorer.summary()


def test_a_parameter_can_not_shadow_the_widgets_own_traits():
    clash = Formula("c", "c", "v", "", (Parameter("view", "w", 2, 1, 4),), {"v": symbol("view")})
    with pytest.raises(ValueError, match="parameter view: the explorer has a trait of that name"):
        explore(clash)


# ------------------------------------------------------------------------------------ evidence


def test_counted_points_are_placed_where_they_were_counted():
    (series,) = linear(evidence=[COUNTED]).evidence
    assert series["fixed"] == {"k": 1024, "n": 1024}
    assert series["points"][1] == {"at": {"m": 16}, "intensity": 15.51515}
    assert series["label"] == ""  # rung and sizes are shown by the explorer itself


def test_published_times_become_rates_by_the_formula():
    explorer = linear(published="linear")
    assert {s["accelerator"] for s in explorer.evidence} == {"h100_sxm"}  # no B200, no T4 published
    one = explorer.evidence[0]
    published = catalog.published("linear")[0]
    flops = 2 * published.points[0]["m"] * published.fixed["k"] * published.fixed["n"]
    assert one["points"][0]["rate"] == pytest.approx(flops / published.points[0]["seconds"], rel=1e-6)
    assert one["fixed"] == {**published.fixed, "itemsize": 2}
    assert "vLLM" in one["label"] and "github.com" in one["source"]


def test_the_same_series_twice_is_shown_once():
    evidence = evidence_series.published("linear", CARDS)
    assert len(linear(published="linear", evidence=evidence).evidence) == len(evidence)


def test_rungs_that_were_not_measured_are_still_named():
    assert linear(evidence=[COUNTED]).rungs == ["counted", "timed"]
    assert linear().rungs == []


def test_points_can_be_added_later():
    explorer, seen = linear(), []
    explorer.observe(lambda change: seen.append(len(change["new"])), "evidence")
    explorer.add_points(COUNTED)
    assert seen == [1] and explorer.rungs == ["counted"]


def test_the_button_measures_at_the_sliders_position():
    asked = []

    def measure(experiment, **sizes):
        asked.append(sizes)
        return SimpleNamespace(points=lambda: [COUNTED], _repr_html_=lambda: "<p>a table</p>")

    experiment = SimpleNamespace(
        name="linear", sizes=("m", "k", "n", "batch"), axis="m", sweep={"counted": {"batch": 1}}
    )
    explorer = linear(m=4, k=512, n=512)
    bench = explorer.run_here(experiment, measure)
    bench.button.click()
    assert asked == [{"m": [4], "k": 512, "n": 512, "batch": 1}]
    assert len(explorer.evidence) == 1 and bench.said.value == "<p>a table</p>"
    assert not bench.button.disabled


def test_a_failed_run_is_shown_and_the_button_comes_back():
    def measure(experiment, **sizes):
        raise RuntimeError("no <GPU> here")

    experiment = SimpleNamespace(name="linear", sizes=("m", "k", "n"), axis="m", sweep={})
    bench = linear().run_here(experiment, measure)
    bench.button.click()
    assert "RuntimeError: no &lt;GPU&gt; here" in bench.said.value and not bench.button.disabled


def test_the_button_refuses_an_experiment_with_sizes_that_nothing_gives():
    experiment = SimpleNamespace(name="attention", sizes=("m", "heads"), axis="m", sweep={})
    with pytest.raises(ValueError, match="attention: size heads is neither a slider"):
        linear().run_here(experiment)


# --------------------------------------------------------------------------- what a page receives


def everything():
    return explore(
        formulas.linear, ["h100_sxm", "b200"], model="llama3.1-8b", evidence=[COUNTED], published="linear"
    )


def test_the_page_gets_the_same_bytes_at_every_build():
    first, second = everything(), everything()
    assert first.static_html() == second.static_html()
    assert repr(first) == repr(second) == "Explorer('explore-linear')"


def test_the_html_holds_state_only_and_is_small():
    html = everything().static_html()
    assert len(html.encode()) < 40_000
    assert "<script" not in html
    assert '<p class="rl-words">H100 SXM, bf16, at M = 32' in html


def test_payload_and_state_are_json():
    explorer = everything()
    for value in (explorer.payload, explorer.state()):
        assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_the_mime_bundle_serves_notebook_page_and_paper():
    data, _ = everything()._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= set(data)


def test_the_button_too_leaves_a_page_alive():
    experiment = SimpleNamespace(name="linear", sizes=("m", "k", "n"), axis="m", sweep={})
    data = linear().run_here(experiment)._repr_mimebundle_()
    assert 'class="rl-live"' in data["text/html"]


def test_letters_are_printed_as_in_the_text():
    letters = {
        p["symbol"]: p["letter"] for p in explore(formulas.attainable).payload["formula"]["parameters"]
    }
    assert letters == {"intensity": "I", "peak": "F", "bandwidth": "β"}


def test_the_summary_agrees_with_the_formula():
    assert "intensity 2,731 FLOP/byte" in linear(m=8192, k=8192, n=8192).summary()
    assert "bound by compute" in linear(m=8192).summary()
    assert "0.339 % of peak, bound by memory" in linear(m=1, k=32768, n=131072).summary()


def test_any_text_survives_the_way_through_the_page():
    label = 'it\'s <b>5 > 4</b> & "more" µ'
    explorer = linear(evidence=[{**COUNTED, "label": label}])
    found = {}

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag == "div":
                found.update(attributes)

    Reader().feed(explorer.static_html())
    assert json.loads(found["data-state"])["evidence"][0]["label"] == label
    assert json.loads(found["data-payload"]) == explorer.payload


def test_without_anywidget_the_button_draws_the_explorer_anew_after_each_run():
    code = """
import sys; sys.modules["anywidget"] = None
from types import SimpleNamespace
from tests import formulas
from book.widgets.explorer import explore
point = {"m": 8, "k": 64, "n": 64, "intensity": 3.2, "flops_per_s": 1e12}
series = [{"rung": "timed", "label": "measured-here", "accelerator": None, "points": [point]}]
explorer = explore(formulas.linear, ["h100_sxm"], m=8)
bench = explorer.run_here(SimpleNamespace(name="linear", sizes=("m", "k", "n"), axis="m", sweep={}),
                          lambda *_, **sizes: series)
shown = lambda: bench.drawn.outputs[0]["data"]["text/html"]
before = shown(); bench.run(); after = shown()
print(explorer)
print("rl-live" in before, "measured-here" in before, "measured-here" in after, bench.said.value)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.stdout.splitlines() == [
        "Explorer('explore-linear') (pip install anywidget links it to Python)",
        "True False True ",
    ], done.stderr

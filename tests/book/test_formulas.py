"""The formulas of Part II: the numbers of the text, and those of the long way round."""

import dataclasses
import math

import pytest

from book import catalog, serving
from book.formulas.formula import Formula, Parameter, symbol
from book.formulas.views import Bars, Readouts, Shown
from book.serving import served
from tests import formulas

H100 = catalog.accelerator("h100_sxm")
BF16 = {"peak": H100.peak("bf16"), "bandwidth": H100.bandwidth}
FP8 = {**BF16, "peak": H100.peak("fp8")}
WHOLE = (formulas.decode_step, formulas.prefill, formulas.step_law, formulas.kv_capacity)


def of(formula, model, **values):
    """A formula's value at a model's numbers, on an H100 if nothing else is said."""
    machine = {k: v for k, v in BF16.items() if k in formula.symbols}
    return {**formula.preset_values(model), **machine, **values}


# ------------------------------------------------------------------------- the numbers of the text


def test_03_how_much_of_the_peak_so_many_rows_can_use():
    f = formulas.utilisation
    assert f(m=1, weight_itemsize=2, **BF16) == pytest.approx(0.00339, rel=2e-3)
    assert f(m=32, weight_itemsize=2, **BF16) == pytest.approx(0.108, rel=5e-3)
    assert f(m=2048, weight_itemsize=2, **BF16) == 1
    critical = [f.evaluate("critical", weight_itemsize=s, **at) for s, at in ((2, BF16), (1, FP8), (1, BF16))]
    assert critical == pytest.approx([295.3, 295.4, 147.7], rel=1e-3)  # FP8 moves nothing, int8 half


def test_04_the_floor_of_a_decode_step():
    f, p70 = formulas.decode_floor, "Llama-3.1-70B / all parameters"
    assert f(**of(f, p70, batch=1)) == pytest.approx(42.12e-3, rel=1e-3)
    assert formulas.decode_rate(**of(f, p70, batch=32)) == pytest.approx(759.7, rel=1e-3)
    assert f(**of(f, p70, gpus=8)) == pytest.approx(5.265e-3, rel=1e-3)
    assert f.evaluate("per_user", **of(f, "Llama-3.1-8B / all parameters")) == pytest.approx(208.6, rel=1e-3)
    without = of(f, "Llama-3.1-8B / without the input table")
    assert f.evaluate("per_user", **without) == pytest.approx(223.2, rel=1e-3)
    assert f.evaluate("throughput", **of(f, p70, batch=1024)) == pytest.approx(
        BF16["peak"] / (2 * 70_553_706_496), rel=1e-9
    )  # past the ridge arithmetic sets the rate


def test_05_the_cache_and_what_fits():
    f = formulas.kv_bytes_per_token
    known = {
        "Llama-2-7B": 524_288,
        "Llama-3.1-8B": 131_072,
        "Llama-3.1-70B": 327_680,
        "Llama-3.1-405B": 516_096,
    }
    assert {name: f(**f.preset_values(name)) for name in known} == known
    at = of(f, "Llama-3.1-70B", context=32768, batch=32)
    assert f.evaluate("all", **at) == pytest.approx(343.6e9, rel=1e-3)
    assert f.evaluate("time", **at) == pytest.approx(102.6e-3, rel=1e-3)
    fits = formulas.kv_capacity
    h200 = of(fits, "Llama-3.1-70B", weight_itemsize=1, capacity=catalog.accelerator("h200_sxm").capacity)
    assert fits.evaluate("tokens", **h200) == pytest.approx(171_900, rel=1e-3)
    assert int(fits(**h200)) == 33
    assert fits(**{**h200, "weight_itemsize": 2}) == 0  # the weights alone do not fit


def test_06_only_heads_and_bytes_matter():
    f = formulas.decode_attention
    limits = {n: f.limit.expression.subs({symbol(k): v for k, v in f.preset_values(n).items()}) for n in
              ("Llama-2-7B", "Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B")}  # fmt: skip
    assert [limit.subs(symbol("kv_itemsize"), 2) for limit in limits.values()] == [1, 4, 8, 16]
    long = {"context": 2**20, **f.preset_values("Llama-3.1-8B")}
    assert f(**long) == pytest.approx(4, rel=1e-4) and f(**long, kv_itemsize=1) == pytest.approx(8, rel=1e-4)


def test_07_weights_and_cache_trade_places():
    f = formulas.decode_step
    crossover = [
        f.evaluate("crossover", **of(f, m, batch=b))
        for m in ("Llama-3.1-70B", "Llama-3.1-8B")
        for b in (32, 1)
    ]
    assert crossover == pytest.approx([13_257, 424_213, 3_579, 114_516], rel=1e-3)
    ceilings = [f.evaluate("ceiling", **of(f, m, context=s)) for m, s in
                (("Llama-3.1-70B", 32768), ("Llama-3.1-70B", 8192), ("Llama-3.1-8B", 32768))]  # fmt: skip
    assert ceilings == pytest.approx([312, 1_248, 780], rel=1e-3)


def test_08_a_prompts_two_costs():
    f = formulas.prefill
    assert f.evaluate("crossover", **of(f, "Llama-3.1-8B")) == pytest.approx(61_266, rel=1e-4)
    assert f.evaluate("crossover", **of(f, "Llama-3.1-70B")) == pytest.approx(107_656, rel=1e-4)
    assert f(**of(f, "Llama-3.1-8B", length=8192)) == pytest.approx(150.8e-3, rel=1e-3)
    assert f(**of(f, "Llama-3.1-8B", length=131072)) == pytest.approx(6.68, rel=1e-3)
    intensities = [f.evaluate("intensity", **of(f, "Llama-3.1-8B", length=n)) for n in (8192, 131072)]
    assert intensities == pytest.approx([2_483, 9_173], rel=5e-4)  # activations are bytes as well
    waits = [f.evaluate("memory_time", **of(f, "Llama-3.1-8B", length=n)) for n in (8192, 131072)]
    assert waits == pytest.approx([17.9e-3, 215e-3], rel=3e-3)


def test_09_floors_under_the_published_rows():
    f = formulas.step_law
    at = {**of(f, "Llama-3.1-70B"), "batch": 4, "context": 1536, "weight_itemsize": 1}
    floors = [f.evaluate("floor", **at, gpus=n) for n in (2, 4, 8)]
    assert floors == pytest.approx([10.67e-3, 5.34e-3, 2.67e-3], rel=1e-3)
    law = [f(**at, gpus=n, efficiency=0.5, overhead=0.004) for n in (2, 4, 8)]
    assert law == pytest.approx([2 * floor + 0.004 for floor in floors])


def test_09_a_prompt_in_one_step_stalls_everybody_and_chunks_share_the_stall_out():
    f = formulas.step_law
    at = of(f, "Llama-3.1-8B", batch=32, context=1536, length=8192)
    at |= {"efficiency": 1, "eta_p": 1, "overhead": 0}
    whole, chunked = ({n: f.evaluate(n, **at, chunk=c) for n in f.outputs} for c in (8192, 1000))
    alone = serving.ttft(serving.deploy("llama3.1-8b", H100), 8192)
    assert whole["chunks"] == 1 and chunked["chunks"] == 9
    assert whole["ttft"] == whole["mixed"] == pytest.approx(whole["stall"] + whole["tpot"])
    assert whole["stall"] == pytest.approx(alone)  # in turn a prompt costs what it costs
    assert whole["stall_at_once"] < whole["stall"] - 0.9 * whole["tpot"]  # at once a step is free
    assert whole["stall"] / 9 < chunked["stall"] < whole["stall"] / 8  # the last one looks back on all
    assert chunked["ttft"] == pytest.approx(whole["ttft"] + 8 * whole["tpot"])


@pytest.mark.parametrize("length", [128, 16384])
def test_09_a_prompt_is_charged_as_serving_charges_it_the_head_once(length):
    f, d = formulas.step_law, serving.deploy("llama3.1-70b", H100, gpus=8)
    at = of(f, "Llama-3.1-70B", gpus=8, length=length, efficiency=1, eta_p=1, overhead=0)
    wanted = serving.prefill(d, length).compute_time
    assert f.evaluate("stall", **at) == pytest.approx(wanted)
    assert f.evaluate("ttft", **at) == pytest.approx(wanted + f(**at))


def test_09_the_last_of_512_tokens_is_felt_in_turn_and_hardly_at_once():
    f = formulas.step_law
    at = of(f, "Llama-3.1-8B", batch=32, context=4096, length=8192, chunk=512)
    at |= {"efficiency": 1, "eta_p": 1, "overhead": 0}
    assert f(**at) == pytest.approx(9.61e-3, rel=1e-3)
    assert f.evaluate("stall", **at) == pytest.approx(9.4e-3, rel=0.01)
    assert 0 < f.evaluate("stall_at_once", **at) < 1.1e-3


def test_09_terms_are_those_of_the_law_at_every_row():
    f = formulas.step_terms
    for number, group in enumerate(served.GROUPS, start=1):
        preset = f.preset_values(group.name)
        assert preset["group"] == number
        for row in served.rows(group):
            at = {**preset, "gpus": row["gpus"], "users": row["concurrency"]}
            at |= {"prompt": row["input_tokens"], "answer": row["output_tokens"]}
            assert f.evaluate("measured", **at) == row["tpot_s"]
            told = served.fitted(group).law(served.terms_of(row))
            assert f(**at) == pytest.approx(told, rel=0.015)  # sliders round, tables travel in few points


def test_09_what_nobody_measured_has_no_number():
    f = formulas.step_terms
    assert math.isnan(f.evaluate("measured", group=1, gpus=8, users=128))
    assert math.isnan(f(group=1, gpus=1, users=4))  # 70 GB leave an H100 no room in those runs


# ------------------------------------------------------------------------------ the long way round


@pytest.mark.parametrize("model", ["llama2-7b", "llama3.1-70b", "llama3.2-1b"])
def test_short_and_long_say_the_same(model):
    d = serving.deploy(model, H100, weight_itemsize=1, kv_itemsize=1)
    name = d.model.name
    long = serving.decode_step(d, 48, 3000)
    f = formulas.decode_step
    at = of(f, name, batch=48, context=3000, weight_itemsize=1, kv_itemsize=1)
    wanted = {"time": long.time, "weight_time": long.weight_time, "kv_time": long.kv_time}
    wanted |= {"compute_time": long.compute_time, "flops": long.cost.flops, "bytes": long.cost.bytes}
    assert {n: f.evaluate(n, **at) for n in wanted} == pytest.approx(wanted)
    long = serving.prefill(dataclasses.replace(d, count="all"), 4000)
    f = formulas.prefill
    at = of(f, name, length=4000, weight_itemsize=1, kv_itemsize=1)
    assert f(**at) == pytest.approx(long.time)
    assert f.evaluate("bytes", **at) == pytest.approx(long.cost.bytes)


def test_the_step_law_charges_the_parameters_that_are_read():
    d = serving.deploy("llama3.1-70b", H100, weight_itemsize=1, gpus=4)
    at = of(formulas.step_law, "Llama-3.1-70B", batch=4, context=1536, weight_itemsize=1, gpus=4)
    assert formulas.step_law.evaluate("floor", **at) == pytest.approx(serving.decode_step(d, 4, 1536).time)


# ---------------------------------------------------------------------------- how they hold together


@pytest.mark.parametrize("f", [formulas.decode_step, formulas.prefill], ids=lambda f: f.name)
def test_parts_are_equal_where_the_formula_says_and_add_up(f):
    at = of(f, "Llama-3.1-70B")
    bars = f.view("bars")
    at[bars.balance.parameter] = f.evaluate(bars.balance.output, **at)
    one, other = (f.evaluate(part.output, **at) for part in bars.parts)
    assert one == pytest.approx(other)
    assert max(one + other, *(f.evaluate(b.output, **at) for b in bars.beside)) == pytest.approx(f(**at))


@pytest.mark.parametrize("f", formulas.OF_A_MODEL, ids=lambda f: f.name)
def test_every_preset_gives_all_that_the_model_decides(f):
    wanted = {p.symbol for p in f.parameters if p.source == "model"}
    for group, labels in (f.presets() if f.presets else {}).items():
        for label in labels:
            assert wanted <= set(f.preset_values(f"{group} / {label}" if label else group))


def test_the_start_is_the_catalogs_own_model():
    m = catalog.model("llama3.1-8b")
    for f in WHOLE:
        start = f.defaults()
        assert (start["layers"], start["kv_heads"], start["head_dim"]) == (m.layers, m.kv_heads, m.head_dim)
    assert formulas.prefill.defaults()["parameters"] == m.parameters
    for f in (formulas.decode_step, formulas.step_law):
        assert f.defaults()["parameters"] == serving.parameters_read(m)


def test_models_that_the_short_formulas_do_not_hold_for_are_left_out():
    names = formulas.decode_step.presets()
    assert "Llama-3.1-70B" in names and not {"DeepSeek-V3", "Gemma-2-9B", "Mixtral-8x7B-v0.1"} & set(names)


def test_letters_of_the_text_are_put_in_and_still_printed():
    f = formulas.decode_step
    assert symbol("weight_bytes") not in f.expression.free_symbols
    assert r"B S \kappa + W" in f.latex(f.stated)


# ------------------------------------------------------------------------------------ bad formulas


def made(**more):
    parameters = more.pop("parameters", (Parameter("a", "a", 2, 1, 4),))
    return Formula("f", "f", "y", "s", parameters, {"y": symbol("a")}, **more)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"views": (Readouts("y", (Shown("z", "z"),)),)}, "the view 'readouts' shows 'z', which is none of"),
        ({"views": (Bars((Shown("z", "z"),)),)}, r"the view 'bars' shows 'z', which is none of .*\['y'\]"),
        ({"parameters": (Parameter("a", "a", source="model"),)}, "give presets"),
    ],
)
def test_a_formula_that_can_not_be_shown_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(**arguments)


def test_a_default_that_is_no_step_is_refused():
    with pytest.raises(ValueError, match="default 3 is none of its steps"):
        Parameter("a", "a", 3, steps=(1, 2, 4))


def test_an_unknown_preset_is_answered_with_the_known_ones():
    with pytest.raises(KeyError, match=r"no preset 'Llama-9'.*'Llama-3.1-8B'"):
        formulas.decode_step.preset_values("Llama-9")

"""A step in terms, and the law over them, judged on every row of its source."""

import numpy as np
import pytest

from book import catalog, serving
from book.catalog.measured import steps
from book.serving import kernel_times, served, step_law
from book.serving.fitting import ImpossibleLaw, fit_columns, share_of_errors
from book.serving.step_terms import prompts_beside, reached, step_terms
from book.serving.term_law import FirstToken, TermLaw, first_wave

by_group = pytest.mark.parametrize("of", served.GROUPS, ids=lambda g: g.name)


def h100(**options):
    return serving.deploy("llama3.1-70b", "h100_sxm", weight_itemsize=1, dtype="fp8", **options)


# ---------------------------------------------------------------------------- tables


def test_the_shards_of_the_70b_are_those_of_the_tables():
    layers = catalog.model("llama3.1-70b").linear_layers()
    assert kernel_times.shards(layers, 8) == [(1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584)]


def test_a_measured_product_is_its_row_and_the_bump_at_32_rows_is_in_the_table():
    table = kernel_times.tables("h200_sxm")
    row = next(
        r
        for r in kernel_times.gemm_shards.rows()
        if (r["accelerator"], r["engine"], r["engine_version"], r["dtype"])
        == ("h200_sxm", "vLLM", "0.24.0", "fp8")
    )
    assert table.product(row["n"], row["k"], row["m"]) == pytest.approx(row["seconds"])
    d = serving.deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1, dtype="fp8", kv_itemsize=1)
    rows = {users: step_terms(d, users, 1400, engine="vLLM").rows for users in (16, 32, 64)}
    assert rows[32] > rows[16] + 4e-3 and rows[32] > rows[64] + 3e-3


def test_a_shape_that_nobody_measured_is_told_by_the_others_to_a_few_per_cent():
    # Each measured shape in turn is told without itself, at the rows of a decode step.
    table = kernel_times.tables("h100_sxm")
    shapes = table._products
    for rows in (1, 16, 64):
        times = np.array([kernel_times.between(rows, c) for c in shapes.values()])
        sizes = np.array([n * k for n, k in shapes], float)
        found = fit_columns({"a": np.ones(len(times)), "b": sizes}, times)
        missed = found.left_out(list(shapes))
        assert np.mean(list(missed.values())) < 0.15
        assert missed[max(shapes, key=lambda s: s[0] * s[1])] < 0.15  # what the absent ones are like


def test_one_card_meets_nobody():
    assert step_terms(h100(gpus=2, kv_itemsize=2), 4, 1400).all_reduces > 0
    one = serving.deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1, dtype="fp8")
    assert step_terms(one, 4, 1400).all_reduces == 0


def test_decode_attention_grows_with_context_and_batch():
    table = kernel_times.tables("h200_sxm")
    at = table.decode_attention
    assert at(16, 2048) < at(16, 8192) < at(32, 8192)


# ---------------------------------------------------------------------------- terms


def test_the_terms_are_the_floor_and_what_it_leaves_out():
    d = h100(gpus=4)
    found = step_terms(d, 16, 1382, outputs=922)
    step = serving.decode_step(d, 16, 1382)
    assert (found.weights, found.cache) == (step.weight_time, step.kv_time)
    assert found.tables == found.rows + found.all_reduces + found.prompts
    assert step_terms(d, 16, 1382).prompts == 0 < found.prompts
    assert not found.borrowed


def test_other_peoples_prompts():
    assert prompts_beside(1, 500) == 0
    assert prompts_beside(64, 922, rounds=float("inf")) == pytest.approx(63 / 922)
    assert prompts_beside(64, 922) == pytest.approx(0.95 * 63 / 922)
    assert first_wave(1) == 1 and first_wave(64) == pytest.approx(0.95 + 0.05 * 64)


def test_no_more_sequences_than_fit_and_none_is_refused():
    d = serving.deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1, dtype="fp8")
    fits = serving.kv_capacity(d) / 8300
    assert reached(d, 4, 8300) == 4 and reached(d, 64, 8300) == fits < 64
    with pytest.raises(ValueError, match="no room for one .*Use more cards"):
        step_terms(h100(gpus=1), 4, 30_000)


def test_an_answer_longer_than_the_context_is_refused():
    with pytest.raises(ValueError, match="give the mean context"):
        step_terms(h100(gpus=4), 4, 400, outputs=900)


def test_a_card_without_tables_falls_back_to_floors_and_says_so():
    d = serving.deploy("llama3.1-70b", "b200", weight_itemsize=1, dtype="fp8", gpus=2)
    found = step_terms(d, 16, 1382, outputs=922)
    assert found.rows == 0 and found.all_reduces > 0 and found.prompts > 0
    assert all("b200" in sentence for sentence in found.borrowed) and len(found.borrowed) >= 3
    prompt = serving.prefill(d, 1382 - 461).compute_time
    assert found.prompts == pytest.approx(prompts_beside(16, 922) * prompt, rel=0.2)
    lent = step_terms(d, 16, 1382, outputs=922, stand_in="h200_sxm")
    assert lent.all_reduces > found.all_reduces and lent.prompts > found.prompts


def test_experts_have_no_tables_and_it_is_said():
    d = serving.deploy("deepseek-v3", "h200_sxm", weight_itemsize=1, kv_itemsize=1, dtype="fp8", gpus=8)
    found = step_terms(d, 16, 1382, outputs=922)
    assert any("experts" in sentence for sentence in found.borrowed)


# ---------------------------------------------------------------------------- laws


def test_a_terms_law_is_its_parts_and_goes_by_layers():
    d = h100(gpus=4)
    found, law = step_terms(d, 16, 1382, outputs=922), TermLaw(1.1, 1.4, 2e-5, 5e-3, layers=80)
    parts = law.parts(found)
    assert sum(parts.values()) == law(found) == serving.tpot(d, 16, 1382, law, outputs=922)
    assert parts["overhead"] == 5e-3 and parts["sequences"] == pytest.approx(16 * 2e-5)
    small = serving.deploy("llama3.1-8b", "h100_sxm", weight_itemsize=1, dtype="fp8")
    assert law.parts(step_terms(small, 4, 1382))["overhead"] == pytest.approx(2e-3)


def test_a_line_over_the_floor_knows_no_outputs():
    with pytest.raises(ValueError, match="outputs = 922: a line over the floor can't use that"):
        serving.tpot(h100(gpus=4), 16, 1382, step_law.StepLaw(1.1, 5e-3), outputs=922)


def test_the_first_token_waits_for_the_first_wave():
    d, law = h100(gpus=4), FirstToken(1.2, 0.015)
    alone, crowd = (serving.ttft(d, 922, users, law) for users in (1, 64))
    assert crowd - 0.015 == pytest.approx((alone - 0.015) * first_wave(64))


@by_group
def test_the_law_of_four_numbers_on_rows_it_has_not_seen(of):
    rows, found = served.rows(of), served.fitted(of)
    law = found.law  # refuses what can't be
    assert law.weights >= 1 and law.cache >= 1 and law.overhead > 0
    held = found.held_out()
    assert held.mean() < 0.04
    for group in (
        [r["concurrency"] for r in rows],
        [r["gpus"] for r in rows],
        [(r["input_tokens"], r["output_tokens"]) for r in rows],
    ):
        assert max(found.fitted.left_out(group).values()) < 0.09
    two = step_law.fit([served.floor_of(r) for r in rows], [r["tpot_s"] for r in rows], relative=True)
    assert two.held_out().mean() > 4 * held.mean()
    assert share_of_errors(held, [r["concurrency"] for r in rows]) < 0.09


@pytest.mark.parametrize(
    ("at", "two", "four"), [(0, 0.139, 0.025), (1, 0.161, 0.021), (2, 0.223, 0.035)], ids=lambda x: str(x)
)
def test_the_held_out_errors_that_the_chapter_prints(at, two, four):
    of = served.GROUPS[at]
    rows = served.rows(of)
    line = step_law.fit([served.floor_of(r) for r in rows], [r["tpot_s"] for r in rows], relative=True)
    assert line.held_out().mean() == pytest.approx(two, abs=0.005)
    assert served.fitted(of).held_out().mean() == pytest.approx(four, abs=0.002)


@by_group
def test_the_first_token_on_rows_it_has_not_seen(of):
    found = served.fitted_first_token(of).checked()
    assert found.held_out().mean() < 0.10
    floors = [
        abs(float(serving.prefill(served.deployed(r), r["input_tokens"]).time) / r["ttft_s"] - 1)
        for r in served.rows(of)
        if r["ttft_s"] < served.QUEUE
    ]
    assert np.mean(floors) > 0.8  # the prefill floor alone


def test_older_tables_make_an_impossible_law():
    with pytest.raises(ImpossibleLaw, match="sequence = -"):
        _ = served.fitted(served.GROUPS[0], "0.14.0").law


@by_group
def test_the_caches_format_is_the_one_that_the_queue_shows(of):
    """Little's law on the rows alone: where it queues, more run than fit in 16 bits, if the format is 8."""
    queued = [r for r in served.rows(of) if r["ttft_s"] >= served.QUEUE]
    assert queued
    for row in queued:
        prompt, output = served.lengths(row)
        running = row["concurrency"] / (1 + row["ttft_s"] / (output * row["tpot_s"]))
        fits = {
            bits: serving.kv_capacity(served.deployed(row, kv_itemsize=bits))
            / (prompt + (output if of.reserves else output / 2))
            for bits in (1, 2)
        }
        other = fits[2 if of.kv_itemsize == 1 else 1]
        assert abs(running / min(fits[of.kv_itemsize], row["concurrency"]) - 1) < 0.25
        assert abs(running / other - 1) > 0.35


# ---------------------------------------------------------------------------- rows


def test_rows_are_told_or_the_reason_is():
    rows = [dict(r) for r in steps.llama_70b()]
    found = served.predict(rows)
    assert all(isinstance(p, served.Prediction) and not p.borrowed for p in found)
    missed = [abs(p.tpot / r["tpot_s"] - 1) for p, r in zip(found, rows, strict=True)]
    assert np.mean(missed) < 0.035 and max(missed) < 0.20


FEW = ("h100_sxm", "b200", "mi300x", "t4")
EACH = [(m.id, card) for m in catalog.models() for card in FEW]
EACH += [(model, card.id) for card in catalog.accelerators() for model in ("llama3.1-8b", "gpt-oss-120b")]


@pytest.mark.parametrize(("model", "card"), EACH, ids=lambda x: x)
def test_any_model_on_any_card_is_told_or_refused_in_a_sentence(model, card):
    row = {"model": model, "accelerator": card, "engine": "SGLang", "weights": "fp8"}
    row |= {"gpus": 8, "concurrency": 16, "input_tokens": 1024, "output_tokens": 1024}
    (found,) = served.predict([row])
    if isinstance(found, str):
        assert found.endswith(".") and len(found) > 40
    else:
        assert found.tpot >= found.terms.weights and found.ttft > 0
        assert found.borrowed


def test_other_peoples_names_are_understood():
    ours = dict(served.rows(served.GROUPS[2])[0])
    theirs = ours | {"accelerator": "H200 SXM", "engine": "trtllm", "weights": "fp8_block", "gpus": "1"}
    first, second = served.predict([ours, theirs])
    assert (first.tpot, first.ttft) == (second.tpot, second.ttft) and not second.borrowed


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("accelerator", "H900", "no accelerator 'H900'"),
        ("weights", "fp7", "no dtype 'fp7'"),
        ("model", "nobodys-9b", "no model 'nobodys-9b'"),
        ("gpus", 3, "gpus = 3: 64 query heads"),
        ("concurrency", 0, "concurrency = 0"),
        ("input_tokens", 200_000, "131,072"),
        ("output_tokens", 0, "output_tokens = 0"),
    ],
)
def test_what_can_not_be_is_a_sentence(field, value, said):
    (found,) = served.predict([dict(served.rows(served.GROUPS[2])[0]) | {field: value}])
    assert isinstance(found, str) and said in found


def test_a_row_without_its_cards_is_refused():
    assert served.predict([{"engine": "vLLM"}])[0].startswith("The row has no accelerator, gpus")


def test_the_8b_is_told_by_the_law_of_the_70b():
    """Another model, another version of the engine, another benchmark: TPOT within 10 % on average."""
    rows = [{**r, "model": "llama3.1-8b"} for r in steps.llama_8b() if r["engine"] == "TensorRT-LLM"]
    found = served.predict(rows)
    told = [(p.tpot / r["tpot_s"] - 1) for p, r in zip(found, rows, strict=True) if not isinstance(p, str)]
    assert len(told) == len(rows)
    assert np.mean(np.abs(told)) < 0.10

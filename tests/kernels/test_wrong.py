"""Kernels with a mistake: right in their numbers, wrong in their traffic, and the right ones beside them."""

import importlib
import pkgutil
from dataclasses import replace

import pytest

import kernels.wrong
from kernels import linear, mlp
from kernels.contract.errors import Unsupported
from kernels.contract.wrong import Wrong
from kernels.evidence import PhysicsDisagrees, confirm, counted
from kernels.evidence.counted import counted_rows, mistakes
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from kernels.wrong import linear_in_slices, unfused_mlp

# file -> sizes at which it is counted, the smallest first
SIZES = {
    "cache_rewritten": {"batch": [1, 2], "kv_heads": 3, "head_dim": 24, "context": 20},
    "chain_through_memory": {"n": 5_000, "k": [2, 5]},
    "copied_weight": {"m": 2, "k": 70, "n": [33, 64]},
    "linear_in_slices": {"m": [17, 40], "k": 96, "n": 130},
    "one_sequence_at_a_time": {
        "batch": [2, 3],
        "d_model": 64,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 16,
        "d_ff": 96,
        "context": 20,
    },
    "repeated_heads": {"batch": 2, "heads": 6, "kv_heads": 2, "head_dim": 32, "context": [37, 64]},
    "scores_in_memory": {"batch": 1, "length": [33, 64], "heads": 2, "kv_heads": 1, "head_dim": 64},
    "unfused_mlp": {"m": [3, 17], "d_model": 64, "d_ff": 96},
    "whole_weight_on_each_card": {"m": [1, 5], "k": 64, "n": 96},
}
MADE = {
    one.name: importlib.import_module(f"kernels.wrong.{one.name}").wrong
    for one in pkgutil.iter_modules(kernels.wrong.__path__)
}


def counts(name, mistaken=True):
    one = MADE[name].experiment
    return counted_rows.rows(one, sweep(one, "counted", **SIZES[name]), mistaken=mistaken)


def test_every_mistake_is_tried_here():
    assert set(SIZES) == set(MADE) and all(isinstance(one, Wrong) for one in MADE.values())


@pytest.mark.parametrize("name", MADE)
def test_the_numbers_are_right_and_the_traffic_is_not_which_is_said_by_tensor(name):
    for row in counts(name):  # raises where a result is wrong, or programs race
        assert not row.exact and row.counted_bytes > row.formula_bytes
        assert row.extra and all(": " in sentence for sentence in row.extra)
        assert len(row.extra) <= mistakes.SENTENCES


@pytest.mark.parametrize("name", MADE)
def test_as_a_right_kernel_none_of_them_would_pass(name):
    with pytest.raises(PhysicsDisagrees):
        counts(name, mistaken=False)


@pytest.mark.parametrize("name", MADE)
def test_it_takes_the_inputs_and_gives_the_results_of_a_kernel_of_the_book(name):
    one = MADE[name].experiment
    right = all_experiments()[one.name]
    assert (one.sizes, one.tensors, one.cost) == (right.sizes, right.tensors, right.cost)
    assert one.reference is right.reference and one.key not in all_experiments()
    assert MADE[name].mistake.endswith(".")


@pytest.mark.parametrize(
    ("name", "axis", "times"),
    [
        ("chain_through_memory", "k", lambda sizes: sizes["k"]),  # nothing is kept from link to link
        ("whole_weight_on_each_card", "m", lambda sizes: 4),
    ],
)
def test_some_move_a_whole_number_of_times_the_formulas_bytes(name, axis, times):
    for row in counts(name):
        assert row.counted_bytes == times(row.sizes) * row.formula_bytes


def test_a_weight_read_for_every_slice_is_counted_once_a_launch():
    [first, last] = counts("linear_in_slices")
    weight = 2 * 96 * 130
    assert first.counted_bytes - first.formula_bytes == weight  # two slices: once too often
    assert last.counted_bytes - last.formula_bytes == 2 * weight
    assert last.extra == ("w: 3 times as many bytes read as the formula has.",)


def test_what_the_right_kernel_has_as_workspace_is_no_mistake():
    row = counts("unfused_mlp")[-1]
    assert "hidden" not in " ".join(row.extra)
    assert row.counted_bytes - row.formula_bytes == 17 * (4 * 96 + 64) * 2  # gate, up: out and back; x again


@pytest.mark.parametrize("name", all_experiments())
def test_right_kernels_move_the_same_launch_by_launch(name):
    """So that a mistake is no artefact of the way in which it is counted."""
    one = all_experiments()[name]
    sizes = {k: v if isinstance(v, int) else v[0] for k, v in one.sweep["counted"].items()}
    if one.key.startswith("stream"):
        sizes["n"] = 4096
    try:
        counted.interpretable(one)
    except Unsupported as refused:
        pytest.skip(str(refused))
    ran = counted.run(one, **sizes)
    useful = one.formula(ran.dtype, **sizes)
    workspace = one.issued_by(ran.plan, ran.dtype, **sizes).workspace
    for verb in ("reads", "writes"):
        for tensor, traffic in getattr(ran, verb).items():
            if tensor in getattr(useful, verb) and tensor not in workspace:
                assert traffic.by_launch == traffic.unique, (verb, tensor)


def test_where_kernels_are_compiled_a_child_counts_the_mistake(monkeypatch):
    here = counts("copied_weight")
    monkeypatch.setattr(counted_rows.devices, "MODE", "compiled")
    assert counts("copied_weight") == here


# ------------------------------------------------------------------------------ as a chapter shows it


@pytest.fixture(scope="module")
def shown():
    return confirm(linear.experiment, rungs=["counted"], m=[1, 48], k=64, n=64, wrong=linear_in_slices.wrong)


def test_the_wrong_count_stands_beside_the_right_one_with_a_cross_a_ratio_and_its_reason(shown):
    assert all(row.exact for row in shown.rows)
    assert [row.exact for row in shown.wrong] == [True, False]  # one slice is no mistake yet
    [counted] = shown.sections()
    text = repr(counted)
    assert "the same count on a kernel with a mistake" in text and linear_in_slices.wrong.mistake in text
    assert "✗" in text and "×" in text and "w: 3 times as many bytes read" in text
    assert "✗" in shown._repr_html_()


def test_its_marks_are_a_series_of_the_figure_and_of_nothing_else(shown):
    assert [s["rung"] for s in shown.points()] == ["counted"]
    assert "with a mistake" in shown.figure().get_label()


def test_without_one_nothing_is_said_of_mistakes():
    right = confirm(mlp.experiment, rungs=["counted"], m=[1, 4], d_model=32, d_ff=48)
    assert right.wrong == () and "mistake" not in repr(right) + right.figure().get_label()


def test_a_wrong_result_still_raises():
    spoiled = replace(unfused_mlp.experiment, run=lambda x, w_gate, w_up, w_down: x.new_zeros(x.shape))
    with pytest.raises(PhysicsDisagrees, match="computes something else"):
        counted_rows._row(spoiled, {"m": 2, "d_model": 32, "d_ff": 48}, None, mistaken=True)

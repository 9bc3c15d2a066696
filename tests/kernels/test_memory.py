"""Memory of a point: what it really holds, and a check in pieces that is as strict as a whole one."""

import dataclasses
import tracemalloc

import pytest
import torch

from kernels import decode_attention, decode_layer, flash_attention, kv_append, linear, matmul, stream
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from kernels.evidence.timed import checking, memory
from tests.kernels.toy import experiment as toy

SIZES = {"m": 64, "k": 256, "n": 256}


def test_a_need_is_the_bytes_of_tensors_workspaces_and_reference():
    """x and w and y in fp16; while drawing, w in fp32 beside them; then x, w and y in float64."""
    found = memory.need(toy, "fp16", SIZES)
    x, w, y = 64 * 256, 256 * 256, 64 * 256
    assert (found.inputs, found.made) == (2 * (x + w), 2 * y)
    assert found.drawing == 2 * (x + w) + 4 * w
    assert found.checking == 2 * (x + w + y) + 8 * (x + w + y)
    assert found.timing == found.inputs + memory.COPIES * found.made


def test_a_cache_of_which_one_token_is_written_is_held_whole():
    sizes = {"batch": 64, "kv_heads": 8, "head_dim": 128, "context": 4096}
    found = memory.need(kv_append.experiment, "fp16", sizes)
    cache = 2 * 64 * 8 * 128 * 4096 * 2
    assert found.inputs > cache > 1000 * kv_append.experiment.formula("fp16", **sizes).bytes
    assert found.checking >= found.inputs + 4 * cache  # both in float64


def test_partial_sums_are_what_a_launch_holds_beside_its_outputs():
    sizes = {"m": 16, "k": 8192, "n": 1024}
    plan = linear.experiment.plan(**sizes, dtype="fp16")
    assert plan.splits > 1
    found = memory.need(linear.experiment, "fp16", sizes)
    assert found.made == 16 * 1024 * (2 + 4 * plan.splits)


def test_the_bytes_of_a_reference_are_those_that_it_takes_when_it_runs():
    """torch's own profiler of memory, on this CPU, says the same to a tenth."""
    experiment, sizes = flash_attention.experiment, sweep(flash_attention.experiment, "counted")[-1]
    inputs = experiment.inputs(**sizes, dtype="fp16")
    with torch.profiler.profile(profile_memory=True) as seen:
        experiment.reference(**inputs)
    now = most = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    assert memory.reference_bytes(experiment, "fp16", sizes) == pytest.approx(most, rel=0.1)


def test_nothing_is_allocated_to_find_it_out():
    tracemalloc.start()
    sizes = {"m": 4096, "k": 65_536, "n": 65_536}  # 34 GB in float64
    assert memory.need(linear.experiment, "bf16", sizes).most > 30e9
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize("key", sorted(all_experiments()))
def test_every_experiment_says_what_it_needs(key):
    experiment = all_experiments()[key]
    for row in sweep(experiment, "timed"):
        found = memory.need(experiment, experiment.dtypes[0], row)
        assert found.most >= found.checking > found.inputs > 0


# --------------------------------------------------------------------------- what doesn't fit


def test_a_point_that_does_not_fit_is_refused_with_both_numbers_and_no_size_is_changed():
    sizes = {"m": 64, "k": 8192, "n": 8192}
    with pytest.raises(Unsupported, match=r"toy in fp16 at m = 64, k = 8,192.*needs 0.68 GB and 0.10 GB are"):
        memory.need(toy, "fp16", sizes, 10**8)


@pytest.mark.parametrize(
    ("experiment", "axes"),
    [
        (toy, {"m", "n"}),
        (stream.experiment, {"n"}),
        (matmul.experiment, {"m", "n"}),
        (decode_attention.experiment, {"batch"}),
        (decode_attention.ragged_experiment, {"batch"}),
        (flash_attention.experiment, {"batch"}),  # not length: a query looks at others' keys; nor heads
        (decode_layer.experiment, {"batch"}),
        (kv_append.experiment, {"batch", "kv_heads", "head_dim"}),
    ],
)
def test_rows_that_a_reference_treats_alone_are_found_by_trying(experiment, axes):
    assert set(memory.rows_of(experiment, "fp16", sweep(experiment, "timed")[-1])) == axes


def test_a_reference_that_is_too_large_is_cut_into_as_few_pieces_as_fit():
    sizes = sweep(decode_layer.experiment, "timed")[-1]
    whole = memory.need(decode_layer.experiment, "bf16", sizes)
    cut = memory.need(decode_layer.experiment, "bf16", sizes, whole.checking // 2)
    assert (whole.pieces, cut.rows) == (1, "batch")
    assert cut.pieces > 1 and cut.most <= whole.checking // 2
    assert memory.need(decode_layer.experiment, "bf16", sizes, whole.most) == whole


@pytest.mark.parametrize("rows", ["m", "n"])
def test_a_check_in_pieces_finds_the_same_error(rows):
    inputs = toy.inputs(m=37, k=64, n=50, dtype="fp16")
    whole = checking.check(toy, inputs, "fp16")
    assert checking.check(toy, inputs, "fp16", rows=rows, pieces=4) == pytest.approx(whole, rel=1e-9)
    assert 0 < whole < 2e-3


def test_one_wrong_number_in_the_last_piece_is_found():
    def wrong(x, w):
        y = toy.run(x, w)
        y[-1, -1] += 100.0
        return y

    inputs = toy.inputs(m=37, k=64, n=50, dtype="fp16")
    for pieces in ({}, {"rows": "m", "pieces": 8}):
        with pytest.raises(PhysicsDisagrees, match="relative error"):
            checking.check(dataclasses.replace(toy, run=wrong), inputs, "fp16", **pieces)


def test_what_is_written_in_place_is_held_against_what_was_there_before():
    experiment = kv_append.experiment
    sizes = {"batch": 6, "kv_heads": 2, "head_dim": 16, "context": 8}

    def tramples(k, v, k_cache, v_cache, positions):
        experiment.run(k, v, k_cache, v_cache, positions)
        k_cache[5, 1, (positions[5] + 1) % 8] += 1.0  # somebody else's token

    for run, right in ((experiment.run, True), (tramples, False)):
        inputs = experiment.inputs(**sizes, dtype="fp16")
        tried = dataclasses.replace(experiment, run=run)
        if right:
            assert checking.check(tried, inputs, "fp16", rows="batch", pieces=4) == 0.0
            continue
        with pytest.raises(PhysicsDisagrees):
            checking.check(tried, inputs, "fp16", rows="batch", pieces=4)

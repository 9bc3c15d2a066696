"""kernels.decode_layer: the parts in the right order, their costs added up to the byte."""

from dataclasses import replace

import pytest
import torch

from book import cost
from kernels import decode_layer as module
from kernels.contract.errors import PhysicsDisagrees
from kernels.decode_layer import context_experiment, decode_layer, experiment
from kernels.evidence import counted

SMALL = {"batch": 3, "d_model": 128, "heads": 4, "kv_heads": 2, "head_dim": 32, "d_ff": 192, "context": 64}


def test_a_longer_context_adds_cache_and_no_weights():
    short, long = (counted.run(context_experiment, **{**SMALL, "context": s}) for s in (64, 192))
    added = {n: long.reads[n].unique - short.reads[n].unique for n in short.reads}
    assert added["k_cache"] == added["v_cache"] == 3 * 128 * 2 * 32 * 2
    assert all(added[name] == 0 for name in (*module.WEIGHTS, "x", "qkv"))


def test_a_larger_batch_adds_no_weights_either():
    one, three = (counted.run(experiment, **{**SMALL, "batch": b}) for b in (1, 3))
    for name in module.WEIGHTS:
        assert one.reads[name].unique == three.reads[name].unique
    assert three.reads["k_cache"].unique == 3 * one.reads["k_cache"].unique


def test_what_the_parts_hand_over_is_named_and_the_rest_is_the_formula():
    row = counted.run(experiment, **SMALL)
    between = {n for n in (*row.reads, *row.writes) if n in experiment.issued(row.plan, **SMALL).workspace}
    assert between >= {"qkv", "k", "v", "o", "h", "hidden", "positions"}
    rest = [t.unique for group in (row.reads, row.writes) for n, t in group.items() if n not in between]
    assert sum(rest) == cost.decode_layer(**SMALL).bytes


def test_a_forgotten_part_is_caught():
    wrong = replace(experiment, cost=lambda **s: replace(cost.decode_layer(**s), writes={}))
    with pytest.raises(PhysicsDisagrees, match="writes of k_cache, bytes: expected 0"):
        counted.run(wrong, **SMALL).check(wrong)


def test_the_new_token_is_in_the_cache_afterwards_and_nothing_else_moved():
    made = experiment.inputs(**SMALL)
    before = made["k_cache"].clone()
    made["positions"][:] = torch.tensor([5, 0, 63])
    decode_layer(**made)
    changed = (made["k_cache"] != before).any(-1).any(1)  # [batch, context]
    assert changed.nonzero().tolist() == [[0, 5], [1, 0], [2, 63]]
    new = (made["x"].double() @ made["w_qkv"].double()).view(3, -1, 32)[0, 4:6]
    assert counted.relative_error(made["k_cache"][0, :, 5], new) < 1e-3


def test_sequences_of_their_own_lengths():
    made = experiment.inputs(**SMALL)
    made["positions"][:] = torch.tensor([5, 0, 63])
    made["lengths"] = made["positions"] + 1
    assert counted.relative_error(decode_layer(**made), module.reference(**made)[-1]) < 2e-3


def test_weights_that_are_stored_transposed():
    made = experiment.inputs(**SMALL)
    want = module.reference(**made)[-1]
    made |= {name: made[name].T.contiguous().T for name in module.WEIGHTS}
    assert counted.relative_error(decode_layer(**made), want) < 2e-3


def test_the_parts_are_launched_in_order():
    sizes = {**SMALL, "batch": 1, "d_model": 2048, "context": 8192}
    chosen = experiment.plan(**sizes, dtype="fp16", target="sm_90")
    assert [one.label for one in experiment.meta_launches(chosen, "fp16", **sizes)] == [
        "q, k and v projection",
        "add partials",
        "kv append",
        "decode attention",
        "merge",
        "o projection",
        "gate and up",
        "down",
        "add partials",
    ]

"""kernels.decode_step: the parts in the right order, their costs added up to the byte."""

from dataclasses import replace

import pytest
import torch

from book import cost
from kernels import decode_step as module
from kernels.contract.errors import PhysicsDisagrees
from kernels.decode_step import context_experiment, decode_step, experiment
from kernels.evidence import counted

SMALL = {"batch": 3, "d_model": 128, "heads": 4, "kv_heads": 2, "head_dim": 32, "d_ff": 192, "context": 64}
RAGGED = [
    SMALL,
    {**SMALL, "batch": 1, "d_model": 100, "d_ff": 77, "context": 1},
    {**SMALL, "batch": 5, "heads": 6, "head_dim": 20, "context": 131},
    {**SMALL, "batch": 2, "heads": 2, "context": 300},
]


@pytest.mark.parametrize("sizes", RAGGED, ids=lambda s: f"{s['batch']} at {s['context']}")
def test_result_bytes_and_flops_are_exact_at_ragged_sizes(sizes):
    row = counted.run(experiment, **sizes)
    row.check(experiment)
    assert row.relative_error < 2e-3


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
    between = {n for n in (*row.reads, *row.writes) if n in experiment.tiles(row.plan, **SMALL).workspace}
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
    decode_step(**made)
    changed = (made["k_cache"] != before).any(-1).any(1)  # [batch, context]
    assert changed.nonzero().tolist() == [[0, 5], [1, 0], [2, 63]]
    new = (made["x"].double() @ made["w_qkv"].double()).view(3, -1, 32)[0, 4:6]
    assert counted.relative_error(made["k_cache"][0, :, 5], new) < 1e-3


def test_sequences_of_their_own_lengths():
    made = experiment.inputs(**SMALL)
    made["positions"][:] = torch.tensor([5, 0, 63])
    made["lengths"] = made["positions"] + 1
    assert counted.relative_error(decode_step(**made), module.reference(**made)) < 2e-3


def test_weights_that_are_stored_transposed():
    made = experiment.inputs(**SMALL)
    want = module.reference(**made)
    made |= {name: made[name].T.contiguous().T for name in module.WEIGHTS}
    assert counted.relative_error(decode_step(**made), want) < 2e-3


REFUSED = {
    "w_o": (lambda t: t.T, r"w_o\.shape = \(100, 128\): it must be \(96, 100\).* pass w_o\.T"),
    "w_qkv": (
        lambda t: t[:, :-1],
        r"w_qkv\.shape = .* must be .*, from batch = 3.*stored transposed pass w_qkv\.T",
    ),
    "w_down": (lambda t: t[:5], r"w_down\.shape = \(5, 100\): it must be \(192, 100\)"),
    "v_cache": (lambda t: t[:, :, 1:], r"v_cache\.shape = .* must be \(3, 2, 64, 32\)"),
    "k_cache": (lambda t: t[0], r"k_cache\.shape = \(2, 64, 32\): decode_step needs k_cache\[batch"),
    "positions": (lambda t: t.float(), r"positions = fp32: decode_step needs whole numbers"),
    "x": (lambda t: t.float(), r"w_qkv\.dtype = fp16, x\.dtype = fp32: both must be the same"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses_and_what_it_says(name):
    change, sentence = REFUSED[name]
    made = experiment.inputs(**{**SMALL, "d_model": 100})
    with pytest.raises((ValueError, TypeError), match=sentence):
        decode_step(**{**made, name: change(made[name])})


def test_query_heads_must_be_shared_evenly():
    made = experiment.inputs(**{**SMALL, "heads": 3})
    with pytest.raises(ValueError, match="heads = 3, kv_heads = 2: .* make heads a multiple of kv_heads"):
        decode_step(**made)


def test_the_parts_are_launched_in_order():
    sizes = {**SMALL, "batch": 1, "d_model": 2048, "context": 8192}
    chosen = experiment.plan(**sizes, dtype="fp16", target="sm_90")
    assert [one.label for one in experiment.launches(chosen, **sizes, dtype="fp16")] == [
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

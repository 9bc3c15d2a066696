"""kernels.mlp: the right block, `hidden` once through memory, and plans for few and for many rows."""

import pytest
import torch

from book import cost
from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.mlp import experiment, mlp, plan

LLAMA = {"d_model": 4096, "d_ff": 14336}


def test_hidden_is_the_only_activation_that_reaches_memory():
    row = counted.run(experiment, m=16, d_model=128, d_ff=448)
    assert row.writes["hidden"].unique == row.reads["hidden"].unique == 16 * 448 * 2
    formula = cost.mlp(16, 128, 448, fused="gate_up")
    assert set(row.reads) - {"down_partials"} == set(formula.reads)
    assert set(row.writes) - {"down_partials"} == set(formula.writes)


def test_each_weight_is_read_once_and_x_is_loaded_once_for_two_products():
    row = counted.run(experiment, m=1, d_model=256, d_ff=512)
    for name in ("w_gate", "w_up", "w_down"):
        assert row.reads[name].unique == row.reads[name].issued == 256 * 512 * 2
    assert row.reads["x"].issued == 256 * 2 * row.plan.gate_up.tiles(1, 512)


def test_one_row_on_a_16_row_tile_issues_16_times_the_useful_flops():
    row = counted.run(experiment, m=1, d_model=256, d_ff=512)
    assert row.dot_flops == 16 * experiment.cost(1, 256, 512).flops


def _random(*shape, scale=1.0):
    return (scale * torch.randn(shape, generator=torch.Generator().manual_seed(1))).half()


def test_weights_that_are_stored_transposed_are_not_copied():
    x, gate, up, down = _random(3, 96), *(_random(160, 96, scale=0.1) for _ in range(2)), _random(96, 160)
    with counted.count() as tally:
        y = mlp(x, gate.T, up.T, down.T)
    assert counted.relative_error(y, experiment.reference(x, gate.T, up.T, down.T)) < 1e-3
    assert tally.reads()["w_gate"].unique == 96 * 160 * 2


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # e^200 closes the gate
def test_a_gate_far_from_zero_opens_or_closes_without_overflow():
    x, one = torch.tensor([[200.0], [-200.0]]).half(), torch.ones(1, 1).half()
    assert mlp(x, one, one, one / 1024).flatten().tolist() == pytest.approx([200**2 / 1024, 0.0], rel=1e-3)


# ---------------------------------------------------------------------------------- plans


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "sm_75"])
def test_a_decode_step_has_programs_for_every_multiprocessor(target):
    chosen = plan(1, **LLAMA, dtype="fp16", target=target)
    sms = TARGETS[target].sm_count
    assert chosen.gate_up.programs(1, 14336) >= 1.2 * sms
    assert chosen.down.programs(1, 4096) >= 1.2 * sms
    assert chosen.gate_up.block_m == chosen.down.block_m == 16
    assert chosen.gate_up.splits == 1


@pytest.mark.parametrize(("target", "width"), [("sm_80", 64), ("sm_90", 128), ("sm_100", 128)])
def test_two_products_side_by_side_fill_the_largest_tile(target, width):
    chosen = plan(4096, **LLAMA, dtype="bf16", target=target)
    assert (chosen.gate_up.block_m, chosen.gate_up.block_n) == (128, width)
    assert chosen.down.block_n == 2 * width

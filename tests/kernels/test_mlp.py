"""kernels.mlp: the right block, `hidden` once through memory, and plans for few and for many rows."""

import pytest
import torch

from book import cost
from kernels.contract.targets import TARGETS
from kernels.evidence import compiled, counted
from kernels.mlp import experiment, mlp, plan

RAGGED = [(1, 1, 1), (1, 256, 896), (5, 100, 70), (16, 37, 523), (37, 130, 333), (70, 96, 200), (64, 64, 128)]
LLAMA = {"d_model": 4096, "d_ff": 14336}


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize(("m", "d_model", "d_ff"), RAGGED)
def test_result_bytes_and_flops_are_exact_at_ragged_sizes(m, d_model, d_ff, dtype):
    row = counted.run(experiment, m=m, d_model=d_model, d_ff=d_ff, dtype=dtype)
    row.check(experiment)
    assert row.relative_error < (1e-6 if dtype == "fp32" else 1e-3)


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


def test_small_chips_at_prefill_and_hopper_at_decode_use_mma_and_do_not_spill():
    wanted = [("sm_89", 4096), ("sm_120", 4096), ("sm_90", 1)]
    rows = compiled.cases([(experiment, chip, {"m": m, **LLAMA}) for chip, m in wanted])
    assert [row.kernel for row in rows] == 3 * ["gate and up", "down"] + ["add partials"]
    assert {row.instruction for row in rows[:-1]} == {"mma.sync"}
    mine = [row for row in rows if row.kernel != "down"]  # which is kernels.linear's, and judged there
    assert not [(row.kernel, row.target) for row in mine if row.spills]
    assert all(row.fits for row in rows)
    assert all(row.wide_loads == row.loads for row in rows[:-1])


# ------------------------------------------------------------------------------ bad input

X, UP, DOWN = torch.ones(4, 8).half(), torch.ones(8, 6).half(), torch.ones(6, 8).half()
BAD = {
    "a vector": ((X[0], UP, UP, DOWN), r"x\.shape = \(8,\): mlp needs x\[M, D\], 2 dimensions"),
    "no rows": ((X[:0], UP, UP, DOWN), r"x\.shape = \(0, 8\): every size must be at least 1"),
    "gate transposed": ((X, UP.T, UP, DOWN), r"w_gate\.shape = \(6, 8\): .* D = 8.* pass w_gate\.T"),
    "up too narrow": ((X, UP, UP[:, :5], DOWN), r"w_up\.shape = \(8, 5\): it must be \(8, 6\).* F = 6"),
    "down transposed": ((X, UP, UP, DOWN.T), r"w_down\.shape = \(8, 6\): it must be \(6, 8\)"),
    "two dtypes": ((X, UP, UP.float(), DOWN), r"w_up\.dtype = fp32, x\.dtype = fp16: both"),
    "bf16 in the interpreter": (
        tuple(t.bfloat16() for t in (X, UP, UP, DOWN)),
        r"x\.dtype = bf16: .* wrongly; use x\.half",
    ),
    "a list": (([[1.0]], UP, UP, DOWN), r"x = list: mlp needs a torch\.Tensor"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_a_wrong_tensor_is_named_with_the_remedy(mistake):
    tensors, sentence = BAD[mistake]
    with pytest.raises((ValueError, TypeError), match=sentence):
        mlp(*tensors)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"m": 0}, r"m = 0: a size must be a whole number of at least 1"),
        ({"dtype": "bf16", "target": "sm_75"}, r"dtype = 'bf16': .*T4.* has none"),
        ({"target": "sm_42"}, r"target = 'sm_42': not known"),
    ],
)
def test_a_plan_that_cannot_be_made_says_why(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        plan(**{"m": 4, "d_model": 8, "d_ff": 8, **arguments})

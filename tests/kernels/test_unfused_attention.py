"""kernels.unfused_attention: the same result, with the score matrix counted through memory."""

import pytest
import torch

from kernels import flash_attention
from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.evidence.counted import counted_rows
from kernels.unfused_attention import LONGEST, experiment, plan, unfused_attention


@pytest.mark.parametrize(
    "sizes",
    [
        {"batch": 1, "length": 1, "heads": 2, "kv_heads": 1, "head_dim": 64},
        {"batch": 2, "length": 37, "heads": 3, "kv_heads": 3, "head_dim": 96},
        {"batch": 1, "length": 129, "heads": 4, "kv_heads": 2, "head_dim": 64},
        {"batch": 1, "length": 128, "heads": 2, "kv_heads": 1, "head_dim": 128},
        {"batch": 1, "length": 64, "heads": 1, "kv_heads": 1, "head_dim": 256},
    ],
    ids=lambda s: f"L{s['length']}-d{s['head_dim']}",
)
def test_result_bytes_and_flops_are_exact(sizes):
    row = counted.run(experiment, **sizes)
    row.check(experiment)
    assert row.relative_error < 1e-3


def test_the_score_matrix_is_written_and_read_whole_twice():
    sizes = {"batch": 1, "length": 96, "heads": 4, "kv_heads": 1, "head_dim": 64}
    row = counted.run(experiment, **sizes)
    square = 4 * 96 * 96 * 2
    for name in ("scores", "probabilities"):
        assert row.reads[name].unique == row.writes[name].unique == square
    assert experiment.tiles(row.plan, **sizes).workspace == {"scores", "probabilities"}


def test_evidence_charges_the_twin_for_its_matrix_and_the_fused_kernel_for_nothing_else():
    sizes = {"batch": 1, "length": 128, "heads": 4, "kv_heads": 1, "head_dim": 64}
    (fused,) = counted_rows.rows(flash_attention.experiment, [sizes])
    (twin,) = counted_rows.rows(experiment, [sizes])
    assert twin.useful_flops == fused.useful_flops
    assert twin.formula_bytes == twin.counted_bytes
    assert twin.counted_bytes - fused.counted_bytes == 4 * (4 * 128 * 128) * 2
    assert twin.workspace_bytes == fused.workspace_bytes == 0


def test_both_kernels_give_the_same_result():
    inputs = experiment.inputs(batch=1, length=100, heads=4, kv_heads=2, head_dim=64)
    difference = counted.relative_error(
        unfused_attention(**inputs), flash_attention.flash_attention(**inputs)
    )
    assert difference < 1e-3


def test_slices_of_one_projection_are_read_where_they_lie():
    qkv = torch.randn(1, 70, 8, 64, generator=torch.Generator().manual_seed(3)).half()
    q, k, v = qkv.split([4, 2, 2], dim=2)
    assert counted.relative_error(unfused_attention(q, k, v), experiment.reference(q, k, v)) < 1e-3


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", [1, 500, 8192])
def test_no_tile_is_much_wider_than_its_product(target, length):
    made = plan(1, length, 32, 8, 64, "fp16", target)
    assert made.weighted_sum.block_n <= 64
    assert made.block >= length
    assert made.rows * made.block <= max(8192, made.block)


def test_a_prompt_whose_rows_fit_no_program_is_refused():
    with pytest.raises(ValueError, match=rf"length = {LONGEST + 1}: .* use flash_attention"):
        plan(1, LONGEST + 1, 1, 1, 64)


def test_a_wrong_tensor_is_named_for_this_kernel():
    with pytest.raises(ValueError, match=r"q\.shape = \(8,\): unfused_attention needs q\[B, L, H, d\]"):
        unfused_attention(torch.ones(8), torch.ones(8), torch.ones(8))

"""kernels.unfused_attention: the same result, with the score matrix counted through memory."""

import pytest
import torch

from kernels import flash_attention
from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.evidence.counted import counted_rows
from kernels.unfused_attention import experiment, plan, unfused_attention


def test_the_score_matrix_is_written_and_read_whole_twice():
    sizes = {"batch": 1, "length": 96, "heads": 4, "kv_heads": 1, "head_dim": 64}
    row = counted.run(experiment, **sizes)
    square = 4 * 96 * 96 * 2
    for name in ("scores", "probabilities"):
        assert row.reads[name].unique == row.writes[name].unique == square
    assert experiment.issued(row.plan, **sizes).workspace == {"scores", "probabilities"}


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

"""kernels.gemv: the right product, the exact bytes and FLOPs, either layout, no matrix instruction."""

import pytest
import torch

from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.gemv import experiment, gemv, kn_experiment, plan


def test_one_row_issues_no_flop_for_rows_that_are_not_there():
    row = counted.run(experiment, m=1, k=4096, n=64)
    useful = 2 * 4096 * 64
    sums = row.plan.splits * 64 * (row.plan.block_k - 1)
    partials = row.plan.splits * 256
    assert row.plan.splits > 1
    assert row.alu_flops == useful + sums + partials


def test_every_weight_reaches_the_kernel_once_and_no_sector_is_wasted():
    for layout in (experiment, kn_experiment):
        w = counted.run(layout, m=1, k=512, n=256).reads["w"]
        assert w.unique == w.block == w.issued == 512 * 256 * 2
        assert w.sector <= w.unique + 32 * 512  # rows that do not start on a sector


def _x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).half()


STRIDED = {
    "x every second": lambda: (_x(400)[::2], _x(200, 30)),
    "w every third row": lambda: (_x(200), _x(600, 30)[::3]),
    "w a slice of columns": lambda: (_x(2, 200), _x(200, 90)[:, 30:60]),
    "w transposed and sliced": lambda: (_x(2, 200), _x(30, 300).T[50:250]),
}


@pytest.mark.parametrize("layout", STRIDED)
def test_any_strides(layout):
    x, w = STRIDED[layout]()
    with counted.count() as tally:
        y = gemv(x, w)
    assert counted.relative_error(y, x.double() @ w.double()) < 5e-4
    assert tally.reads()["w"].unique == w.numel() * 2


def test_a_vector_gives_a_vector_and_a_row_a_row():
    x, w = _x(64), _x(64, 8)
    assert gemv(x, w).shape == (8,)
    assert torch.equal(gemv(x[None], w), gemv(x, w)[None])


def test_split_k_gives_the_same_bits_every_time():
    x, w = _x(1, 2048), _x(16, 2048).T
    assert plan(1, 2048, 16).splits > 1
    assert torch.equal(gemv(x, w), gemv(x, w))


# ------------------------------------------------------------------------ plans, refusals, chips


@pytest.mark.parametrize("along", ["k", "n"])
@pytest.mark.parametrize("target", list(TARGETS))
def test_a_projection_has_programs_for_every_multiprocessor(target, along):
    for n in (1024, 4096, 14_336):
        chosen = plan(1, 4096, n, "fp16", target, along=along)
        assert chosen.programs(1, n) >= 1.5 * TARGETS[target].sm_count


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 5000, 3), (4, 17, 70_000), (2, 4096, 4096)])
def test_a_plan_splits_no_further_than_there_is_k(sizes):
    m, k, n = sizes
    for along in ("k", "n"):
        chosen = plan(m, k, n, "fp16", "sm_90", along=along)
        assert (chosen.splits - 1) * chosen.k_blocks(k) * chosen.block_k < k
        assert chosen.block_m * chosen.block_n * chosen.block_k <= 8192

"""kernels.linear: the right product, the exact bytes and FLOPs, and a plan that suits the card."""

import pytest
import torch

from book import catalog
from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.linear import experiment, linear, plan
from kernels.tiling import products


@pytest.mark.parametrize("m", [1, 16, 256])
def test_intensity_is_the_formula_and_not_its_limit(m):
    row = counted.run(experiment, m=m, k=1024, n=1024)
    row.check(experiment)
    compulsory = sum(row.reads[t].unique for t in "xw") + row.writes["y"].unique
    assert 2 * m * 1024 * 1024 / compulsory == m / (1 + m / 1024 + m / 1024)


def test_one_row_on_a_16_row_tile_issues_16_times_the_useful_flops():
    row = counted.run(experiment, m=1, k=1024, n=1024)
    assert row.dot_flops == 16 * 2 * 1024 * 1024


def test_partial_sums_are_a_named_term():
    row = counted.run(experiment, m=2, k=512, n=256)
    assert row.plan.splits > 1
    partials = row.plan.splits * 2 * 256 * 4
    assert row.reads["partials"].unique == row.writes["partials"].unique == partials
    assert experiment.issued(row.plan, m=2, k=512, n=256).workspace_bytes == 2 * partials


def _x(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).half()


STRIDED = {
    "w stored as [N, K]": lambda: (_x(5, 200), _x(90, 200).T),
    "x transposed": lambda: (_x(200, 21).T, _x(200, 90)),
    "x every second column": lambda: (_x(5, 400)[:, ::2], _x(200, 90)),
    "w every third row": lambda: (_x(5, 200), _x(600, 90)[::3]),
    "w a slice of columns": lambda: (_x(70, 200), _x(200, 300)[:, 100:190]),
    "x one row repeated": lambda: (_x(1, 200).expand(7, 200), _x(200, 90)),
}


@pytest.mark.parametrize("layout", STRIDED)
def test_any_strides(layout):
    x, w = STRIDED[layout]()
    with counted.count() as tally:
        y = linear(x, w)
    assert counted.relative_error(y, experiment.reference(x, w)) < 5e-4
    rows = 1 if "repeated" in layout else x.shape[0]
    assert tally.reads()["x"].unique == rows * 200 * 2
    assert tally.reads()["w"].unique == w.numel() * 2
    assert tally.writes()["y"].unique == y.numel() * 2


def test_split_k_gives_the_same_bits_every_time():
    x, w = _x(2, 1024), _x(1024, 96)
    assert plan(2, 1024, 96).splits > 1
    assert torch.equal(linear(x, w), linear(x, w))


# ---------------------------------------------------------------------------------- plans


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "sm_75"])
def test_a_decode_step_has_programs_for_every_multiprocessor(target):
    chosen = plan(1, 4096, 4096, "fp16", target)
    assert chosen.programs(1, 4096) >= 1.5 * TARGETS[target].sm_count
    assert chosen.block_m == 16


@pytest.mark.parametrize(
    ("target", "tile"),
    [("sm_80", (128, 128, 64, 8)), ("sm_90", (128, 256, 64, 8)), ("sm_100", (128, 256, 64, 8))],
)
def test_many_rows_get_the_largest_tile_and_no_split(target, tile):
    chosen = plan(4096, 8192, 8192, "bf16", target)
    assert (chosen.block_m, chosen.block_n, chosen.block_k, chosen.num_warps) == tile
    assert chosen.splits == 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("m", [1, 16, 17, 64, 100, 256, 4096])
def test_every_plan_covers_k_once_fits_shared_memory_and_limits_its_workspace(target, dtype, m):
    for k, n in [(64, 64), (523, 463), (4096, 4096), (14336, 4096), (4096, 14336), (16384, 96)]:
        chosen = plan(m, k, n, dtype, target)
        piece = chosen.k_blocks(k) * chosen.block_k
        assert (chosen.splits - 1) * piece < k <= chosen.splits * piece
        size = catalog.itemsize(dtype)
        # the product being computed needs its operands only in registers: one stage less is stored
        stages = chosen.num_stages if TARGETS[target].backend == "cuda" else chosen.num_stages - 1
        shared = stages * (chosen.block_m + chosen.block_n) * chosen.block_k * size
        assert shared <= TARGETS[target].max_shared_per_block
        issued = experiment.issued(chosen, m=m, k=k, n=n, itemsize=size)
        operands = experiment.cost(m=m, k=k, n=n, itemsize=size).bytes
        assert issued.workspace_bytes <= products.WORKSPACE_SHARE * operands


def test_a_plan_is_a_value():
    assert plan(16, 4096, 4096, "fp16", "sm_90") == plan(16, 4096, 4096, "fp16", TARGETS["sm_90"])
    with pytest.raises(AttributeError):
        plan(16, 64, 64).block_m = 8


def test_with_no_gpu_the_plan_is_the_one_for_an_h100():
    assert plan(16, 4096, 4096, "fp16") == plan(16, 4096, 4096, "fp16", "sm_90")

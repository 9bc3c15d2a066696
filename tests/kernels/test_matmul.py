"""kernels.matmul: the tiled product that chapter 01 measures the matrix units with."""

import pytest
import torch

from kernels.evidence import counted
from kernels.matmul import experiment, matmul


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (37, 463, 523), (200, 96, 300), (128, 128, 256)])
def test_result_bytes_and_flops_are_exact(m, k, n, dtype):
    row = counted.run(experiment, m=m, k=k, n=n, dtype=dtype)
    row.check(experiment)
    assert not experiment.tiles(row.plan, m=m, k=k, n=n).workspace


def test_grouping_walks_down_the_rows_first_and_reaches_every_tile():
    x, w = torch.randn(300, 64).half(), torch.randn(64, 600).half()
    y = matmul(x, w)
    assert counted.relative_error(y, experiment.reference(x, w)) < 5e-4


def test_a_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"w\.shape = \(9, 4\): its first size must be K = 8"):
        matmul(torch.ones(4, 8), torch.ones(9, 4))

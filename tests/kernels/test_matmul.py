"""kernels.matmul: the tiled product that chapter 01 measures the matrix units with."""

import torch

from kernels.evidence import counted
from kernels.matmul import experiment, matmul


def test_grouping_walks_down_the_rows_first_and_reaches_every_tile():
    x, w = torch.randn(300, 64).half(), torch.randn(64, 600).half()
    y = matmul(x, w)
    assert counted.relative_error(y, experiment.reference(x, w)) < 5e-4

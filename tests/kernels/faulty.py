"""The toy experiment in three wrong versions: wrong numbers, a store without a mask, a race."""

import dataclasses

import torch

from kernels.contract.devices import tl, triton
from tests.kernels import toy as right


@triton.jit
def maskless_kernel(x_ptr, w_ptr, y_ptr, m, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Stores whole tiles, also where y has ended."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    tl.store(y_ptr + rm[:, None] * n + rn[None, :], acc.to(y_ptr.dtype.element_ty))


@triton.jit
def racing_kernel(x_ptr, w_ptr, y_ptr, m, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Writes its own row of y, and adds the next program's to it."""
    row, columns = tl.program_id(0), tl.arange(0, BN)
    tl.store(y_ptr + row * n + columns, tl.load(x_ptr + row * k + columns))
    following = tl.load(y_ptr + (row + 1) % m * n + columns)
    tl.store(y_ptr + row * n + columns, following)


def _instead(kernel, grid):
    def run(x, w):
        (m, k), n = x.shape, w.shape[1]
        y = torch.zeros(m, n, dtype=x.dtype, device=x.device)
        kernel[grid(m)](x, w, y, m, k, n, BM=16, BN=64, BK=64)
        return y

    return run


def doubled(x, w):
    return 2 * right.toy(x, w)


maskless = _instead(maskless_kernel, lambda m: (triton.cdiv(m, 16), 1))
racing = _instead(racing_kernel, lambda m: (m, 1))
wrong_experiment = dataclasses.replace(right.experiment, run=doubled)
maskless_experiment = dataclasses.replace(right.experiment, run=maskless)
racing_experiment = dataclasses.replace(
    right.experiment, run=racing, reference=lambda x, w: x.double().roll(-1, 0)
)

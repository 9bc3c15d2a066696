"""A tiny experiment for the tests of the evidence: y[m, n] = x[m, k] @ w[k, n] in square tiles."""

import torch

from book import cost
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.tensors import Tensor


@triton.jit
def toy_kernel(x_ptr, w_ptr, y_ptr, m, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, k, BK):
        rk = k0 + tl.arange(0, BK)
        inside_x, inside_w = (rm[:, None] < m) & (rk[None, :] < k), (rk[:, None] < k) & (rn[None, :] < n)
        x = tl.load(x_ptr + rm[:, None] * k + rk[None, :], mask=inside_x, other=0.0)
        w = tl.load(w_ptr + rk[:, None] * n + rn[None, :], mask=inside_w, other=0.0)
        acc = tl.dot(x, w, acc)
    y = acc.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rm[:, None] * n + rn[None, :], y, mask=(rm[:, None] < m) & (rn[None, :] < n))


def _plan(*, m, k, n, dtype, target):
    return {"BM": 64 if m > 32 else 16, "BN": 64, "BK": 64}


def _grid(plan, m, n):
    return (triton.cdiv(m, plan["BM"]), triton.cdiv(n, plan["BN"]))


def toy(x, w):
    (m, k), n = x.shape, w.shape[1]
    plan = _plan(m=m, k=k, n=n, dtype=None, target=None)
    y = torch.empty(m, n, dtype=x.dtype, device=x.device)
    toy_kernel[_grid(plan, m, n)](x, w, y, m, k, n, **plan)
    return y


def _launches(plan, x, w, y):
    (m, k), n = x.shape, w.shape[1]
    options = {**plan, "num_warps": 4, "num_stages": 3}
    return [Launch(toy_kernel, _grid(plan, m, n), (x, w, y, m, k, n), options)]


experiment = Experiment(
    name="toy",
    sizes=("m", "k", "n"),
    axis="m",
    tensors={"x": Tensor("m k"), "w": Tensor("k n"), "y": Tensor("m n", out=True)},
    run=toy,
    reference=lambda x, w: x.double() @ w.double(),
    cost=cost.linear,
    plan=_plan,
    issued=lambda plan, *, m, k, n, itemsize=2: cost.linear_issued(
        m, k, n, block_m=plan["BM"], block_n=plan["BN"], block_k=plan["BK"], itemsize=itemsize
    ),
    launches=_launches,
    sweep={
        "counted": {"m": [1, 64], "k": 128, "n": 128},
        "timed": {"m": [1, 16, 256], "k": 256, "n": 256},
        "compiled": {"m": 256, "k": 1024, "n": 1024},
    },
)

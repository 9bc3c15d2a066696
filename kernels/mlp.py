"""y = (silu(x w_gate) * (x w_up)) w_down, Llama's gated MLP, in two kernels. Confirms chapter 03.

The first computes a tile of x w_gate and the same tile of x w_up side by side, from one load of x,
and multiplies them in registers: neither ever reaches memory, only `hidden` does, once. The second
is `kernels.linear`'s. With one row the block is a stream of weights, 3 * d_model * d_ff of them;
with thousands it is arithmetic.
"""

from dataclasses import dataclass, replace

import torch

from book import cost
from kernels import linear
from kernels.contract import devices
from kernels.contract.checks import planned
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor
from kernels.matmul import tile_position
from kernels.tiling import products


@triton.jit
def gate_up_kernel(
    x_ptr, w_gate_ptr, w_up_ptr, hidden_ptr, M, N, K, stride_xm, stride_xk,
    stride_gk, stride_gn, stride_uk, stride_un,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    # rm [BLOCK_M] rows and rn [BLOCK_N] columns of hidden
    rm, rn = tile_position(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rk = tl.arange(0, BLOCK_K).to(tl.int64)  # [BLOCK_K]
    # [BLOCK_M, BLOCK_K] of x, then [BLOCK_K, BLOCK_N] of both weights
    x_ptrs = x_ptr + rm[:, None] * stride_xm + rk[None, :] * stride_xk
    gate_ptrs = w_gate_ptr + rk[:, None] * stride_gk + rn[None, :] * stride_gn
    up_ptrs = w_up_ptr + rk[:, None] * stride_uk + rn[None, :] * stride_un
    block_k = tl.cast(BLOCK_K, tl.int64)
    in_m, in_n = rm[:, None] < M, rn[None, :] < N
    gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range((K + BLOCK_K - 1) // BLOCK_K):
        in_x = in_m & (rk < K)[None, :]  # unused where no tile reaches over an edge
        x = tl.load(x_ptrs) if WHOLE_X else tl.load(x_ptrs, mask=in_x, other=0.0)
        if WHOLE_W:
            w_gate, w_up = tl.load(gate_ptrs), tl.load(up_ptrs)
        else:
            in_w = (rk < K)[:, None] & in_n
            w_gate = tl.load(gate_ptrs, mask=in_w, other=0.0)
            w_up = tl.load(up_ptrs, mask=in_w, other=0.0)
        gate = tl.dot(x, w_gate, gate, input_precision="ieee")
        up = tl.dot(x, w_up, up, input_precision="ieee")
        rk += BLOCK_K
        x_ptrs += block_k * stride_xk
        gate_ptrs += block_k * stride_gk
        up_ptrs += block_k * stride_uk
    hidden = gate * up / (1.0 + tl.exp(0.0 - gate))  # silu(gate) * up
    hidden_ptrs = hidden_ptr + rm[:, None] * N + rn[None, :]  # [BLOCK_M, BLOCK_N]
    tl.store(hidden_ptrs, hidden.to(hidden_ptr.dtype.element_ty), mask=in_m & in_n)


def mlp(x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor) -> torch.Tensor:
    """y[M, D] of x[M, D], with w_gate, w_up[D, F] and w_down[F, D]; D is d_model, F is d_ff.

    In the dtype of x, summed in fp32, `hidden` rounded to the dtype in between. Any strides (for
    weights that are stored transposed pass `.T`), any sizes >= 1. Raises ValueError or TypeError,
    with the remedy, for tensors that don't fit each other.
    """
    sizes, dtype = experiment.check(x=x, w_gate=w_gate, w_up=w_up, w_down=w_down)
    y = x.new_empty(x.shape)
    devices.launch(launches(plan(**sizes, dtype=dtype), x, w_gate, w_up, w_down, y), x.device)
    return y


@dataclass(frozen=True)
class Plan:
    """The tiles of both kernels. `gate_up` counts the columns of one of its two products."""

    gate_up: products.Plan
    down: products.Plan


@planned()
def plan(
    m: int, d_model: int, d_ff: int, dtype: str | None = None, target: Target | str | None = None
) -> Plan:
    """Tiles for m rows on `target`: its own for both products at once, `kernels.linear`'s for down.

    Two products side by side fill a tile of the table when each has half its width. K is never
    split there: the halves of a gate can't be activated before they are added.
    """
    halves = [
        replace(t, block_n=t.block_n // 2) for t in products.candidates(m, d_model, d_ff, dtype, target)
    ]
    gate_up = products.fullest(halves, m, d_model, d_ff, dtype, target, at_once=2)
    return Plan(gate_up, products.split(m, d_ff, d_model, dtype, target))


def launches(plan: Plan, x, w_gate, w_up, w_down, y) -> list[Launch]:
    """Both kernels' launches, in order; `hidden` and any workspace are made here."""
    (m, d_model), d_ff = x.shape, w_gate.shape[1]
    hidden = x.new_empty(m, d_ff)
    args = (x, w_gate, w_up, hidden, m, d_ff, d_model, *x.stride(), *w_gate.stride(), *w_up.stride())
    options = plan.gate_up.options(m, d_model, d_ff)
    first = Launch(gate_up_kernel, (plan.gate_up.programs(m, d_ff),), args, options, "gate and up")
    down, *add_partials = linear.launches(plan.down, hidden, w_down, y)
    return [first, replace(down, label="down", names={"partials": "down_partials"}), *add_partials]


def reference(
    x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
) -> torch.Tensor:
    """The same in float64, by torch."""
    x = x.double()
    hidden = torch.nn.functional.silu(x @ w_gate.double()) * (x @ w_up.double())
    return hidden @ w_down.double()


def issued(plan: Plan, **sizes: float) -> cost.Cost:
    """What `plan` issues: whole tiles, and beside them the activation."""
    tile = plan.gate_up
    activated = tile.tiles(sizes["m"], sizes["d_ff"]) * tile.block_m * tile.block_n
    # negate, add one, multiply by up; exponential and division apart
    return cost.mlp_issued(**sizes, gate_up=tile.blocks, down=plan.down.blocks, alu_flops=3 * activated)


_LLAMA_3_8B = {"d_model": 4096, "d_ff": 14336}

experiment = Experiment(
    name="mlp",
    sizes=("m", "d_model", "d_ff"),
    axis="m",
    tensors={
        "x": Tensor("m d_model"),
        "w_gate": Tensor("d_model d_ff", fan_in="d_model"),
        "w_up": Tensor("d_model d_ff", fan_in="d_model"),
        "w_down": Tensor("d_ff d_model", fan_in="d_ff"),
        "y": Tensor("m d_model", out=True),
    },
    run=mlp,
    reference=reference,
    cost=cost.mlp,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={
        "counted": {"m": [1, 16, 128], "d_model": 256, "d_ff": 896},
        "timed": {"m": [1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096], **_LLAMA_3_8B},
        "compiled": {"m": [1, 16, 64, 256, 4096], **_LLAMA_3_8B},
    },
    edges=((1, 256, 896), (16, 37, 523), (70, 96, 200)),
)

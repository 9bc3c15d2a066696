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
from kernels.contract import checks, devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Launch
from kernels.contract.targets import Target
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


@triton.jit
def down_kernel(
    hidden_ptr, w_down_ptr, y_ptr, down_partials_ptr, M, N, K, stride_xm, stride_xk,
    stride_wk, stride_wn, SPLITS: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    """kernels.linear, by the names of its tensors here: their bytes go by them."""
    linear.linear_kernel(
        hidden_ptr, w_down_ptr, y_ptr, down_partials_ptr, M, N, K, stride_xm, stride_xk,
        stride_wk, stride_wn, SPLITS, BLOCK_M, BLOCK_N, BLOCK_K,
        GROUP_M, WHOLE_X, WHOLE_W,
    )  # fmt: skip


def mlp(x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor) -> torch.Tensor:
    """y[M, D] of x[M, D], with w_gate, w_up[D, F] and w_down[F, D]; D is d_model, F is d_ff.

    In the dtype of x, summed in fp32, `hidden` rounded to the dtype in between. Any strides (for
    weights that are stored transposed pass `.T`), any sizes >= 1. Raises ValueError or TypeError,
    with the remedy, for tensors that don't fit each other.
    """
    m, d_model, d_ff = _shapes(x, w_gate, w_up, w_down)
    chosen = plan(m, d_model, d_ff, devices.dtype_name(x.dtype))
    y = torch.empty(m, d_model, dtype=x.dtype, device=x.device)
    devices.launch(launches(chosen, x, w_gate, w_up, w_down, y), x.device)
    return y


def _shapes(x, w_gate, w_up, w_down) -> tuple[int, int, int]:
    weights = {"w_gate": w_gate, "w_up": w_up, "w_down": w_down}
    checks.rank("mlp", "x", x, "[M, D]")
    for name, w in weights.items():
        checks.rank("mlp", name, w, "[F, D]" if name == "w_down" else "[D, F]")
    checks.tensors("mlp", x=x, **weights)
    m, d_model = x.shape
    d_ff = w_gate.shape[1]
    for name, w in weights.items():
        wanted = (d_ff, d_model) if name == "w_down" else (d_model, d_ff)
        if w.shape != wanted:
            raise ValueError(
                f"{name}.shape = {tuple(w.shape)}: it must be {wanted}, from the last size of x, D = "
                f"{d_model}, and of w_gate, F = {d_ff}; for a weight that is stored transposed pass {name}.T."
            )
    return m, d_model, d_ff


@dataclass(frozen=True)
class Plan:
    """The tiles of both kernels. `gate_up` counts the columns of one of its two products."""

    gate_up: products.Plan
    down: products.Plan


def plan(
    m: int, d_model: int, d_ff: int, dtype: str | None = None, target: Target | str | None = None
) -> Plan:
    """Tiles for m rows on `target`: its own for both products at once, `kernels.linear`'s for down.

    Two products side by side fill a tile of the table when each has half its width. K is never
    split there: the halves of a gate can't be activated before they are added. Arguments and errors
    are those of `kernels.tiling.products.split`.
    """
    usable, _, sms = products.candidates(m, d_model, d_ff, dtype, target)
    for tile in usable:
        gate_up = replace(tile, block_n=tile.block_n // 2)
        wanted = sms if tile.block_m * tile.block_n > 64 * 128 else 2 * sms  # small tiles share one
        if gate_up.programs(m, d_ff) >= products.FULL_ENOUGH * wanted:
            break
    return Plan(gate_up, products.split(m, d_ff, d_model, dtype, target))


def launches(plan: Plan, x, w_gate, w_up, w_down, y) -> list[Launch]:
    """Both kernels' launches, in order; `hidden` and any workspace are made here."""
    (m, d_model), d_ff = x.shape, w_gate.shape[1]
    hidden = torch.empty(m, d_ff, dtype=x.dtype, device=x.device)
    args = (x, w_gate, w_up, hidden, m, d_ff, d_model, *x.stride(), *w_gate.stride(), *w_up.stride())
    options = plan.gate_up.options(m, d_model, d_ff)
    first = Launch(gate_up_kernel, (plan.gate_up.programs(m, d_ff),), args, options, "gate and up")
    down, *add_partials = linear.launches(plan.down, hidden, w_down, y)
    return [first, replace(down, kernel=down_kernel, label="down"), *add_partials]


# ------------------------------------------------------------------------------- the experiment


def inputs(*, m: int, d_model: int, d_ff: int, dtype: str = "fp16", device: str = "cpu", seed: int = 0):
    """Random x[m, d_model] of variance 1, and weights that keep the variance of what they multiply."""
    generator = torch.Generator(device).manual_seed(seed)

    def random(rows, columns, scale=1.0):
        x = torch.randn(rows, columns, generator=generator, device=device)
        return x.mul_(scale).to(devices.TORCH_DTYPES[dtype])

    return {
        "x": random(m, d_model),
        "w_gate": random(d_model, d_ff, d_model**-0.5),
        "w_up": random(d_model, d_ff, d_model**-0.5),
        "w_down": random(d_ff, d_model, d_ff**-0.5),
    }


def reference(
    x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
) -> torch.Tensor:
    """The same in float64, by torch."""
    x = x.double()
    hidden = torch.nn.functional.silu(x @ w_gate.double()) * (x @ w_up.double())
    return hidden @ w_down.double()


def _meta_launches(plan: Plan, *, m: int, d_model: int, d_ff: int, dtype: str) -> list[Launch]:
    shapes = ((m, d_model), (d_model, d_ff), (d_model, d_ff), (d_ff, d_model), (m, d_model))
    kind = {"dtype": devices.TORCH_DTYPES[dtype], "device": "meta"}
    return launches(plan, *(torch.empty(shape, **kind) for shape in shapes))


def issued(plan: Plan, *, m: int, d_model: int, d_ff: int, itemsize: float = 2) -> cost.Cost:
    """What `plan` issues: whole tiles, and beside them the activation."""

    def blocks(p: products.Plan) -> dict[str, int]:
        names = ("block_m", "block_n", "block_k", "splits", "reduce_block")
        return {name: getattr(p, name) for name in names}

    gate_up = plan.gate_up
    activated = gate_up.tiles(m, d_ff) * gate_up.block_m * gate_up.block_n
    return cost.mlp_issued(
        m,
        d_model,
        d_ff,
        gate_up=blocks(gate_up),
        down=blocks(plan.down),
        itemsize=itemsize,
        alu_flops=3 * activated,  # negate, add one, multiply by up; exponential and division apart
    )


_LLAMA_3_8B = {"d_model": 4096, "d_ff": 14336}

experiment = Experiment(
    name="mlp",
    sizes=("m", "d_model", "d_ff"),
    axis="m",
    inputs=inputs,
    run=mlp,
    reference=reference,
    cost=cost.mlp,
    plan=plan,
    tiles=issued,
    launches=_meta_launches,
    sweep={
        "counted": {"m": [1, 16, 128], "d_model": 256, "d_ff": 896},
        "timed": {"m": [1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096], **_LLAMA_3_8B},
        "compiled": {"m": [1, 16, 64, 256, 4096], **_LLAMA_3_8B},
    },
)

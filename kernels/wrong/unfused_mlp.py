"""The mistake: gate, up and activation are launches of their own, with their results in memory between.

The right one is `kernels.mlp`, whose gate and up never leave the registers. Chapter 03.
"""

from dataclasses import dataclass, replace

import torch

from book import cost
from book.say import say
from kernels import linear, mlp
from kernels.contract import devices
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong
from kernels.tiling import products
from kernels.tiling.integers import ceil_div

BLOCK = 4096  # elements of a program of the activation


@triton.jit
def activate_kernel(gate_ptr, up_ptr, hidden_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK] of size = M * N
    inside = offsets < size
    gate = tl.load(gate_ptr + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    up = tl.load(up_ptr + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    hidden = gate * up / (1.0 + tl.exp(0.0 - gate))
    tl.store(hidden_ptr + offsets, hidden.to(hidden_ptr.dtype.element_ty), mask=inside)


def unfused_mlp(
    x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
) -> torch.Tensor:
    """y[M, D] as `kernels.mlp` gives it; it raises as that does."""
    sizes, dtype = experiment.check(x=x, w_gate=w_gate, w_up=w_up, w_down=w_down)
    y = x.new_empty(x.shape)
    devices.launch(launches(plan(**sizes, dtype=dtype), x, w_gate, w_up, w_down, y), x.device)
    return y


@dataclass(frozen=True)
class Plan:
    """The tiles of gate and of up, which are alike, and those of down."""

    wide: products.Plan
    down: products.Plan


def plan(m: int, d_model: int, d_ff: int, **where) -> Plan:
    """What `kernels.linear` would choose for each product."""
    return Plan(linear.plan(m, d_model, d_ff, **where), linear.plan(m, d_ff, d_model, **where))


def launches(plan: Plan, x, w_gate, w_up, w_down, y) -> list[Launch]:
    """Gate, up, activation, down: what passes between them is made here."""
    gate, up, hidden = (x.new_empty(len(x), w_gate.shape[1]) for _ in range(3))
    size = hidden.numel()
    activate = Launch(
        activate_kernel,
        (ceil_div(size, BLOCK),),
        (gate, up, hidden, size),
        {"BLOCK": BLOCK, "num_warps": 8, "num_stages": 1},
        "activation",
    )
    return [
        *_product(plan.wide, x, w_gate, gate, "gate"),
        *_product(plan.wide, x, w_up, up, "up"),
        activate,
        *_product(plan.down, hidden, w_down, y, "down"),
    ]


def _product(plan: products.Plan, x, w, y, label: str) -> list[Launch]:
    main, *add_partials = linear.launches(plan, x, w, y)
    names = {"y": "y" if label == "down" else label, "partials": f"{label}_partials"}
    return [replace(main, label=label, names=names), *add_partials]


def issued(plan: Plan, **sizes: float) -> cost.Cost:
    """The formula; what the right kernel has as workspace, too, is no part of the mistake."""
    workspace = ("hidden", "gate_partials", "up_partials", "down_partials")
    return replace(cost.mlp(**sizes), workspace=frozenset(workspace))


experiment = replace(
    mlp.experiment, variant="unfused", run=unfused_mlp, plan=plan, launches=launches, issued=issued
)
wrong = Wrong(
    experiment,
    say("It writes gate and up to memory, reads them back to activate them, and reads x once for each."),
)

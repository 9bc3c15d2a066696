"""The gated MLP (chapter 03): y = (silu(x w_gate) * (x w_up)) w_down, as Llama's SwiGLU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from book.cost.base import Cost, Number, positive
from book.cost.matrix import linear, linear_issued

Fused = Literal["all", "gate_up", "none"]

# What each way of running the block puts into memory and takes out again, all [m, d_ff].
_INTERMEDIATES: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "gate_up": ("hidden",),
    "none": ("gate", "up", "hidden"),
}


def mlp(
    m: Number,
    d_model: Number,
    d_ff: Number,
    itemsize: Number = 2,
    weight_itemsize: Number | None = None,
    *,
    fused: Fused = "all",
) -> Cost:
    """The gated MLP on x[m, d_model], with w_gate, w_up [d_model, d_ff] and w_down [d_ff, d_model].

    FLOPs: 6 * m * d_model * d_ff, the three products; the few of the activation are left out.
    Bytes: x, the three matrices and y, each once. What else goes through memory depends on how
    much one kernel does, and is named as workspace, an [m, d_ff] matrix written and read. itemsize:
    of x, y and what lies between; weight_itemsize: of the matrices, by default the same.

    fused="all": nothing else; the least there is, and what the formula in the text means.
    fused="gate_up": "hidden" = silu(gate) * up. One kernel makes it, a second one reads it.
    fused="none": "gate" and "up" as well, which a third kernel turns into "hidden".
    """
    positive(m=m, d_model=d_model, d_ff=d_ff)
    if fused not in _INTERMEDIATES:
        raise ValueError(f"fused = {fused!r}: not known; use one of {', '.join(_INTERMEDIATES)}.")
    sizes: dict[str, Any] = {"itemsize": itemsize, "weight_itemsize": weight_itemsize}
    up, down = linear(m, d_model, d_ff, **sizes), linear(m, d_ff, d_model, **sizes)
    passed = {name: m * d_ff * itemsize for name in _INTERMEDIATES[fused]}
    weights = {"w_gate": up.reads["w"], "w_up": up.reads["w"], "w_down": down.reads["w"]}
    return Cost(
        2 * up.flops + down.flops,
        {"x": up.reads["x"], **weights, **passed},
        {"y": down.writes["y"], **passed},
        frozenset(passed),
    )


def mlp_issued(
    m: int,
    d_model: int,
    d_ff: int,
    *,
    gate_up: Mapping[str, int],
    down: Mapping[str, int],
    itemsize: int = 2,
    weight_itemsize: Number | None = None,
    alu_flops: int = 0,
) -> Cost:
    """What two tiled kernels issue for `mlp(..., fused="gate_up")`.

    gate_up, down: the tiles of either kernel, as `linear_issued` takes them (block_m, block_n,
    block_k, splits, reduce_block). Partial sums are named "gate_partials", "up_partials" and
    "down_partials". alu_flops: what the kernels spend element by element on the activation; it is
    reported in `workspace_flops`, beside the products.
    """
    sizes: dict[str, Any] = {"itemsize": itemsize, "weight_itemsize": weight_itemsize}
    useful = mlp(m, d_model, d_ff, **sizes, fused="gate_up")
    up = linear_issued(m, d_model, d_ff, **sizes, **gate_up)
    out = linear_issued(m, d_ff, d_model, **sizes, **down)
    parts = {"gate_partials": up, "up_partials": up, "down_partials": out}
    partials: dict[str, Any] = {
        name: tiles.reads["partials"] for name, tiles in parts.items() if "partials" in tiles.workspace
    }
    return Cost(
        2 * up.flops + out.flops,
        {**useful.reads, **partials},
        {**useful.writes, **partials},
        useful.workspace | set(partials),
        alu_flops + 2 * up.workspace_flops + out.workspace_flops,
    )

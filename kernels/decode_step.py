"""One layer of a decode step, one new token a sequence, as one launch sequence. Confirms chapter 07.

Project to q, k and v; append k and v to the cache; attend to the cache; project back; gated MLP.
The kernels are those of the chapters before: this file says in what order, and that their costs add
up. The weights are read once whatever the batch, the cache once for each sequence: which of the two
the time goes to is the chapter's question.

Left out: RMSNorm, RoPE and the residual sums, element by element on one row a sequence. So this is a
layer's traffic and products, not a model's numbers.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from book import cost
from kernels import decode_attention, kv_append, linear, mlp
from kernels.contract import cache_checks, checks, devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Launch
from kernels.contract.targets import Target
from kernels.linear import linear_kernel
from kernels.tiling import decode, products

# ------------------------- kernels.linear under the names that its tensors have here, for counting


@triton.jit
def qkv_kernel(
    x_ptr, w_qkv_ptr, qkv_ptr, qkv_partials_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    linear_kernel(
        x_ptr, w_qkv_ptr, qkv_ptr, qkv_partials_ptr, M, N, K,
        stride_xm, stride_xk, stride_wk, stride_wn,
        SPLITS, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, WHOLE_X, WHOLE_W,
    )  # fmt: skip


@triton.jit
def o_kernel(
    o_ptr, w_o_ptr, h_ptr, o_partials_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    linear_kernel(
        o_ptr, w_o_ptr, h_ptr, o_partials_ptr, M, N, K,
        stride_xm, stride_xk, stride_wk, stride_wn,
        SPLITS, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, WHOLE_X, WHOLE_W,
    )  # fmt: skip


WEIGHTS = ("w_qkv", "w_o", "w_gate", "w_up", "w_down")


def decode_step(
    x: torch.Tensor,
    w_qkv: torch.Tensor,
    w_o: torch.Tensor,
    w_gate: torch.Tensor,
    w_up: torch.Tensor,
    w_down: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    positions: torch.Tensor,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """y[batch, d_model] of x[batch, d_model]: one layer of one decode step, in fp16 or bf16.

    w_qkv[d_model, (H + 2G) * head_dim], columns of q first, then k, then v; w_o[H * head_dim,
    d_model]; w_gate, w_up[d_model, d_ff]; w_down[d_ff, d_model]. k_cache, v_cache[batch, G, context,
    head_dim] get the new token at positions[batch] (int32 or int64), in place; then each sequence
    attends to lengths[batch] tokens of its cache, by default to all. H comes from w_o's shape.

    Raises ValueError or TypeError, with the remedy, for tensors that don't fit each other.
    """
    weights = dict(zip(WEIGHTS, (w_qkv, w_o, w_gate, w_up, w_down), strict=True))
    sizes = _sizes(x, weights, k_cache, v_cache, positions, lengths)
    chosen = plan(**sizes, dtype=devices.dtype_name(x.dtype))
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    devices.launch(launches(chosen, x, weights, k_cache, v_cache, positions, y, lengths), x.device)
    return y


def _sizes(x: Any, weights: dict[str, Any], k_cache: Any, v_cache: Any, positions: Any, lengths: Any) -> dict:
    checks.rank("decode_step", "x", x, "[batch, d_model]")
    for name, w in weights.items():
        checks.rank("decode_step", name, w, "[K, N]")
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        checks.rank("decode_step", name, cache, cache_checks.CACHE)
    checks.tensors("decode_step", x=x, **weights, k_cache=k_cache, v_cache=v_cache)
    if x.dtype == torch.float32:
        raise TypeError("x.dtype = fp32: decode_step runs in fp16 or bf16; use .half() on all of them.")
    (batch, d_model), (_, kv_heads, context, head_dim) = x.shape, k_cache.shape
    heads = max(weights["w_o"].shape[0] // head_dim, 1)
    d_ff = weights["w_gate"].shape[1]
    wanted = {
        "w_o": (heads * head_dim, d_model),
        "w_qkv": (d_model, (heads + 2 * kv_heads) * head_dim),
        "w_gate": (d_model, d_ff),
        "w_up": (d_model, d_ff),
        "w_down": (d_ff, d_model),
        "k_cache": (batch, kv_heads, context, head_dim),
        "v_cache": (batch, kv_heads, context, head_dim),
    }
    given = {**weights, "k_cache": k_cache, "v_cache": v_cache}
    for name, shape in wanted.items():
        if given[name].shape != shape:
            raise ValueError(
                f"{name}.shape = {tuple(given[name].shape)}: it must be {shape}, from batch = {batch}, "
                f"d_model = {d_model}, H = {heads}, G = {kv_heads}, head_dim = {head_dim} and d_ff = {d_ff}; "
                f"for a weight that is stored transposed pass {name}.T."
            )
    if heads % kv_heads:
        raise ValueError(
            f"heads = {heads}, kv_heads = {kv_heads}: each KV head serves as many query heads as the others; "
            "make heads a multiple of kv_heads."
        )
    cache_checks.side_by_side("decode_step", k_cache=k_cache, v_cache=v_cache)
    cache_checks.table("decode_step", "positions", positions, x)
    if lengths is not None:
        cache_checks.table("decode_step", "lengths", lengths, x)
    values = (batch, d_model, heads, kv_heads, head_dim, d_ff, context)
    return dict(zip(SIZES, values, strict=True))


@dataclass(frozen=True)
class Plan:
    """The plans of the five parts."""

    qkv: products.Plan
    append: kv_append.Plan
    attention: decode.Plan
    o: products.Plan
    mlp: mlp.Plan


def plan(
    batch: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    d_ff: int,
    context: int,
    dtype: str | None = None,
    target: Target | str | None = None,
) -> Plan:
    """What each part would choose by itself on `target`. Arguments and errors are the parts'."""
    where = {"dtype": dtype, "target": target}
    return Plan(
        linear.plan(batch, d_model, (heads + 2 * kv_heads) * head_dim, **where),
        kv_append.plan(batch, kv_heads, head_dim, context, **where),
        decode.plan(batch, heads, kv_heads, head_dim, context, **where),
        linear.plan(batch, heads * head_dim, d_model, **where),
        mlp.plan(batch, d_model, d_ff, **where),
    )


def launches(plan: Plan, x, weights, k_cache, v_cache, positions, y, lengths=None) -> list[Launch]:
    """Every launch of the step, in order. All that passes between the parts is made here."""
    (batch, d_model), (kv_heads, head_dim) = x.shape, k_cache.shape[1::2]
    qkv = x.new_empty(batch, weights["w_qkv"].shape[1])
    each = qkv.view(batch, -1, head_dim)  # q's heads, then k's, then v's: views, nothing is copied
    heads = each.shape[1] - 2 * kv_heads
    q, k, v = each.split((heads, kv_heads, kv_heads), dim=1)
    o = x.new_empty(batch, heads, head_dim)
    h = x.new_empty(batch, d_model)
    to_qkv, *qkv_partials = linear.launches(plan.qkv, x, weights["w_qkv"], qkv)
    to_h, *o_partials = linear.launches(plan.o, o.view(batch, -1), weights["w_o"], h)
    return [
        replace(to_qkv, kernel=qkv_kernel, label="q, k and v projection"),
        *qkv_partials,
        *kv_append.launches(plan.append, k, v, k_cache, v_cache, positions),
        *decode_attention.launches(plan.attention, q, k_cache, v_cache, lengths, o),
        replace(to_h, kernel=o_kernel, label="o projection"),
        *o_partials,
        *mlp.launches(plan.mlp, h, weights["w_gate"], weights["w_up"], weights["w_down"], y),
    ]


# ------------------------------------------------------------------------------ the experiments

SIZES = ("batch", "d_model", "heads", "kv_heads", "head_dim", "d_ff", "context")


def _shapes(*, batch, d_model, heads, kv_heads, head_dim, d_ff, context) -> dict[str, tuple[int, ...]]:
    return {
        "x": (batch, d_model),
        "w_qkv": (d_model, (heads + 2 * kv_heads) * head_dim),
        "w_o": (heads * head_dim, d_model),
        "w_gate": (d_model, d_ff),
        "w_up": (d_model, d_ff),
        "w_down": (d_ff, d_model),
        "k_cache": (batch, kv_heads, context, head_dim),
        "v_cache": (batch, kv_heads, context, head_dim),
    }


def inputs(*, dtype: str = "fp16", device: str = "cpu", seed: int = 0, **sizes: int):
    """Random tensors; weights keep the variance of what they multiply. The new token is the last."""
    generator = torch.Generator(device).manual_seed(seed)
    made = {}
    for name, shape in _shapes(**sizes).items():
        values = torch.randn(shape, generator=generator, device=device)
        scale = shape[0] ** -0.5 if name in WEIGHTS else 1.0
        made[name] = values.mul_(scale).to(devices.TORCH_DTYPES[dtype])
    last = (sizes["batch"],), sizes["context"] - 1
    return {**made, "positions": torch.full(*last, dtype=torch.int32, device=device)}


def reference(x, w_qkv, w_o, w_gate, w_up, w_down, k_cache, v_cache, positions, lengths=None):
    """The same in float64, by torch; the caches stay as they are."""
    kv_heads, head_dim = k_cache.shape[1::2]
    each = (x.double() @ w_qkv.double()).view(len(x), -1, head_dim)
    q, k, v = each.split((each.shape[1] - 2 * kv_heads, kv_heads, kv_heads), dim=1)
    keys, values = k_cache.to(torch.float64, copy=True), v_cache.to(torch.float64, copy=True)
    rows = torch.arange(len(x), device=x.device)
    keys[rows, :, positions.long()], values[rows, :, positions.long()] = k, v
    o = decode_attention.reference(q, keys, values, lengths)
    return mlp.reference(o.flatten(1) @ w_o.double(), w_gate, w_up, w_down)


def issued(plan: Plan, *, itemsize: float = 2, **sizes: int) -> cost.Cost:
    """What the five parts issue, and what they hand to each other."""
    batch, d_model, heads, kv_heads, head_dim, d_ff, context = (sizes[name] for name in SIZES)
    attention = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "context": context}
    columns = (heads + 2 * kv_heads) * head_dim
    parts = (
        _linear(plan.qkv, batch, d_model, columns, itemsize).renamed(
            w="w_qkv", y="qkv", partials="qkv_partials"
        ),
        cost.kv_append_issued(batch, kv_heads, head_dim, itemsize, positions_itemsize=4),
        decode.issued(plan.attention, batch=batch, **attention, itemsize=itemsize).renamed(
            q="qkv", k="k_cache", v="v_cache"
        ),
        _linear(plan.o, batch, heads * head_dim, d_model, itemsize).renamed(
            x="o", w="w_o", y="h", partials="o_partials"
        ),
        mlp.issued(plan.mlp, m=batch, d_model=d_model, d_ff=d_ff, itemsize=itemsize).renamed(x="h"),
    )
    total = sum(parts[1:], parts[0])
    return replace(total, workspace=total.workspace | cost.decode_layer(**sizes, fused="none").workspace)


def _linear(plan: products.Plan, m: int, k: int, n: int, itemsize: float) -> cost.Cost:
    return linear.experiment.tiles(plan, m=m, k=k, n=n, itemsize=itemsize)


def _meta_launches(plan: Plan, *, dtype: str, **sizes: int) -> list[Launch]:
    kind = {"dtype": devices.TORCH_DTYPES[dtype], "device": "meta"}
    made = {name: torch.empty(shape, **kind) for name, shape in _shapes(**sizes).items()}
    positions = torch.empty(sizes["batch"], dtype=torch.int32, device="meta")
    weights = {name: made[name] for name in WEIGHTS}
    return launches(
        plan, made["x"], weights, made["k_cache"], made["v_cache"], positions, torch.empty_like(made["x"])
    )


_LLAMA_3_8B = {"d_model": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "d_ff": 14_336}
_SMALL = {"d_model": 256, "heads": 8, "kv_heads": 2, "head_dim": 32, "d_ff": 512}

experiment = Experiment(
    name="decode_step",
    sizes=SIZES,
    axis="batch",
    inputs=inputs,
    run=decode_step,
    reference=reference,
    cost=cost.decode_layer,
    plan=plan,
    tiles=issued,
    launches=_meta_launches,
    sweep={
        "counted": {"batch": [1, 4, 8], **_SMALL, "context": 128},
        "timed": {"batch": [1, 4, 16, 64, 128, 256], **_LLAMA_3_8B, "context": 2048},
        "compiled": {"batch": 64, **_LLAMA_3_8B, "context": 4096},
    },
    dtypes=("bf16", "fp16"),
)

# The same, swept over the context: the weights' share of the time shrinks.
context_experiment = replace(
    experiment,
    axis="context",
    sweep={
        "counted": {"batch": 4, **_SMALL, "context": [64, 128, 256]},
        "timed": {"batch": 32, **_LLAMA_3_8B, "context": [256, 1024, 4096, 16_384]},
        "compiled": {"batch": 32, **_LLAMA_3_8B, "context": 16_384},
    },
)

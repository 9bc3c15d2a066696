"""One layer of a decode step, one new token a sequence, as one launch sequence. Confirms chapter 07.

Project to q, k and v; append k and v to the cache; attend to the cache; project back; gated MLP.
The kernels are those of the chapters before: this file says in what order, and that their costs add
up. The weights are read once whatever the batch, the cache once for each sequence: which of the two
the time goes to is the chapter's question.

Left out: RMSNorm, RoPE and the residual sums, element by element on one row a sequence. So this is a
layer's traffic and products, not a model's numbers.
"""

from dataclasses import dataclass, replace

import torch

from book import cost
from kernels import decode_attention, kv_append, linear, mlp
from kernels.contract import devices
from kernels.contract.checks import GROUPED, planned
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor
from kernels.tiling import decode, products

WEIGHTS = ("w_qkv", "w_o", "w_gate", "w_up", "w_down")


def decode_layer(
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
    caches = {"k_cache": k_cache, "v_cache": v_cache, "positions": positions, "lengths": lengths}
    sizes, dtype = experiment.check(x=x, **weights, **caches)
    y = x.new_empty(x.shape)
    devices.launch(launches(plan(**sizes, dtype=dtype), x=x, **weights, **caches, y=y), x.device)
    return y


@dataclass(frozen=True)
class Plan:
    """The plans of the five parts."""

    qkv: products.Plan
    append: kv_append.Plan
    attention: decode.Plan
    o: products.Plan
    mlp: mlp.Plan


DTYPES = ("bf16", "fp16")
CONDITIONS = {**GROUPED, **decode.FITS}


@planned(dtypes=DTYPES, conditions=CONDITIONS)
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
    """What each part would choose by itself on `target`."""
    where = {"dtype": dtype, "target": target}
    return Plan(
        linear.plan(batch, d_model, (heads + 2 * kv_heads) * head_dim, **where),
        kv_append.plan(batch, kv_heads, head_dim, context, **where),
        decode.plan(batch, heads, kv_heads, head_dim, context, **where),
        linear.plan(batch, heads * head_dim, d_model, **where),
        mlp.plan(batch, d_model, d_ff, **where),
    )


def launches(plan: Plan, x, w_qkv, w_o, w_gate, w_up, w_down, k_cache, v_cache, positions, y, lengths=None):
    """Every launch of the step, in order. All that passes between the parts is made here."""
    (batch, d_model), (kv_heads, head_dim) = x.shape, k_cache.shape[1::2]
    qkv = x.new_empty(batch, w_qkv.shape[1])
    each = qkv.view(batch, -1, head_dim)  # q's heads, then k's, then v's: views, nothing is copied
    heads = each.shape[1] - 2 * kv_heads
    q, k, v = each.split((heads, kv_heads, kv_heads), dim=1)
    o = x.new_empty(batch, heads, head_dim)
    h = x.new_empty(batch, d_model)
    to_qkv, *qkv_partials = linear.launches(plan.qkv, x, w_qkv, qkv)
    to_h, *o_partials = linear.launches(plan.o, o.view(batch, -1), w_o, h)
    return [
        _called(to_qkv, "q, k and v projection", y="qkv", partials="qkv_partials"),
        *qkv_partials,
        *kv_append.launches(plan.append, k, v, k_cache, v_cache, positions),
        *decode_attention.launches(plan.attention, q, k_cache, v_cache, o, lengths),
        _called(to_h, "o projection", y="h", partials="o_partials"),
        *o_partials,
        *mlp.launches(plan.mlp, h, w_gate, w_up, w_down, y),
    ]


def _called(launch: Launch, label: str, **names: str) -> Launch:
    """The launch of a part under the names that it and its tensors have in the whole."""
    return replace(launch, label=label, names=names)


def reference(x, w_qkv, w_o, w_gate, w_up, w_down, k_cache, v_cache, positions, lengths=None):
    """(k_cache, v_cache, y) afterwards in float64, by torch; the caches given stay as they are."""
    kv_heads, head_dim = k_cache.shape[1::2]
    each = (x.double() @ w_qkv.double()).view(len(x), -1, head_dim)
    q, k, v = each.split((each.shape[1] - 2 * kv_heads, kv_heads, kv_heads), dim=1)
    keys, values = k_cache.to(torch.float64, copy=True), v_cache.to(torch.float64, copy=True)
    rows = torch.arange(len(x), device=x.device)
    keys[rows, :, positions.long()], values[rows, :, positions.long()] = k, v
    o = decode_attention.reference(q, keys, values, lengths)
    return keys, values, mlp.reference(o.flatten(1) @ w_o.double(), w_gate, w_up, w_down)


def issued(plan: Plan, *, itemsize: float = 2, **sizes: int) -> cost.Cost:
    """What the five parts issue, and what they hand to each other."""
    batch, d_model, heads, kv_heads, head_dim, d_ff, context = (sizes[name] for name in SIZES)
    attention = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "context": context}
    columns, size = (heads + 2 * kv_heads) * head_dim, {"itemsize": itemsize}
    qkv = linear.experiment.issued(plan.qkv, m=batch, k=d_model, n=columns, **size)
    o = linear.experiment.issued(plan.o, m=batch, k=heads * head_dim, n=d_model, **size)
    parts = (
        qkv.renamed(w="w_qkv", y="qkv", partials="qkv_partials"),
        cost.kv_append_issued(batch, kv_heads, head_dim, itemsize, positions_itemsize=4),
        decode.issued(plan.attention, batch=batch, **attention, **size).renamed(
            q="qkv", k="k_cache", v="v_cache"
        ),
        o.renamed(x="o", w="w_o", y="h", partials="o_partials"),
        mlp.issued(plan.mlp, m=batch, d_model=d_model, d_ff=d_ff, **size).renamed(x="h"),
    )
    total = sum(parts[1:], parts[0])
    return replace(total, workspace=total.workspace | cost.decode_layer(**sizes, fused="none").workspace)


SIZES = ("batch", "d_model", "heads", "kv_heads", "head_dim", "d_ff", "context")
# attention addresses a block of tokens in 31 bits
_CACHE = replace(kv_append.CACHE, writes=kv_append.NEW.shape, within=decode_attention.CACHE.within)
_LLAMA_3_8B = {"d_model": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "d_ff": 14_336}
_SMALL = {"d_model": 256, "heads": 8, "kv_heads": 2, "head_dim": 32, "d_ff": 512}

experiment = Experiment(
    name="decode_layer",
    sizes=SIZES,
    axis="batch",
    tensors={
        "x": Tensor("batch d_model"),
        "w_qkv": Tensor("d_model (heads+2*kv_heads)*head_dim", fan_in="d_model"),
        "w_o": Tensor("heads*head_dim d_model", fan_in="heads*head_dim"),
        "w_gate": Tensor("d_model d_ff", fan_in="d_model"),
        "w_up": Tensor("d_model d_ff", fan_in="d_model"),
        "w_down": Tensor("d_ff d_model", fan_in="d_ff"),
        "k_cache": _CACHE,
        "v_cache": _CACHE,
        # the new token is the last
        "positions": replace(
            kv_append.POSITIONS,
            fill=lambda generator, shape, sizes: torch.full(
                shape, sizes["context"] - 1, device=generator.device
            ),
        ),
        "lengths": decode_attention.LENGTHS,
        "y": Tensor("batch d_model", out=True),
    },
    run=decode_layer,
    reference=reference,
    cost=cost.decode_layer,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={
        "counted": {"batch": [1, 4, 8], **_SMALL, "context": 128},
        "timed": {"batch": [1, 4, 16, 64, 128, 256], **_LLAMA_3_8B, "context": 2048},
        "compiled": {"batch": 64, **_LLAMA_3_8B, "context": 4096},
    },
    dtypes=DTYPES,
    conditions=CONDITIONS,
    edges=(
        (3, 128, 4, 2, 32, 192, 64),
        (1, 100, 4, 2, 32, 77, 1),
        (5, 128, 6, 2, 20, 192, 131),
        (2, 128, 2, 2, 32, 192, 300),
    ),
)

# The same, swept over the context: the weights' share of the time shrinks.
context_experiment = replace(
    experiment,
    variant="context",
    axis="context",
    edges=(),
    sweep={
        "counted": {"batch": 4, **_SMALL, "context": [64, 128, 256]},
        "timed": {"batch": 32, **_LLAMA_3_8B, "context": [256, 1024, 4096, 16_384]},
        "compiled": {"batch": 32, **_LLAMA_3_8B, "context": 16_384},
    },
)

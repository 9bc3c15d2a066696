"""Write one new token's K and V of every sequence into the cache. Confirms chapter 05.

Each sequence has its own length, so each token goes to a place of its own: a table of positions is
read beside the new numbers, and it is named. What is written is a layer's share of the cache,
2 * kv_heads * head_dim * itemsize bytes for each token.
"""

from dataclasses import dataclass

import torch

from book import catalog, cost
from kernels.contract import devices
from kernels.contract.checks import planned
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor
from kernels.tiling.integers import ceil_div, power_of_two


@triton.jit
def kv_append_kernel(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, positions_ptr, kv_heads, context,
    stride_kb, stride_kh, stride_vb, stride_vh,
    stride_kcb, stride_kch, stride_kcs, stride_vcb, stride_vch, stride_vcs,
    DIM: tl.constexpr, BLOCK_HEADS: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    head_blocks = (kv_heads + BLOCK_HEADS - 1) // BLOCK_HEADS
    sequence = (tl.program_id(0) // head_blocks).to(tl.int64)
    first = tl.program_id(0) % head_blocks * BLOCK_HEADS
    rh = (first + tl.arange(0, BLOCK_HEADS)).to(tl.int64)[:, None]  # [BLOCK_HEADS, 1]
    rd = tl.arange(0, BLOCK_DIM)[None, :]  # [1, BLOCK_DIM]
    inside = (rh < kv_heads) & (rd < DIM)  # [BLOCK_HEADS, BLOCK_DIM]
    # k_ptrs and v_ptrs [BLOCK_HEADS, BLOCK_DIM] of the new token
    k_ptrs = k_ptr + sequence * stride_kb + rh * stride_kh + rd
    v_ptrs = v_ptr + sequence * stride_vb + rh * stride_vh + rd
    k = tl.load(k_ptrs, mask=inside)  # need not wait for the position
    v = tl.load(v_ptrs, mask=inside)
    position = tl.load(positions_ptr + sequence).to(tl.int64)
    # A place outside the cache: the sequence pads the batch, and nothing is written.
    if (position >= 0) & (position < context):
        k_cache_ptr += sequence * stride_kcb + position * stride_kcs
        v_cache_ptr += sequence * stride_vcb + position * stride_vcs
        k_cache_ptrs = k_cache_ptr + rh * stride_kch + rd  # [BLOCK_HEADS, BLOCK_DIM]
        v_cache_ptrs = v_cache_ptr + rh * stride_vch + rd  # [BLOCK_HEADS, BLOCK_DIM]
        tl.store(k_cache_ptrs, k, mask=inside)
        tl.store(v_cache_ptrs, v, mask=inside)


def kv_append(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    positions: torch.Tensor,
) -> None:
    """k_cache[b, :, positions[b]] = k[b], and v alike, for every sequence b. In place.

    k, v[batch, kv_heads, head_dim]; k_cache, v_cache[batch, kv_heads, context, head_dim], in which
    rows of head_dim lie side by side; positions[batch], int32 or int64. A position outside
    0 ... context - 1 writes nothing, which is how a batch is padded. The cache has the dtype of k,
    which may be torch.float8_e4m3fn: quantise first, with k.to(torch.float8_e4m3fn).

    Raises ValueError or TypeError, with the remedy, for tensors that do not fit together.
    """
    tensors = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache}
    sizes, dtype = experiment.check(**tensors, positions=positions)
    if k.element_size() == 1:  # only moved, so plain bytes: that works on every card
        tensors = {name: x.view(torch.uint8) for name, x in tensors.items()}
    devices.launch(launches(plan(**sizes, dtype=dtype), **tensors, positions=positions), k.device)


@dataclass(frozen=True)
class Plan:
    """A program writes block_heads heads of one sequence; block_dim is head_dim, padded."""

    block_heads: int
    block_dim: int
    num_warps: int

    def grid(self, batch: int, kv_heads: int) -> tuple[int]:
        """One program for each sequence and block of heads."""
        return (batch * ceil_div(kv_heads, self.block_heads),)


DTYPES = ("bf16", "fp16", "fp32", "fp8")


@planned(dtypes=DTYPES)
def plan(
    batch: int,
    kv_heads: int,
    head_dim: int,
    context: int,
    dtype: str | None = None,
    target: Target | str | None = None,
) -> Plan:
    """Up to 2 KiB of K a program: 16 bytes for each of its 128 threads. The same on every target."""
    dim, itemsize = power_of_two(head_dim), catalog.itemsize(dtype)
    heads = min(max(int(2048 / (dim * itemsize)), 1), power_of_two(kv_heads))
    return Plan(heads, dim, 4 if heads * dim * itemsize >= 2048 else 1)


def launches(plan: Plan, k, v, k_cache, v_cache, positions) -> list[Launch]:
    """The one launch; the caches are written in place."""
    (batch, kv_heads, dim), context = k.shape, k_cache.shape[2]
    strides = (*k.stride()[:2], *v.stride()[:2], *k_cache.stride()[:3], *v_cache.stride()[:3])
    args = (k, v, k_cache, v_cache, positions, kv_heads, context, *strides)
    options = {"DIM": dim, "BLOCK_HEADS": plan.block_heads, "BLOCK_DIM": plan.block_dim}
    options |= {"num_warps": plan.num_warps, "num_stages": 1}
    return [Launch(kv_append_kernel, plan.grid(batch, kv_heads), args, options, "kv append")]


def reference(k, v, k_cache, v_cache, positions) -> tuple[torch.Tensor, torch.Tensor]:
    """Both caches afterwards in float64, one sequence at a time; what was in them stays."""
    keys, values = (x.to(torch.float64, copy=True) for x in (k_cache, v_cache))
    for i, position in enumerate(positions.tolist()):
        keys[i, :, position], values[i, :, position] = k[i].double(), v[i].double()
    return keys, values


NEW = Tensor("batch kv_heads head_dim", side_by_side=True)
CACHE = Tensor("batch kv_heads context head_dim", side_by_side=True)
EMPTY = Tensor(CACHE.shape, reads="", writes=NEW.shape, fill="zeros", side_by_side=True)
POSITIONS = Tensor(
    "batch",
    "int32",
    table=True,
    side_by_side=True,
    fill=lambda generator, shape, sizes: torch.randint(
        sizes["context"], shape, generator=generator, device=generator.device, dtype=torch.int32
    ),
)

experiment = Experiment(
    name="kv_append",
    sizes=("batch", "kv_heads", "head_dim", "context"),
    axis="batch",
    tensors={"k": NEW, "v": NEW, "k_cache": EMPTY, "v_cache": EMPTY, "positions": POSITIONS},
    run=kv_append,
    reference=reference,
    # the size of the cache is not in it
    cost=lambda *, batch, context, **others: cost.kv_append(batch, **others),
    plan=plan,
    issued=lambda plan, *, batch, context, **others: cost.kv_append_issued(
        batch, **others, positions_itemsize=4
    ),
    launches=launches,
    sweep={
        "counted": {"batch": [1, 8, 32], "kv_heads": 8, "head_dim": 128, "context": 64},
        "timed": {"batch": [64, 512, 4096], "kv_heads": 8, "head_dim": 128, "context": 64},
        "compiled": {"batch": 64, "kv_heads": 8, "head_dim": 128, "context": 4096},
    },
    unit="vector",
    dtypes=DTYPES,
    tolerances=dict.fromkeys(DTYPES, 0.0),  # nothing is computed: the numbers arrive as they were
    edges=((1, 1, 16, 1), (3, 5, 96, 7), (2, 40, 64, 5), (1, 2, 576, 4)),
)

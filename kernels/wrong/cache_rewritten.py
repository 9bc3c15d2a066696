"""The mistake: the whole cache is read and written to put one token into it, as `torch.where` or `cat` do.

The right one is `kernels.kv_append`, which writes the token's own place. Chapter 05.
"""

from dataclasses import dataclass, replace

import torch

from book.say import say
from kernels import kv_append
from kernels.contract import devices
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong
from kernels.tiling.integers import power_of_two


@triton.jit
def rewrite_kernel(
    new_ptr, cache_ptr, positions_ptr, kv_heads, context,
    stride_nb, stride_nh, stride_cb, stride_ch, stride_cs,
    DIM: tl.constexpr, BLOCK_CONTEXT: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    sequence = (tl.program_id(0) // kv_heads).to(tl.int64)
    head = (tl.program_id(0) % kv_heads).to(tl.int64)
    rs = tl.arange(0, BLOCK_CONTEXT).to(tl.int64)[:, None]  # [BLOCK_CONTEXT, 1]
    rd = tl.arange(0, BLOCK_DIM)[None, :]  # [1, BLOCK_DIM]
    new = tl.load(new_ptr + sequence * stride_nb + head * stride_nh + rd, mask=rd < DIM)
    position = tl.load(positions_ptr + sequence).to(tl.int64)
    cache_ptrs = cache_ptr + sequence * stride_cb + head * stride_ch + rs * stride_cs + rd
    inside = (rs < context) & (rd < DIM)  # [BLOCK_CONTEXT, BLOCK_DIM]
    old = tl.load(cache_ptrs, mask=inside)
    tl.store(cache_ptrs, tl.where(rs == position, new, old), mask=inside)


def cache_rewritten(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    positions: torch.Tensor,
) -> None:
    """What `kv_append` does to both caches, in place; it raises as that does."""
    sizes, dtype = experiment.check(k=k, v=v, k_cache=k_cache, v_cache=v_cache, positions=positions)
    made = launches(plan(**sizes, dtype=dtype), k, v, k_cache, v_cache, positions)
    devices.launch(made, k.device)


@dataclass(frozen=True)
class Plan:
    """A program takes one head of one sequence, all of its context at once."""

    block_context: int
    block_dim: int


def plan(batch: int, kv_heads: int, head_dim: int, context: int, **where) -> Plan:
    """Padded to powers of two."""
    return Plan(power_of_two(context), power_of_two(head_dim))


def launches(plan: Plan, k, v, k_cache, v_cache, positions) -> list[Launch]:
    """One launch for each of the two caches."""
    (batch, kv_heads, dim), context = k.shape, k_cache.shape[2]
    options = {"DIM": dim, "BLOCK_CONTEXT": plan.block_context, "BLOCK_DIM": plan.block_dim}
    return [
        Launch(
            rewrite_kernel,
            (batch * kv_heads,),
            (new, cache, positions, kv_heads, context, *new.stride()[:2], *cache.stride()[:3]),
            {**options, "num_warps": 4, "num_stages": 1},
            label,
        )
        for label, new, cache in (("k", k, k_cache), ("v", v, v_cache))
    ]


experiment = replace(
    kv_append.experiment, variant="rewritten", run=cache_rewritten, plan=plan, launches=launches
)
wrong = Wrong(
    experiment, say("To put one token into the cache it reads and writes the whole cache of the sequence.")
)

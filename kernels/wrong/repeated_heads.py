"""The mistake: K and V are repeated in memory, a copy for every query head, before anything attends to them.

The right one is `kernels.decode_attention`, whose query heads share one read. Chapter 06.
"""

from dataclasses import replace

import torch

from book.say import say
from kernels import decode_attention
from kernels.contract import devices
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong
from kernels.tiling.decode import Plan
from kernels.tiling.integers import power_of_two


@triton.jit
def repeat_kernel(
    cache_ptr, repeated_ptr, heads, context, stride_cb, stride_ch, stride_cs,
    GROUP: tl.constexpr, DIM: tl.constexpr, BLOCK_CONTEXT: tl.constexpr, BLOCK_DIM: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)  # one KV head of one sequence
    sequence, kv_head = program // (heads // GROUP), program % (heads // GROUP)
    rs = tl.arange(0, BLOCK_CONTEXT).to(tl.int64)[:, None]  # [BLOCK_CONTEXT, 1]
    rd = tl.arange(0, BLOCK_DIM)[None, :]  # [1, BLOCK_DIM]
    inside = (rs < context) & (rd < DIM)  # [BLOCK_CONTEXT, BLOCK_DIM]
    cache_ptrs = cache_ptr + sequence * stride_cb + kv_head * stride_ch + rs * stride_cs + rd
    numbers = tl.load(cache_ptrs, mask=inside)
    for i in range(GROUP):
        head = sequence * heads + kv_head * GROUP + i
        tl.store(repeated_ptr + (head * context + rs) * DIM + rd, numbers, mask=inside)


def repeated_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths=None) -> torch.Tensor:
    """What `decode_attention` gives where all tokens count; it raises as that does."""
    sizes, dtype = experiment.check(q=q, k=k, v=v, lengths=lengths)
    o = q.new_empty(q.shape)
    devices.launch(launches(plan(**sizes, dtype=dtype), q, k, v, o), q.device)
    return o


def plan(batch: int, heads: int, kv_heads: int, head_dim: int, context: int, **where) -> Plan:
    """That of attention in which every query head has a KV head of its own."""
    return decode_attention.plan(batch, heads, heads, head_dim, context, **where)


def launches(plan: Plan, q, k, v, o, lengths=None) -> list[Launch]:
    """Both caches are repeated, then attended to as if no head were shared."""
    (batch, heads, dim), (_, kv_heads, context, _) = q.shape, k.shape
    k_repeated, v_repeated = (q.new_empty(batch, heads, context, dim) for _ in range(2))
    blocks = {"BLOCK_CONTEXT": power_of_two(context), "BLOCK_DIM": power_of_two(dim)}
    options = {"GROUP": heads // kv_heads, "DIM": dim, **blocks, "num_warps": 4, "num_stages": 1}
    repeat = [
        Launch(
            repeat_kernel,
            (batch * kv_heads,),
            (cache, repeated, heads, context, *cache.stride()[:3]),
            options,
            f"repeat {name}",
            {"cache": name, "repeated": f"{name}_repeated"},
        )
        for name, cache, repeated in (("k", k, k_repeated), ("v", v, v_repeated))
    ]
    return [*repeat, *decode_attention.launches(plan, q, k_repeated, v_repeated, o)]


experiment = replace(
    decode_attention.experiment, variant="repeated", run=repeated_heads, plan=plan, launches=launches
)
wrong = Wrong(
    experiment,
    say("It repeats K and V in memory, a copy for every query head, and attends to the copies."),
)

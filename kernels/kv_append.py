"""Write one new token's K and V of every sequence into the cache. Confirms chapter 05.

Each sequence has its own length, so each token goes to a place of its own: a table of positions is
read beside the new numbers, and it is named. What is written is a layer's share of the cache,
2 * kv_heads * head_dim * itemsize bytes for each token.
"""

from dataclasses import dataclass
from typing import Any

import torch

from book import catalog, cost
from kernels.contract import cache_checks, checks, devices
from kernels.contract.devices import tl, triton
from kernels.contract.experiment import Experiment, Launch
from kernels.contract.targets import Target


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
    _check(k, v, k_cache, v_cache, positions)
    if k.dtype == cache_checks.FP8:  # only moved, so plain bytes: that works on every card
        k, v, k_cache, v_cache = (x.view(torch.uint8) for x in (k, v, k_cache, v_cache))
    chosen = _blocks(k.shape[1], k.shape[2], k.element_size())
    devices.launch(launches(chosen, k, v, k_cache, v_cache, positions), k.device)


def _check(k: Any, v: Any, k_cache: Any, v_cache: Any, positions: Any) -> None:
    new, stored = {"k": k, "v": v}, {"k_cache": k_cache, "v_cache": v_cache}
    for name, x in new.items():
        checks.rank("kv_append", name, x, "[batch, kv_heads, head_dim]")
    for name, x in stored.items():
        checks.rank("kv_append", name, x, cache_checks.CACHE)
    every = {**new, **stored}
    if not all(isinstance(x, torch.Tensor) and x.dtype == cache_checks.FP8 for x in every.values()):
        checks.tensors("kv_append", **every)
    cache_checks.same_device(k, "k", **every)
    cache_checks.side_by_side("kv_append", **every)
    if v.shape != k.shape:
        raise ValueError(f"v.shape = {tuple(v.shape)}, k.shape = {tuple(k.shape)}: give as many of each.")
    for name, x in stored.items():
        if (x.shape[0], x.shape[1], x.shape[3]) != tuple(k.shape) or x.shape != k_cache.shape:
            raise ValueError(
                f"{name}.shape = {tuple(x.shape)}: kv_append needs {name}{cache_checks.CACHE} with the "
                f"batch, kv_heads and head_dim of k, {tuple(k.shape)}; for [batch, context, kv_heads, "
                f"head_dim] pass {name}.transpose(1, 2)."
            )
    cache_checks.table("kv_append", "positions", positions, k)


@dataclass(frozen=True)
class Plan:
    """A program writes block_heads heads of one sequence; block_dim is head_dim, padded."""

    block_heads: int
    block_dim: int
    num_warps: int

    def grid(self, batch: int, kv_heads: int) -> tuple[int]:
        """One program for each sequence and block of heads."""
        return (batch * -(-kv_heads // self.block_heads),)


def plan(
    batch: int,
    kv_heads: int,
    head_dim: int,
    context: int,
    dtype: str | None = None,
    target: Target | str | None = None,
) -> Plan:
    """Up to 2 KiB of K a program: 16 bytes for each of its 128 threads. The same on every target.

    Raises ValueError for a size below 1, and for a dtype or target that is not known.
    """
    checks.sizes(batch=batch, kv_heads=kv_heads, head_dim=head_dim, context=context)
    dtype = devices.default_dtype() if dtype is None else dtype
    chip, _ = devices.chip(target)
    if dtype != "fp8":
        checks.dtype(dtype, chip)
    return _blocks(kv_heads, head_dim, catalog.itemsize(dtype))


def _blocks(kv_heads: int, head_dim: int, itemsize: float) -> Plan:
    dim = _power_of_two(head_dim)
    heads = min(max(int(2048 / (dim * itemsize)), 1), _power_of_two(kv_heads))
    return Plan(heads, dim, 4 if heads * dim * itemsize >= 2048 else 1)


def _power_of_two(x: int) -> int:
    """The least power of two that is at least x: what tl.arange can count to."""
    return 1 << max(x - 1, 0).bit_length()


def launches(plan: Plan, k, v, k_cache, v_cache, positions) -> list[Launch]:
    """The one launch; the caches are written in place."""
    (batch, kv_heads, dim), context = k.shape, k_cache.shape[2]
    strides = (*k.stride()[:2], *v.stride()[:2], *k_cache.stride()[:3], *v_cache.stride()[:3])
    args = (k, v, k_cache, v_cache, positions, kv_heads, context, *strides)
    options = {"DIM": dim, "BLOCK_HEADS": plan.block_heads, "BLOCK_DIM": plan.block_dim}
    options |= {"num_warps": plan.num_warps, "num_stages": 1}
    return [Launch(kv_append_kernel, plan.grid(batch, kv_heads), args, options, "kv append")]


# ------------------------------------------------------------------------------- the experiment


def inputs(*, batch, kv_heads, head_dim, context, dtype="fp16", device="cpu", seed=0):
    """Random k and v, an empty (zero) cache for both, and a random place for each sequence."""
    generator = torch.Generator(device).manual_seed(seed)
    kind = cache_checks.FP8 if dtype == "fp8" else devices.TORCH_DTYPES[dtype]
    k, v = torch.randn(2, batch, kv_heads, head_dim, generator=generator, device=device).to(kind)
    cache = torch.zeros(2, batch, kv_heads, context, head_dim, dtype=kind, device=device)
    where = torch.randint(context, (batch,), generator=generator, device=device, dtype=torch.int32)
    return {"k": k, "v": v, "cache": cache, "positions": where}


def append(k, v, cache, positions) -> torch.Tensor:
    """`kv_append` into cache[2, batch, kv_heads, context, head_dim], K first; returns the cache."""
    kv_append(k, v, cache[0], cache[1], positions)
    return cache


def reference(k, v, cache, positions) -> torch.Tensor:
    """What was in an empty cache must be there and nothing else: float64, one sequence at a time."""
    expected = torch.zeros(cache.shape, dtype=torch.float64, device=cache.device)
    for i, position in enumerate(positions.tolist()):
        expected[0, i, :, position], expected[1, i, :, position] = k[i].double(), v[i].double()
    return expected


def formula(*, batch, kv_heads, head_dim, context, itemsize=2) -> cost.Cost:
    """`cost.kv_append`: the size of the cache is not in it."""
    return cost.kv_append(batch, kv_heads, head_dim, itemsize)


def _meta_launches(plan: Plan, *, batch, kv_heads, head_dim, context, dtype) -> list[Launch]:
    kind = torch.uint8 if dtype == "fp8" else devices.TORCH_DTYPES[dtype]
    k, v = torch.empty(2, batch, kv_heads, head_dim, dtype=kind, device="meta")
    k_cache, v_cache = torch.empty(2, batch, kv_heads, context, head_dim, dtype=kind, device="meta")
    return launches(plan, k, v, k_cache, v_cache, torch.empty(batch, dtype=torch.int32, device="meta"))


experiment = Experiment(
    name="kv_append",
    sizes=("batch", "kv_heads", "head_dim", "context"),
    axis="batch",
    inputs=inputs,
    run=append,
    reference=reference,
    cost=formula,
    plan=plan,
    tiles=lambda plan, *, batch, kv_heads, head_dim, context, itemsize=2: cost.kv_append_issued(
        batch, kv_heads, head_dim, itemsize, positions_itemsize=4
    ),
    launches=_meta_launches,
    sweep={
        "counted": {"batch": [1, 8, 32], "kv_heads": 8, "head_dim": 128, "context": 64},
        "timed": {"batch": [64, 512, 4096], "kv_heads": 8, "head_dim": 128, "context": 64},
        "compiled": {"batch": 64, "kv_heads": 8, "head_dim": 128, "context": 4096},
    },
    dtypes=("bf16", "fp16", "fp32", "fp8"),
    tolerance=lambda dtype: 0.0,  # nothing is computed: the numbers arrive as they were
)

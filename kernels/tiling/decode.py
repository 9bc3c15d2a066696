"""How decode attention is cut up: which query heads share a tile, how many programs share a context.

One program for each sequence and KV head reads the cache once, which is all that the formula asks
for; but one sequence with one KV head would then keep one multiprocessor busy. So the context is
split until whole waves of two programs a multiprocessor are full, as far as the traffic of the
partial results allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from book import catalog, cost
from kernels.contract.checks import GROUPED, planned
from kernels.contract.targets import Target
from kernels.tiling import waves
from kernels.tiling.integers import ceil_div, power_of_two

ROWS = 16  # the matrix units' smallest tile: fewer query heads are padded up to it
MOST_ROWS = 64  # more query heads than this on one KV head take several tiles
PROGRAMS_PER_SM = 2  # of four warps, what fits side by side with the stages that `_tile` gives them
MAX_SPLITS = 256
WORKSPACE_SHARE = 0.25  # partial results may add at most this share of the cache's bytes


@dataclass(frozen=True)
class Plan:
    """The constants that the kernels are compiled for.

    packed: query heads of one KV head that share a tile, and so one read of its K and V.
    block_heads: the tile's rows, `packed` padded up. block_dim: head_dim, padded to a power of two.
    block_context: tokens loaded at once. splits: programs that share one context.
    split_context: tokens for each of them, a multiple of block_context.
    """

    packed: int
    block_heads: int
    block_dim: int
    block_context: int
    splits: int
    split_context: int
    num_warps: int
    num_stages: int

    def head_tiles(self, heads: int, kv_heads: int) -> int:
        """Tiles that the query heads of one KV head take; each reads that head's cache."""
        return ceil_div(heads // kv_heads, self.packed)

    def programs(self, batch: int, heads: int, kv_heads: int) -> int:
        """Programs of the main kernel."""
        return batch * kv_heads * self.head_tiles(heads, kv_heads) * self.splits

    def options(self) -> dict[str, int]:
        """The main kernel's compile-time arguments."""
        return {
            "PACKED": self.packed,
            "SPLITS": self.splits,
            "SPLIT_CONTEXT": self.split_context,
            "BLOCK_HEADS": self.block_heads,
            "BLOCK_CONTEXT": self.block_context,
            "BLOCK_DIM": self.block_dim,
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
        }

    def merge_options(self) -> dict[str, int]:
        """The merge kernel's: a [BLOCK_SPLITS, BLOCK_DIM] tile of at most 8,192 elements."""
        splits = power_of_two(self.splits)
        return {
            "SPLITS": self.splits,
            "SPLIT_CONTEXT": self.split_context,
            "BLOCK_SPLITS": splits,
            "BLOCK_DIM": min(self.block_dim, max(8192 // splits, 16)),
            "num_warps": 4,
            "num_stages": 1,
        }


DTYPES = ("bf16", "fp16", "fp8")  # of the cache
FITS = {"head_dim <= 256": "at most 256 numbers of a head fit in one tile; cut the head, or use mla_decode"}
CONDITIONS = {**GROUPED, **FITS}


@planned(dtypes=DTYPES, conditions=CONDITIONS)
def plan(
    batch: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    context: int,
    dtype: str | None = None,
    target: Target | str | None = None,
    *,
    packed: bool = True,
) -> Plan:
    """The tile and the splits of decode attention over caches of up to `context` tokens on `target`.

    dtype: of the cache. packed=False gives every query head a tile, and so a read of the cache, of
    its own.
    """
    group = heads // kv_heads if packed else 1
    rows = min(max(power_of_two(group), ROWS), MOST_ROWS)
    dim = max(power_of_two(head_dim), 16)
    block, warps, stages = _tile(rows, dim, target)

    tiles = batch * kv_heads * ceil_div(heads // kv_heads, min(group, rows))
    blocks = ceil_div(context, block)
    # A split of so many tokens writes and reads partials and lse worth WORKSPACE_SHARE of its K and V.
    partials = 2 * cost.FP32_BYTES * (heads // kv_heads) * (head_dim + 1)
    shortest = partials / (WORKSPACE_SHARE * 2 * head_dim * catalog.itemsize(dtype))
    most = min(int(context / shortest), MAX_SPLITS)
    fit = programs_per_sm(warps)
    room = waves.Room(target.sm_count, fit, fit)
    parts = waves.parts(tiles, blocks, room, most, WORKSPACE_SHARE * shortest / context)
    each = ceil_div(blocks, parts)  # blocks, shared out evenly
    return Plan(min(group, rows), rows, dim, block, parts, each * block, warps, stages)


def issued(
    plan: Plan,
    *,
    batch: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    context: int | Sequence[int],
    itemsize: float = 2,
    kv_itemsize: float | None = None,
    lengths_itemsize: int = 0,
) -> cost.Cost:
    """What `plan` issues, the softmax's own arithmetic included (as `workspace_flops`).

    context: one length, or each sequence's. itemsize: bytes of a number of q and o; kv_itemsize: of
    the cache, by default the same.
    """
    return cost.decode_attention_issued(
        batch,
        heads,
        kv_heads,
        head_dim,
        context,
        block_context=plan.block_context,
        block_heads=plan.block_heads,
        packed=plan.packed,
        split_context=plan.split_context if plan.splits > 1 else None,
        block_dim=plan.block_dim,
        itemsize=itemsize,
        kv_itemsize=kv_itemsize,
        lengths_itemsize=lengths_itemsize,
        alu_flops=_softmax_flops(plan, batch, heads, kv_heads, context),
    )


def _softmax_flops(plan: Plan, batch: int, heads: int, kv_heads: int, context: Any) -> int:
    """Adds, subtracts and multiplies around the products, as the kernels do them; a sum of n is n - 1."""
    lengths = [context] * batch if isinstance(context, int) else list(context)
    tiles = kv_heads * plan.head_tiles(heads, kv_heads)
    rows, block, dim = plan.block_heads, plan.block_context, plan.block_dim
    blocks = tiles * sum(ceil_div(s, block) for s in lengths)
    programs = tiles * sum(ceil_div(s, plan.split_context) for s in lengths)
    # A row of a block: scale each score, subtract the maximum, rescale the sum of each place and add
    # to it; rescale the output; subtract from the old maximum. A row of a program: sum up its places.
    flops = blocks * rows * (4 * block + dim + 1) + programs * rows * (block - 1)
    if plan.splits > 1:
        flops += rows * programs  # lse
        merge = plan.merge_options()
        parts, columns = merge["BLOCK_SPLITS"], merge["BLOCK_DIM"]
        # A program: a part's weight (subtract, sum up), and its share of each column (multiply, sum up).
        each = (2 * parts - 1) * (1 + columns)
        flops += batch * heads * (dim // columns) * each
    return flops


def programs_per_sm(warps: int) -> int:
    """How many programs of so many warps fit on a multiprocessor, two of four or one of eight."""
    return PROGRAMS_PER_SM if warps == 4 else 1


def _tile(rows: int, dim: int, target: Target) -> tuple[int, int, int]:
    """(block_context, warps, stages): what keeps most bytes in flight without spilling a register."""
    small_shared = target.max_shared_per_block < 100 * 1024
    block = 32 if dim > 128 or (small_shared and dim > 64) else 64
    if target.backend == "hip" or not target.has_tensor_cores:  # no copies into shared memory meanwhile
        return block, 4 if rows * dim <= 8192 else 8, 2
    warps = 4 if rows * dim <= 4096 else 8
    if small_shared and dim > 128:  # K and V of one block take a third of it
        return block, warps, 2
    return block, warps, 4 if target.max_shared_per_block > 200 * 1024 else 3

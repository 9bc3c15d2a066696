"""Which tile of the output one program computes: a table for each chip, and how to choose from it.

A large tile reuses what it loads (block_m * block_n products for block_m + block_n loads), small
tiles and split-K give more programs, and a card is idle unless every multiprocessor has one. So:
take the largest tile that still gives enough programs, splitting K as far as the traffic of the
partial sums allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from book import catalog, cost
from kernels.contract.checks import planned
from kernels.contract.targets import Target
from kernels.tiling.integers import ceil_div, power_of_two


@dataclass(frozen=True)
class Plan:
    """How a matrix product is cut up: the constants that its kernels are compiled for.

    block_m, block_n, block_k: the output tile and the piece of K that is loaded at once.
    splits: how many programs share the K of one tile, each with its own fp32 partial sum.
    reduce_block: output elements for each program of the kernel that adds the partial sums.
    group_m: rows of tiles that are walked together, so that they find w in L2.
    """

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    splits: int = 1
    reduce_block: int = 1
    group_m: int = 8

    def tiles(self, m: int, n: int) -> int:
        """Output tiles."""
        return ceil_div(m, self.block_m) * ceil_div(n, self.block_n)

    def programs(self, m: int, n: int) -> int:
        """Programs of the main kernel: one for each tile and split."""
        return self.tiles(m, n) * self.splits

    def k_blocks(self, k: int) -> int:
        """Pieces of K that each program loops over."""
        return ceil_div(ceil_div(k, self.block_k), self.splits)

    @property
    def blocks(self) -> dict[str, int]:
        """What `book.cost.linear_issued` wants to know of it."""
        names = ("block_m", "block_n", "block_k", "splits", "reduce_block")
        return {name: getattr(self, name) for name in names}

    def options(self, m: int, k: int, n: int) -> dict[str, int | bool]:
        """The main kernel's compile-time arguments. WHOLE_X, WHOLE_W: no tile reaches over an edge."""
        whole_k = k % (self.block_k * self.splits) == 0
        return {
            "BLOCK_M": self.block_m,
            "BLOCK_N": self.block_n,
            "BLOCK_K": self.block_k,
            "GROUP_M": self.group_m,
            "WHOLE_X": whole_k and m % self.block_m == 0,
            "WHOLE_W": whole_k and n % self.block_n == 0,
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
        }


# block_m, block_n, block_k, warps, stages; most reuse first. Stages are what keeps bytes in flight:
# as many as shared memory holds with two programs of a small tile on one multiprocessor.
_LARGE_SHARED = (
    Plan(128, 256, 64, 8, 3),
    Plan(128, 128, 64, 8, 4),
    Plan(64, 128, 64, 4, 4),
    Plan(64, 64, 64, 4, 4),
    Plan(32, 128, 128, 4, 3),
    Plan(32, 64, 128, 4, 4),
    Plan(16, 128, 128, 8, 3),
    Plan(16, 64, 128, 4, 4),
)
_MEDIUM_SHARED = (Plan(128, 128, 64, 8, 3), *_LARGE_SHARED[2:])
_SMALL_SHARED = (  # at most 99 KiB a block, and two blocks should fit in 100
    Plan(128, 128, 64, 8, 3),
    Plan(64, 128, 32, 4, 3),
    Plan(64, 64, 64, 4, 3),
    Plan(32, 128, 64, 4, 3),
    Plan(32, 64, 64, 4, 4),
    Plan(16, 128, 64, 4, 3),
    Plan(16, 64, 128, 4, 3),
)
_CDNA = (  # 64 KiB of LDS; two stages are prefetching into registers
    Plan(128, 128, 64, 8, 2),
    Plan(64, 128, 64, 4, 2),
    Plan(64, 64, 64, 4, 2),
    Plan(32, 128, 64, 4, 2),
    Plan(32, 64, 128, 4, 2),
    Plan(16, 128, 64, 4, 2),
    Plan(16, 64, 128, 4, 2),
)
_VECTOR = (  # no matrix unit: true fp32, and everything on sm_75
    Plan(64, 64, 16, 4, 3),
    Plan(32, 64, 32, 4, 2),
    Plan(16, 64, 32, 4, 3),
)
_UNALIGNED = (  # rows don't start on 16 elements: narrow loads, each with an address in a register
    Plan(64, 64, 32, 4, 3),
    Plan(32, 64, 32, 4, 3),
    Plan(16, 64, 64, 4, 3),
)
_TABLE = {
    "sm_80": _MEDIUM_SHARED,
    "sm_89": _SMALL_SHARED,
    "sm_90": _LARGE_SHARED,
    "sm_100": _LARGE_SHARED,
    "sm_120": _SMALL_SHARED,
    "gfx942": _CDNA,
}
MAX_SPLITS = 64
WORKSPACE_SHARE = 0.5  # partial sums may add at most this share of the operands' bytes
FULL_ENOUGH = 0.75  # programs per multiprocessor below which a smaller tile is tried


def table(dtype: str, target: Target, aligned: bool = True) -> tuple[Plan, ...]:
    """The tiles that `target` computes well in `dtype`, those with the most reuse first.

    aligned: whether rows of x and w start on multiples of 16 elements, which wide loads need.
    """
    if dtype == "fp32" or not target.has_tensor_cores:
        return _VECTOR
    return _TABLE[target.name] if aligned else _UNALIGNED


@planned()
def whole(m: int, k: int, n: int, dtype: str | None = None, target: Target | str | None = None) -> Plan:
    """The tile with the most reuse that is not far higher than m rows; K is never split."""
    return candidates(m, k, n, dtype, target)[0]


@planned()
def split(m: int, k: int, n: int, dtype: str | None = None, target: Target | str | None = None) -> Plan:
    """The tile and the number of splits for y[m, n] = x[m, k] @ w[k, n] on `target`."""
    for tile in candidates(m, k, n, dtype, target):
        chosen = _with_splits(tile, m, k, n, catalog.itemsize(dtype), target.sm_count)
        if chosen.programs(m, n) >= FULL_ENOUGH * target.sm_count:
            break
    return chosen


def candidates(m: int, k: int, n: int, dtype: str, target: Target) -> tuple[Plan, ...]:
    """The tiles not far higher than m rows, most reuse first."""
    tiles = table(dtype, target, aligned=k % 16 == 0 and n % 16 == 0)
    rows = min(max(power_of_two(m), 16), tiles[0].block_m)
    return tuple(t for t in tiles if min(rows, 64) <= t.block_m <= rows)


@lru_cache(maxsize=4096)  # a launcher asks the same again and again
def _with_splits(tile: Plan, m: int, k: int, n: int, itemsize: float, sms: int) -> Plan:
    """`tile` with the splits that give two programs a multiprocessor (one, for the large tiles)."""
    wanted = (1 if tile.block_m * tile.block_n > 64 * 128 else 2) * sms / tile.tiles(m, n)
    operands = cost.linear(m, k, n, itemsize).bytes
    affordable = WORKSPACE_SHARE * operands / (2 * cost.FP32_BYTES * m * n)
    k_blocks = ceil_div(k, tile.block_k)
    splits = max(1, min(round(wanted), int(affordable), k_blocks, MAX_SPLITS))
    splits = ceil_div(k_blocks, ceil_div(k_blocks, splits))  # no split without a piece of K
    if splits == 1:
        return tile
    elements = min(max(power_of_two(m * n // (2 * sms)), 256), 4096)
    return replace(tile, splits=splits, reduce_block=elements)

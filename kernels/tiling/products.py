"""Which tile of the output one program computes: a table for each chip, and how to choose from it.

A large tile reuses what it loads (block_m * block_n products for block_m + block_n loads), small
tiles and split-K give more programs, and a card works to the end only if they fill whole waves of
it. So: take the largest tile that does, splitting K as far as the traffic of the partial sums
allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from book import catalog, cost, roofline
from kernels.contract.checks import planned
from kernels.contract.targets import Occupancy, Target, occupancy
from kernels.tiling import waves
from kernels.tiling.integers import ceil_div, power_of_two


@dataclass(frozen=True)
class Plan:
    """How a matrix product is cut up: the constants that its kernels are compiled for.

    block_m, block_n, block_k: the output tile and the piece of K that is loaded at once.
    splits: how many programs share the K of one tile, each with its own fp32 partial sum.
    reduce_block: output elements for each program of the kernel that adds the partial sums.
    group_m: rows of tiles that are walked together, so that they find w in L2.
    max_registers: what a thread may have. Where nothing is said, ptxas saves registers for more
    programs than shared memory has room for, and spills some of them.
    """

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    splits: int = 1
    reduce_block: int = 1
    group_m: int = 8
    max_registers: int | None = None

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
        registers = {"maxnreg": self.max_registers} if self.max_registers else {}
        return {
            "BLOCK_M": self.block_m,
            "BLOCK_N": self.block_n,
            "BLOCK_K": self.block_k,
            "GROUP_M": self.group_m,
            "WHOLE_X": whole_k and m % self.block_m == 0,
            "WHOLE_W": whole_k and n % self.block_n == 0,
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            **registers,
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
_SMALL_SHARED = (  # at most 99 KiB a block; of all but the first, two blocks fit in 100
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
MAX_REGISTERS = 255  # of a thread, in what an instruction can name
WORKSPACE_SHARE = 0.5  # partial sums may add at most this share of the operands' bytes
FULL_ENOUGH = 0.75  # of its waves that a tile must fill, or a smaller one is tried
FROM_SHARED = ("sm_90", "sm_100")  # their matrix units read operands in shared memory, of tiles
FROM_SHARED_ROWS = 64  # of at least so many rows
SIDE_BY_SIDE = 2  # programs of one multiprocessor hide each other's waits; a third only shares


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
    tiles = candidates(m, k, n, dtype, target)
    return fullest([_with_splits(tile, m, k, n, dtype, target) for tile in tiles], m, k, n, dtype, target)


def candidates(m: int, k: int, n: int, dtype: str, target: Target) -> tuple[Plan, ...]:
    """The tiles not far higher than m rows, most reuse first."""
    aligned = k % 16 == 0 and n % 16 == 0
    tiles = table(dtype, target, aligned)
    rows = min(max(power_of_two(m), 16), tiles[0].block_m)
    fitting = (t for t in tiles if min(rows, 64) <= t.block_m <= rows)
    return tuple(registered(t, dtype, target, aligned) for t in fitting)


def fullest(
    plans: Sequence[Plan], m: int, k: int, n: int, dtype: str, target: Target, at_once: int = 1
) -> Plan:
    """The first of `plans` whose waves are full enough, else the one whose waves are fullest.

    at_once: how many products of these sizes a program computes side by side.
    """

    def fill(plan: Plan) -> float:
        where = room(plan, dtype, target, at_once)
        return waves.fill(plan.tiles(m, n), ceil_div(k, plan.block_k), where, plan.splits)

    full = (plan for plan in plans if fill(plan) >= FULL_ENOUGH)
    return next(full, None) or max(plans, key=fill)


def room(tile: Plan, dtype: str, target: Target, at_once: int = 1) -> waves.Room:
    """Where programs of this tile run on `target`."""
    fit = max(resident(tile, dtype, target, at_once).blocks, 1)
    return waves.Room(target.sm_count, fit, min(fit, SIDE_BY_SIDE))


def resident(tile: Plan, dtype: str, target: Target, at_once: int = 1) -> Occupancy:
    """How many programs of this tile fit on a multiprocessor, before anything is compiled.

    Registers: two for each sum that a thread keeps, and forty. Shared memory: a buffer for each
    stage, less the one that waits in registers where the matrix units don't read shared memory
    themselves. The tests hold it to what the compiler says of every tile; of rows that aren't aligned,
    whose addresses take registers as well, fewer fit.
    """
    threads = tile.num_warps * target.warp_size
    sums = at_once * tile.block_m * tile.block_n // threads
    from_shared = target.name in FROM_SHARED and tile.block_m >= FROM_SHARED_ROWS and dtype != "fp32"
    stages = tile.num_stages if from_shared else max(tile.num_stages - 1, 1)
    piece = (tile.block_m + at_once * tile.block_n) * tile.block_k * catalog.itemsize(dtype)
    registers = min(40 + 2 * sums, MAX_REGISTERS)
    return occupancy(target, registers=registers, shared_bytes=int(stages * piece), warps=tile.num_warps)


def registered(tile: Plan, dtype: str, target: Target, aligned: bool = True) -> Plan:
    """`tile` with what a thread may have beside the programs that hide its waits.

    Nothing is said where AMD's compiler decides, and for rows that aren't aligned: how many registers
    their addresses take, only ptxas knows.
    """
    if target.backend == "hip" or not aligned:
        return tile
    threads = tile.num_warps * target.warp_size * room(tile, dtype, target).busy
    return replace(tile, max_registers=min(target.registers // threads // 8 * 8, MAX_REGISTERS))


@lru_cache(maxsize=4096)  # a launcher asks the same again and again
def _with_splits(tile: Plan, m: int, k: int, n: int, dtype: str, target: Target) -> Plan:
    """`tile` with the splits that take the least time by the roofline, partial sums included."""
    card = catalog.accelerator(target.accelerator)
    useful = cost.linear(m, k, n, catalog.itemsize(dtype))
    partials = 2 * cost.FP32_BYTES * m * n  # of one split: written, then read
    peak = card.peak(dtype, "matrix" if target.has_tensor_cores else "vector")
    least = roofline.time(useful.flops, useful.bytes, peak, card.bandwidth)
    most = min(int(WORKSPACE_SHARE * useful.bytes / partials), MAX_SPLITS)
    pieces, where = ceil_div(k, tile.block_k), room(tile, dtype, target)
    splits = waves.parts(tile.tiles(m, n), pieces, where, most, partials / card.bandwidth / least)
    if splits == 1:
        return tile
    elements = min(max(power_of_two(m * n // (2 * target.sm_count)), 256), 4096)
    return replace(tile, splits=splits, reduce_block=elements)

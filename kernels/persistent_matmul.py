"""y[M, N] = x[M, K] @ w[K, N] by as many programs as the card holds: each walks over several tiles.

Where `kernels.matmul` starts a program for each tile, the next tile's first loads wait until a
program has ended and another has begun. Here the loop over tiles and the loop over K are one loop
(`flatten`), so they fly while the last products of the tile before are computed. If a start costs as
much time as START pieces of K and the tiles are `waves` waves of programs, START * (waves - 1) of
waves * (pieces + START) is all that can be saved: see `most_saved`. It takes short K and many
tiles. What it can't mend is the tail: 1.08 waves of tiles take the time of two here, too.
"""

from dataclasses import dataclass, replace

import torch

from book import cost
from kernels import matmul
from kernels.contract import devices
from kernels.contract.checks import planned
from kernels.contract.devices import tl, triton
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.matmul import multiply_tile
from kernels.tiling import products, waves
from kernels.tiling.integers import ceil_div


@triton.jit
def persistent_matmul_kernel(
    x_ptr, w_ptr, y_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, WHOLE_X: tl.constexpr, WHOLE_W: tl.constexpr,
):  # fmt: skip
    tiles = ((M + BLOCK_M - 1) // BLOCK_M) * ((N + BLOCK_N - 1) // BLOCK_N)
    # Tiles that are neighbours in time go to neighbouring programs: they share w in L2.
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        multiply_tile(
            tile, x_ptr, w_ptr, y_ptr, M, N, K,
            stride_xm, stride_xk, stride_wk, stride_wn,
            BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, WHOLE_X, WHOLE_W,
        )  # fmt: skip


def persistent_matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = x[M, K] @ w[K, N], in the dtype of x, summed in fp32. Any strides, any sizes >= 1.

    Raises ValueError or TypeError, with the remedy, for tensors it cannot multiply.
    """
    sizes, dtype = experiment.check(x=x, w=w)
    y = x.new_empty(sizes["m"], sizes["n"])
    devices.launch(launches(plan(**sizes, dtype=dtype), x, w, y), x.device)
    return y


@dataclass(frozen=True)
class Plan:
    """The tile, and how many programs share the tiles of y: a wave of them at most."""

    tile: products.Plan
    programs: int


@planned()
def plan(m: int, k: int, n: int, dtype: str | None = None, target: Target | str | None = None) -> Plan:
    """`kernels.matmul`'s tile, and no more programs than fit on `target` at once."""
    tile = products.whole(m, k, n, dtype, target)
    # as for two products at once: a tile's sums are stored while the next one's begin
    room = products.room(tile, dtype, target, at_once=2)
    return Plan(tile, min(tile.tiles(m, n), room.multiprocessors * room.fit))


def most_saved(plan: Plan, m: int, k: int, n: int) -> float:
    """The share of `kernels.matmul`'s time that overlapping the starts can save, at most."""
    rounds, pieces = ceil_div(plan.tile.tiles(m, n), plan.programs), plan.tile.k_blocks(k)
    return waves.START * (rounds - 1) / (rounds * (pieces + waves.START))


def launches(plan: Plan, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> list[Launch]:
    """The one launch that puts x @ w into y on `plan`."""
    (m, k), n = x.shape, w.shape[1]
    args = (x, w, y, m, n, k, *x.stride(), *w.stride())
    return [
        Launch(
            persistent_matmul_kernel, (plan.programs,), args, plan.tile.options(m, k, n), "persistent matmul"
        )
    ]


def issued(plan: Plan, **sizes: float) -> cost.Cost:
    """What `plan` issues for this problem: `kernels.matmul`'s tiles, each of them once."""
    return cost.linear_issued(**sizes, **plan.tile.blocks)


experiment = replace(
    matmul.experiment,
    variant="persistent",
    run=persistent_matmul,
    plan=plan,
    issued=issued,
    launches=launches,
    sweep={
        # 4 tiles, then 136, so that on the H100's 132 multiprocessors some take two
        "counted": {"m": [128, 4352], "k": 64, "n": 1024},
        # short K and many tiles, where there are starts to save
        "timed": {"m": [1024, 2048, 4096, 8192], "k": 512, "n": 8192},
        "compiled": {"m": 4096, "k": 4096, "n": 4096},
    },
)

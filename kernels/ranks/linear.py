"""A linear layer on several ranks, cut by columns or by rows. Confirms chapter 18.

The kernel is `kernels.linear`, each rank's own; what is new is what a rank holds and what it sends.
By columns every rank has all of x and makes other columns of y. By rows it has a part of every sum,
and an all-reduce adds the parts up. The formulas are `book.cost.linear_column_parallel` and
`linear_row_parallel`.
"""

from __future__ import annotations

import torch

from book import cost
from book.say import say
from kernels.linear import experiment, linear
from kernels.ranks import collectives
from kernels.ranks.parallel import Parallel, piece


def column_parallel(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N / n] = x[M, K] @ w[K, N / n]: this rank's columns of y. Nothing is sent."""
    return linear(x, w)


def column_parallel_gathered(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N]: as `column_parallel`, and every rank gets the columns of all."""
    return collectives.all_gather(y=linear(x, w), dim=1)


def row_parallel(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """y[M, N] = the sum over all ranks of x[M, K / n] @ w[K / n, N], in the dtype of x on every rank."""
    return collectives.all_reduce(y=linear(x, w))


# ------------------------------------------------------------------------------ what is asked of them

column = Parallel(
    name=say("linear, column-parallel"),
    experiment=experiment,
    cut="n",
    shard=lambda rank, ranks, x, w: {"x": x, "w": piece(w, 1, rank, ranks)},
    run=column_parallel,
    part=lambda rank, ranks, y: piece(y, 1, rank, ranks),
    cost=cost.linear_column_parallel,
)

column_gathered = Parallel(
    name=say("linear, column-parallel, gathered"),
    experiment=experiment,
    cut="n",
    shard=column.shard,
    run=column_parallel_gathered,
    part=lambda rank, ranks, y: y,
    cost=lambda **sizes: cost.linear_column_parallel(**sizes, gather=True),
)

row = Parallel(
    name=say("linear, row-parallel"),
    experiment=experiment,
    cut="k",
    shard=lambda rank, ranks, x, w: {"x": piece(x, 1, rank, ranks), "w": piece(w, 0, rank, ranks)},
    run=row_parallel,
    part=lambda rank, ranks, y: y,
    cost=cost.linear_row_parallel,
)

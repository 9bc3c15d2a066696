"""A linear layer on several ranks (chapter 18): what one of them does, reads, writes and sends.

The two ways to cut w[k, n], as Shoeybi et al. name them ("Megatron-LM: Training Multi-Billion
Parameter Language Models Using Model Parallelism", 2019, section 3): by columns, where every rank
makes other columns of y and sends nothing, or by rows, where every rank makes a part of each sum and
an all-reduce adds them up. Two layers in a row take one of each and one all-reduce.
"""

from __future__ import annotations

from dataclasses import replace

from book.cost.base import Cost, Number, positive
from book.cost.collectives import all_gather, all_reduce
from book.cost.matrix import linear


def linear_column_parallel(
    m: Number,
    k: Number,
    n: Number,
    ranks: Number,
    itemsize: Number = 2,
    weight_itemsize: Number | None = None,
    *,
    gather: bool = False,
) -> Cost:
    """y[m, n / ranks] = x[m, k] @ w[k, n / ranks] on one rank: all of x, its own columns of w and y.

    gather: every rank needs all columns of y, so an all-gather sends them: sent["y"]. Without it the
    next layer takes the columns as they are, and nothing is sent.
    Raises ValueError unless `ranks` divides n.
    """
    own = linear(m, k, shard(n, ranks, "n"), itemsize, weight_itemsize)
    return replace(own, sent={"y": all_gather(m * n * itemsize, ranks)}) if gather else own


def linear_row_parallel(
    m: Number,
    k: Number,
    n: Number,
    ranks: Number,
    itemsize: Number = 2,
    weight_itemsize: Number | None = None,
) -> Cost:
    """y[m, n] = sum over ranks of x[m, k / ranks] @ w[k / ranks, n]: its own columns of x, rows of w.

    Each rank writes a partial sum of the whole y, which an all-reduce adds up: sent["y"]. The adds
    and the memory traffic of the all-reduce itself, which are small beside w, are not counted.
    Raises ValueError unless `ranks` divides k.
    """
    own = linear(m, shard(k, ranks, "k"), n, itemsize, weight_itemsize)
    return replace(own, sent={"y": all_reduce(m * n * itemsize, ranks)})


def shard(size: Number, ranks: Number, name: str) -> Number:
    """size / ranks, for ints, integer arrays and symbols: the equal part of one rank.

    name: what the size is called, for the ValueError where `ranks` doesn't divide it.
    """
    positive(**{name: size, "ranks": ranks})
    if any(getattr(value, "free_symbols", None) for value in (size, ranks)):
        return size / ranks
    left_over = size % ranks
    if getattr(left_over, "any", lambda: left_over)():
        raise ValueError(
            f"{name} = {size}, ranks = {ranks}: every rank needs an equal part; pad {name} to the next "
            f"multiple of ranks, or use a number of ranks that divides it."
        )
    return size // ranks

"""The linear layer (chapter 02): the formula, and what a tiled kernel issues for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from book.cost.base import FP32_BYTES, Cost, Number, ceil_div, positive


def weight_flops(parameters: Number, tokens: Number = 1) -> Number:
    """2 P a token: each weight is multiplied once and the product added once."""
    return 2 * parameters * tokens


def weights(parameters: Number, tokens: Number = 1, weight_itemsize: Number = 2) -> Cost:
    """What `tokens` tokens do with all `parameters` weights of a model, and no activations: {"weights": P s}.

    A whole step's products at once, whatever matrices they come in. What goes between the matrices
    is left out; `linear` has it, of one.
    """
    positive(parameters=parameters, tokens=tokens, weight_itemsize=weight_itemsize)
    return Cost(weight_flops(parameters, tokens), {"weights": parameters * weight_itemsize})


def linear(
    m: Number, k: Number, n: Number, itemsize: Number = 2, weight_itemsize: Number | None = None
) -> Cost:
    """y[m, n] = x[m, k] @ w[k, n]: a multiply and an add for each of m * k * n pairs.

    m: rows (tokens in the step); k: inputs; n: outputs. itemsize: bytes of a number of x and y;
    weight_itemsize: of w, by default the same. It may be a fraction, and hold the weight's scales
    (int4 in groups of 128: 0.515625, `catalog.effective_itemsize`).
    At two bytes: intensity = m / (1 + m/k + m/n).
    """
    weight_itemsize = itemsize if weight_itemsize is None else weight_itemsize
    positive(m=m, k=k, n=n, itemsize=itemsize, weight_itemsize=weight_itemsize)
    reads = {"x": m * k * itemsize, "w": k * n * weight_itemsize}
    return Cost(weight_flops(k * n, m), reads, {"y": m * n * itemsize})


def weight_intensity(m: Number, weight_itemsize: Number = 2) -> Number:
    """2 m / s, FLOP per byte of weights: a linear layer with x and y forgotten (chapter 02).

    At two bytes it is the number of rows.
    """
    return weights(1, m, weight_itemsize).intensity


def linear_issued(
    m: int,
    k: int,
    n: int,
    *,
    block_m: int,
    block_n: int,
    block_k: int,
    splits: int = 1,
    reduce_block: int = 1,
    itemsize: int = 2,
    weight_itemsize: Number | None = None,
) -> Cost:
    """What a tiled, split-K matrix product issues for the problem `linear(m, k, n)`.

    FLOPs are those of whole tiles: edges are padded to `block_m`, `block_n`, `block_k`. With
    splits > 1 each of `splits` programs takes an equal run of k-blocks and writes an fp32 partial
    sum of the whole output, which a second kernel reads back and adds in blocks of `reduce_block`
    elements: the price of occupancy.
    """
    useful = linear(m, k, n, itemsize, weight_itemsize)
    k_blocks = ceil_div(ceil_div(k, block_k), splits) * splits
    flops = 2 * (ceil_div(m, block_m) * block_m) * (ceil_div(n, block_n) * block_n) * k_blocks * block_k
    if splits == 1:
        return replace(useful, flops=flops)
    partials = splits * m * n * FP32_BYTES
    return Cost(
        flops,
        {**useful.reads, "partials": partials},
        {**useful.writes, "partials": partials},
        frozenset({"partials"}),
        workspace_flops=splits * ceil_div(m * n, reduce_block) * reduce_block,
    )


def gemv_issued(
    m: int,
    k: int,
    n: int,
    *,
    block_m: int,
    block_n: int,
    block_k: int,
    splits: int = 1,
    reduce_block: int = 1,
    itemsize: int = 2,
    weight_itemsize: Number | None = None,
) -> Cost:
    """What a weight-streaming kernel on the ordinary units issues for `linear(m, k, n)`.

    As `linear_issued`, but each program keeps a sum for every position of its tile and adds the
    `block_k` of an output up at the end: block_k - 1 more adds, reported in `workspace_flops`.
    """
    tiling = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "splits": splits}
    sizes: dict[str, Any] = {"itemsize": itemsize, "weight_itemsize": weight_itemsize}
    tiles = linear_issued(m, k, n, **tiling, reduce_block=reduce_block, **sizes)
    outputs = ceil_div(m, block_m) * block_m * ceil_div(n, block_n) * block_n
    sums = splits * outputs * (block_k - 1)
    return replace(tiles, workspace_flops=tiles.workspace_flops + sums)

"""Intensity of linear layers."""

from __future__ import annotations

from book import cost
from book.claims.claim import right, wrong
from book.claims.terms import card
from book.say import say


def rows_to_ridge(accelerator: str, k: int) -> float:
    """Rows at which a square layer of width k reaches the bf16 ridge: solve M / (1 + 2M/k) = I*."""
    i = card(accelerator).ridge("bf16")
    return i / (1 - 2 * i / k)


def tile_padding(m: int, block_m: int) -> float:
    """FLOPs of whole tiles over useful ones: `m` rows, tiles of `block_m` that divide K and N evenly."""
    side = 1024
    tiles = cost.linear_issued(m, side, side, block_m=block_m, block_n=64, block_k=64)
    return tiles.flops / cost.linear(m, side, side).flops


CLAIMS = (
    right(
        "intensity-is-m-small",
        say("The intensity of a linear layer is its number of rows: 32 at 32 rows (8192 x 8192)"),
        "32 FLOP/byte",
        lambda: cost.linear(32, 8192, 8192).intensity,
        say("Within one percent while rows are few beside the layer's width."),
        tolerance=0.01,
        slip=lambda: 32,
    ),
    wrong(
        "intensity-is-m-large",
        say("The intensity of a linear layer is its number of rows: 8192 at 8192 rows (8192 x 8192)"),
        "8,192 FLOP/byte",
        lambda: cost.linear(8192, 8192, 8192).intensity,
        say("Activations weigh as much as the weights here. M / (1 + M/K + M/N) is a third of M."),
        slip=lambda: 8192,
    ),
    wrong(
        "fma-is-one",
        say("A linear layer with 64 rows (8192 x 8192) has 31.5 operations a byte"),
        "31.5",
        lambda: cost.linear(64, 8192, 8192).intensity,
        say("A fused multiply-add is two operations. Data sheets count it so too, and both sides must."),
        unit="FLOP/byte",
        slip=lambda: cost.linear(64, 8192, 8192).intensity / 2,
    ),
    wrong(
        "rows-to-ridge",
        say("295 rows bring an 8192 x 8192 layer to an H100's ridge"),
        "295 rows",
        lambda: rows_to_ridge("h100_sxm", 8192),
        say("The limit again. With activations it takes 318, and 345 for a 4096 x 4096 layer."),
        slip=lambda: card("h100_sxm").ridge("bf16"),
    ),
    right(
        "one-row",
        say("One row through a linear layer has intensity 1 (8192 x 8192)"),
        "1 FLOP/byte",
        lambda: cost.linear(1, 8192, 8192).intensity,
        say("Two operations for a weight of two bytes."),
    ),
    wrong(
        "intensity-is-m-2048",
        say("The intensity of a linear layer is its number of rows: 2048 at 2048 rows (8192 x 8192)"),
        "2,048 FLOP/byte",
        lambda: cost.linear(2048, 8192, 8192).intensity,
        say("The activations weigh half as much as the weights. Two thirds of M remain."),
        slip=lambda: 2048,
    ),
    right(
        "limit-three-times",
        say("At 8192 rows (8192 x 8192) the limit I = M is three times too high"),
        "3 times",
        lambda: 8192 / cost.linear(8192, 8192, 8192).intensity,
        say("Three matrices of one size, and the limit counts one."),
    ),
    right(
        "rows-to-ridge-4096",
        say("345 rows bring a 4096 x 4096 layer to an H100's ridge"),
        "345 rows",
        lambda: rows_to_ridge("h100_sxm", 4096),
        say("The narrower the layer, the more its activations weigh."),
    ),
    right(
        "rows-to-ridge-16384",
        say("306 rows bring a 16384 x 16384 layer to an H100's ridge"),
        "306 rows",
        lambda: rows_to_ridge("h100_sxm", 16_384),
        say("Nearly the limit. Published times bend between 256 and 512 rows."),
    ),
    right(
        "rows-to-ridge-h200",
        say("Near 200 rows bring it to an H200's ridge"),
        "about 200 rows",
        lambda: rows_to_ridge("h200_sxm", 16_384),
        say("The same compute and faster memory, so it stops waiting sooner."),
        tolerance=0.06,
    ),
    right(
        "tile-of-sixteen",
        say("One row in a tile of sixteen does sixteen times the arithmetic"),
        "16 times",
        lambda: tile_padding(1, 16),
        say("And costs nothing, since the card waits for the weight."),
    ),
)

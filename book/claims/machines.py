"""Chapters 01 to 04: roofs, rows, phases, floors."""

from __future__ import annotations

from book import catalog, cost, roofline, serving
from book.claims.registry import expression
from book.serving import deploy

_card = catalog.accelerator


@expression
def ridge(accelerator: str, dtype: str) -> float:
    """FLOP/byte."""
    return _card(accelerator).ridge(dtype)


@expression
def ridge_growth(older: str, newer: str, dtype: str) -> float:
    """Ridge of the newer card over that of the older."""
    return ridge(newer, dtype) / ridge(older, dtype)


@expression
def compute_growth(older: str, newer: str, dtype: str) -> float:
    """Dense peak of the newer card over that of the older."""
    return peak(newer, dtype) / peak(older, dtype)


@expression
def bandwidth_growth(older: str, newer: str) -> float:
    """Bandwidth of the newer card over that of the older."""
    return bandwidth(newer) / bandwidth(older)


@expression
def peak(accelerator: str, dtype: str) -> float:
    """Dense FLOP/s."""
    return _card(accelerator).peak(dtype)


@expression
def slip_sparse_peak(accelerator: str, dtype: str) -> float:
    """FLOP/s with 2:4 sparsity, which a dense model can't use."""
    return _card(accelerator).sparse_peaks[dtype]


@expression
def bandwidth(accelerator: str) -> float:
    """Bytes/s."""
    return _card(accelerator).bandwidth


@expression
def attainable(accelerator: str, dtype: str, intensity: float) -> float:
    """FLOP/s."""
    card = _card(accelerator)
    return roofline.attainable(intensity, card.peak(dtype), card.bandwidth)


@expression
def slip_no_roof(accelerator: str, intensity: float) -> float:
    """FLOP/s, with the slope drawn on past the ridge."""
    return intensity * bandwidth(accelerator)


@expression
def linear_intensity(m: int, k: int, n: int) -> float:
    """FLOP/byte at two bytes a number."""
    return cost.linear(m, k, n).intensity


@expression
def slip_rows(m: int) -> float:
    """The limit I = M, with activations forgotten."""
    return m


@expression
def limit_over_exact(m: int, k: int, n: int) -> float:
    """How many times too high the limit I = M is."""
    return m / linear_intensity(m, k, n)


@expression
def slip_fma_is_one(m: int, k: int, n: int) -> float:
    """A fused multiply-add counted as one operation."""
    return linear_intensity(m, k, n) / 2


@expression
def rows_to_ridge(accelerator: str, dtype: str, k: int) -> float:
    """Rows at which a square layer of width k reaches the ridge: solve M / (1 + 2M/k) = I*."""
    i = ridge(accelerator, dtype)
    return i / (1 - 2 * i / k)


@expression
def tile_padding(m: int, block_m: int) -> float:
    """FLOPs of whole tiles over useful ones: `m` rows, tiles of `block_m` that divide K and N evenly."""
    side = 1024
    tiles = cost.linear_issued(m, side, side, block_m=block_m, block_n=64, block_k=64)
    return tiles.flops / cost.linear(m, side, side).flops


@expression
def critical_rows(accelerator: str, dtype: str, weight_dtype: str) -> float:
    """M* for weights stored in one dtype and multiplied in another."""
    card = _card(accelerator)
    return serving.critical_rows(card.peak(dtype), card.bandwidth, catalog.itemsize(weight_dtype))


@expression
def utilisation(accelerator: str, rows: int) -> float:
    """Share of the bf16 peak that so many rows can use."""
    card = _card(accelerator)
    return serving.utilisation(rows, card.peak("bf16"), card.bandwidth)


@expression
def idle(accelerator: str, rows: int) -> float:
    """Share of the bf16 peak that so many rows leave unused."""
    return 1 - utilisation(accelerator, rows)


@expression
def times_critical(accelerator: str, rows: int) -> float:
    """Rows over M*, all in bf16."""
    return rows / critical_rows(accelerator, "bf16", "bf16")


@expression
def weights_per_second(model: str, seconds: float) -> float:
    """Bytes/s of streaming all bf16 weights in `seconds`."""
    return weight_bytes(model) / seconds


@expression
def share_of_bandwidth(accelerator: str, share: float) -> float:
    """Bytes/s that this share of the bandwidth is."""
    return share * bandwidth(accelerator)


@expression
def bandwidth_share(model: str, accelerator: str, seconds: float) -> float:
    """Share of the bandwidth that streaming all bf16 weights in `seconds` takes."""
    return weights_per_second(model, seconds) / bandwidth(accelerator)


@expression
def bytes_moved(accelerator: str, share: float, seconds: float) -> float:
    """Bytes that this share of the bandwidth moves in `seconds`."""
    return share_of_bandwidth(accelerator, share) * seconds


@expression
def prompt_tokens(model: str, accelerator: str, share: float, seconds: float) -> float:
    """Tokens whose 2 P FLOPs keep this share of the bf16 peak busy for `seconds`."""
    return share * peak(accelerator, "bf16") * seconds / (2 * catalog.model(model).parameters)


@expression
def mean_share(first: float, first_seconds: float, later: float, later_seconds: float, steps: int) -> float:
    """Time-weighted mean of one prefill and `steps` decode steps."""
    busy = first * first_seconds + later * later_seconds * steps
    return busy / (first_seconds + later_seconds * steps)


@expression
def parameters(model: str) -> float:
    """Every number in the checkpoint."""
    return catalog.model(model).parameters


@expression
def weight_bytes(model: str, bits: float = 16, gpus: int = 1) -> float:
    """Bytes that the whole model takes on each of `gpus` cards that share it evenly."""
    return serving.weight_bytes(catalog.model(model), bits / 8) / gpus


@expression
def memory_share(model: str, accelerator: str) -> float:
    """bf16 weights over the memory that the card's driver reports."""
    return weight_bytes(model) / _card(accelerator).driver_bytes


@expression
def slip_label_share(model: str, accelerator: str) -> float:
    """bf16 weights over the memory that the card is sold with."""
    return weight_bytes(model) / _card(accelerator).capacity


@expression
def bytes_read(model: str, bits: float = 16) -> float:
    """Bytes of weights that one decode step takes: no input table, the head."""
    return serving.weight_bytes_read(catalog.model(model), 1, bits / 8)


@expression
def slip_no_head(model: str, bits: float = 16) -> float:
    """The head forgotten."""
    return bytes_read(model, bits) - catalog.model(model).parameter_parts["head"] * bits / 8


@expression
def weight_seconds(
    model: str, accelerator: str, gpus: int = 1, bits: float = 16, count: str = "all"
) -> float:
    """Seconds to stream the weights once."""
    d = deploy(model, accelerator, gpus=gpus, weight_itemsize=bits / 8, count=count)
    return serving.decode_step(d, 1, 1).weight_time


@expression
def weight_rate(
    model: str, accelerator: str, batch: int = 1, gpus: int = 1, bits: float = 16, count: str = "all"
) -> float:
    """Tokens/s that streaming the weights allows."""
    return batch / weight_seconds(model, accelerator, gpus, bits, count)

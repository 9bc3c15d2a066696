"""Claims about measurements of others: single streams, decode attention, the step law's rows."""

from __future__ import annotations

from book import catalog, cost, roofline, serving
from book.claims.registry import expression
from book.serving import deploy, step_law


def _stream(model: str, accelerator: str, weights: str) -> dict:
    for series in catalog.published("single_stream"):
        if (series.model, series.accelerator) == (model, accelerator):
            for point in series.points:
                if point.get("weights") == weights:
                    return point
    raise ValueError(f"single_stream has no row of {model} on {accelerator} with weights = {weights!r}.")


@expression
def streamed(model: str, accelerator: str, weights: str) -> float:
    """Bytes/s: what a step reads, times the published tokens/s."""
    read = serving.weight_bytes_read(catalog.model(model), weight_itemsize=catalog.itemsize(weights))
    return read * _stream(model, accelerator, weights)["tokens_per_second"]


@expression
def streamed_share(model: str, accelerator: str, weights: str) -> float:
    """The same as a share of the card's bandwidth."""
    return streamed(model, accelerator, weights) / catalog.accelerator(accelerator).bandwidth


@expression
def published_attention(accelerator: str, batch: int, context: int, heads: int, kv_heads: int) -> float:
    """Seconds of decode attention in one layer, head_dim 128, bf16, as published."""
    shape = {"heads": heads, "kv_heads": kv_heads}
    points = catalog.series("decode_attention", accelerator=accelerator, **shape).points
    return next(p["seconds"] for p in points if (p["batch"], p["context"]) == (batch, context))


@expression
def attention_floor(accelerator: str, batch: int, context: int, heads: int, kv_heads: int) -> float:
    """Seconds that the roofline gives it at least."""
    c, card = cost.decode_attention(batch, heads, kv_heads, 128, context), catalog.accelerator(accelerator)
    return roofline.time(c.flops, c.bytes, card.peak("bf16"), card.bandwidth)


@expression
def attention_reaches(accelerator: str, batch: int, context: int, heads: int, kv_heads: int) -> float:
    """Floor over published time."""
    at = (accelerator, batch, context, heads, kv_heads)
    return attention_floor(*at) / published_attention(*at)


@expression
def measured_growth(accelerator: str, batch: int, context: int, heads: int, more_heads: int) -> float:
    """Published decode attention, 8 KV heads: time with more query heads over time with fewer."""
    more = published_attention(accelerator, batch, context, more_heads, 8)
    return more / published_attention(accelerator, batch, context, heads, 8)


# The published tensor-parallel rows of Llama-3.1-70B in FP8, and the law's line through them.


def _rows(accelerator: str, engine: str) -> tuple[dict[int, float], dict[int, float]]:
    """Floors and measured seconds by number of cards. A request is half way through its output."""
    series = catalog.series("decode_step", accelerator=accelerator, engine=engine)
    fixed = series.fixed
    context = fixed["input_tokens"] + fixed["output_tokens"] / 2
    measured = {p["gpus"]: p["seconds"] for p in series.points}
    deployed = {n: deploy(series.model, accelerator, weight_itemsize=1, gpus=n) for n in measured}
    return {n: serving.tpot(d, fixed["concurrency"], context) for n, d in deployed.items()}, measured


def _fit(accelerator: str, engine: str) -> step_law.Fit:
    floors, measured = _rows(accelerator, engine)
    return step_law.fit(list(floors.values()), list(measured.values()))


@expression
def fitted_slope(accelerator: str, engine: str) -> float:
    """Slope of the law."""
    return _fit(accelerator, engine).slope


@expression
def fitted_efficiency(accelerator: str, engine: str) -> float:
    """One over the slope: the share of the floor's rate once overhead is paid."""
    return _fit(accelerator, engine).efficiency


@expression
def fitted_overhead(accelerator: str, engine: str) -> float:
    """Seconds, from the same fit."""
    return _fit(accelerator, engine).overhead


@expression
def fitted_step(accelerator: str, engine: str, gpus: int) -> float:
    """Seconds that the fitted law gives a step on so many cards."""
    return _fit(accelerator, engine).law(step_floor(accelerator, engine, gpus))


@expression
def step_floor(accelerator: str, engine: str, gpus: int) -> float:
    """Seconds: the floor of the step that was published."""
    return _rows(accelerator, engine)[0][gpus]


@expression
def step_reaches(accelerator: str, engine: str, gpus: int) -> float:
    """Floor over published time."""
    floors, measured = _rows(accelerator, engine)
    return floors[gpus] / measured[gpus]


@expression
def measured_speedup(accelerator: str, engine: str, gpus: int, more: int) -> float:
    """Published time on `gpus` cards over that on more of them."""
    measured = _rows(accelerator, engine)[1]
    return measured[gpus] / measured[more]


@expression
def floor_speedup(accelerator: str, engine: str, gpus: int, more: int) -> float:
    """The same by the floors."""
    floors = _rows(accelerator, engine)[0]
    return floors[gpus] / floors[more]

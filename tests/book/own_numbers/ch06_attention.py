"""Attention over the cache."""

from __future__ import annotations

from book import catalog, cost, roofline
from book.claims.claim import right, wrong
from book.claims.terms import card, model
from book.say import say


def kv_intensity(name: str, kv_itemsize: float = 2, kv_heads: int | None = None) -> float:
    """FLOP per byte of cache. kv_heads: another number of them than the model has."""
    one = model(name)
    return cost.kv_intensity(one.heads, kv_heads or one.kv_heads, kv_itemsize)


def measured(accelerator: str, batch: int, context: int, heads: int, kv_heads: int) -> float:
    """Seconds of decode attention in one layer, head_dim 128, bf16, as published."""
    shape = {"heads": heads, "kv_heads": kv_heads}
    points = catalog.series("decode_attention", accelerator=accelerator, **shape).points
    return next(p["seconds"] for p in points if (p["batch"], p["context"]) == (batch, context))


def floor(accelerator: str, batch: int, context: int, heads: int, kv_heads: int) -> float:
    """Seconds that the roofline gives it at least."""
    one, c = card(accelerator), cost.decode_attention(batch, heads, kv_heads, 128, context)
    return roofline.time(c.flops, c.bytes, one.peak("bf16"), one.bandwidth)


CLAIMS = (
    wrong(
        "decode-intensity-one",
        say("Decode attention has intensity 1 and nothing can improve it"),
        "1 FLOP/byte",
        lambda: kv_intensity("llama3.1-70b"),
        say("Of Llama-2-7B it has. Sharing KV heads makes it H / G: 8 here, 16 for the 405B."),
        slip=lambda: kv_intensity("llama2-7b"),
    ),
    wrong(
        "decode-intensity-8b",
        say("Llama-3.1-8B's decode attention has intensity 8"),
        "8 FLOP/byte",
        lambda: kv_intensity("llama3.1-8b"),
        say("That is the 70B's ratio. The 8B shares 8 KV heads among 32."),
        slip=lambda: kv_intensity("llama3.1-70b"),
    ),
    right(
        "fp8-cache",
        say("An FP8 cache doubles it"),
        "8 FLOP/byte",
        lambda: kv_intensity("llama3.1-8b", kv_itemsize=1),
        say("Half the bytes for the same operations."),
    ),
    wrong(
        "heads-cost-time",
        say(
            "Eight times the query heads take eight times as long (H100, 64 sequences of 4,096 tokens, "
            "8 KV heads)"
        ),
        "8 times",
        lambda: measured("h100_sxm", 64, 4096, 64, 8) / measured("h100_sxm", 64, 4096, 8, 8),
        say("Measured by others: 353.7 and 355.0 microseconds. The cache is read once either way."),
    ),
    right(
        "decode-intensity-405b",
        say("Llama-3.1-405B's decode attention has intensity 16"),
        "16 FLOP/byte",
        lambda: kv_intensity("llama3.1-405b"),
        say("128 query heads on 8 KV heads."),
    ),
    wrong(
        "one-kv-head",
        say("One KV head for all its query heads would bring Llama-3.1-405B's to an H100's ridge"),
        "more than 295",
        lambda: kv_intensity("llama3.1-405b", kv_heads=1),
        say("To 128, one for each query head: not half way."),
        unit="FLOP/byte",
        slip=lambda: card("h100_sxm").ridge("bf16"),
    ),
    right(
        "attention-floor-h100",
        say("64 sequences of 4,096 tokens on 8 KV heads take at least 321 µs on an H100"),
        "321 µs",
        lambda: floor("h100_sxm", 64, 4096, 64, 8),
        say("1.08 GB of cache over 3.35 TB/s, one layer, head dimension 128."),
    ),
    right(
        "attention-floor-h200",
        say("64 sequences of 4,096 tokens on 8 KV heads take at least 224 µs on an H200"),
        "224 µs",
        lambda: floor("h200_sxm", 64, 4096, 64, 8),
        say("The same bytes at 4.8 TB/s."),
    ),
    right(
        "attention-reaches-h100",
        say("Measured on an H100: 353.6 µs with 32 query heads, 91 % of the floor's rate"),
        "91 %",
        lambda: floor("h100_sxm", 64, 4096, 32, 8) / measured("h100_sxm", 64, 4096, 32, 8),
        say("One division predicts a tuned kernel to a tenth."),
    ),
    right(
        "attention-reaches-h200",
        say("Measured on an H200: 270.9 µs with 32 query heads, 83 % of the floor's rate"),
        "83 %",
        lambda: floor("h200_sxm", 64, 4096, 32, 8) / measured("h200_sxm", 64, 4096, 32, 8),
        say("The rows beside it, 255.0 µs with 8 query heads and 255.6 µs with 64, reach 88 %."),
    ),
    wrong(
        "heads-cost-time-h200",
        say("On an H200, too, eight times the query heads take eight times as long"),
        "8 times",
        lambda: measured("h200_sxm", 64, 4096, 64, 8) / measured("h200_sxm", 64, 4096, 8, 8),
        say("Measured by others: 255.0 and 255.6 microseconds."),
    ),
    wrong(
        "attention-one-sequence",
        say("One sequence of 8,192 tokens on one KV head takes 1.3 µs on an H100, as its bytes say"),
        "1.3 µs",
        lambda: measured("h100_sxm", 1, 8192, 8, 1),
        say("Measured by others. So little work neither fills the card nor hides the start of a kernel."),
        number=1.25e-06,
        slip=lambda: floor("h100_sxm", 1, 8192, 8, 1),
    ),
)

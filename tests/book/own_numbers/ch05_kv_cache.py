"""The KV cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from book import cost, serving
from book.claims.claim import right, wrong
from book.claims.terms import card, model, sequences
from book.say import say
from book.serving import deploy


def kappa(name: str, kv_itemsize: float = 2, **other: Any) -> float:
    """Bytes of cache a token. other: fields that the model doesn't have (kv_heads=64), for slips."""
    return serving.kv_bytes_per_token(replace(model(name), **other), kv_itemsize)


def tokens_beside(name: str, accelerator: str, weight_itemsize: float) -> float:
    """Tokens of cache that fit beside the weights in nine tenths of the memory that a program sees."""
    d = deploy(name, accelerator, weight_itemsize=weight_itemsize)
    return serving.kv_capacity(d, fraction=0.9)


def sharing_saves(name: str) -> float:
    """kappa with a KV head for each query head, over kappa."""
    return kappa(name, kv_heads=model(name).heads) / kappa(name)


CLAIMS = (
    right(
        "kappa-8b",
        say("Llama-3.1-8B keeps 128 KiB of cache a token in bf16"),
        "131,072 B",
        lambda: kappa("llama3.1-8b"),
        say("2 x 32 layers x 8 KV heads x 128 x 2 bytes."),
    ),
    right(
        "kappa-70b",
        say("Llama-3.1-70B keeps 320 KiB of cache a token in bf16"),
        "327,680 B",
        lambda: kappa("llama3.1-70b"),
        say("2 x 80 layers x 8 KV heads x 128 x 2 bytes."),
    ),
    wrong(
        "kappa-query-heads",
        say("Llama-3.1-70B keeps 2.6 MB of cache a token"),
        "2,621,440 B",
        lambda: kappa("llama3.1-70b"),
        say("64 query heads taken for KV heads: eight times too much. The 8B suffers four times."),
        slip=lambda: kappa("llama3.1-70b", kv_heads=64),
    ),
    wrong(
        "kappa-keys-only",
        say("Llama-3.1-8B keeps 64 KiB of cache a token in bf16"),
        "65,536 B",
        lambda: kappa("llama3.1-8b"),
        say("K without V."),
        slip=lambda: kappa("llama3.1-8b") / 2,
    ),
    wrong(
        "kappa-weight-dtype",
        say("Llama-3.1-70B with FP8 weights keeps 160 KiB of cache a token"),
        "163,840 B",
        lambda: kappa("llama3.1-70b"),
        say("The cache has a dtype of its own, bf16 unless one asks."),
        slip=lambda: kappa("llama3.1-70b", kv_itemsize=1),
    ),
    wrong(
        "kappa-head-dim",
        say("Qwen3-32B keeps 160 KiB of cache a token"),
        "163,840 B",
        lambda: kappa("qwen3-32b"),
        say("head_dim is 128 in its config, not d_model / heads = 80."),
        slip=lambda: kappa("qwen3-32b", head_dim=model("qwen3-32b").d_model // model("qwen3-32b").heads),
    ),
    wrong(
        "kappa-405b",
        say("Llama-3.1-405B keeps 1.03 MB of cache a token"),
        "1,032,192 B",
        lambda: kappa("llama3.1-405b"),
        say("A published table with 16 KV heads. The model has 8, so all of it is twice too large."),
        slip=lambda: kappa("llama3.1-405b", kv_heads=16),
    ),
    right(
        "kappa-v3",
        say("DeepSeek-V3 keeps 70 kB of cache a token in bf16"),
        "70,272 B",
        lambda: kappa("deepseek-v3"),
        say("61 layers x (512 + 64) x 2 bytes: one latent for all heads."),
    ),
    wrong(
        "gib-is-gb",
        say("Llama-3.1-70B's cache at 32,768 tokens is 10 GB"),
        "10 GB",
        lambda: serving.kv_bytes(model("llama3.1-70b"), 32_768),
        say("It is 10 GiB, which is 10.74 GB, and bandwidths are in GB."),
        slip=lambda: serving.kv_bytes(model("llama3.1-70b"), 32_768) / 2**30 * 1e9,
    ),
    wrong(
        "copied-95ms",
        say("Reading the caches of 32 such sequences takes 95 ms on an H100"),
        "95 ms",
        lambda: 32 * serving.kv_bytes(model("llama3.1-70b"), 32_768) / card("h100_sxm").bandwidth,
        say("320 GiB divided by 3.35 decimal TB/s. The same bytes in one unit take 7 ms more."),
        number=0.0955,
        slip=lambda: (
            32 * serving.kv_bytes(model("llama3.1-70b"), 32_768) / 2**30 * 1e9 / card("h100_sxm").bandwidth
        ),
    ),
    right(
        "h200-tokens",
        say("An H200 with Llama-3.1-70B in FP8 has room for about 197,000 tokens in bf16"),
        "197,000 tokens",
        lambda: tokens_beside("llama3.1-70b", "h200_sxm", weight_itemsize=1),
        say("90 % of the 150.1 GB that a program sees, less 70.6 GB. From the label, 141, it is 171,900."),
    ),
    right(
        "h200-sequences",
        say("That is 38 sequences of 5,120 tokens"),
        "38",
        lambda: sequences("llama3.1-70b", "h200_sxm", 5120, weight_itemsize=1),
        say("Whole sequences; 38.5 would fit in parts."),
        unit="sequences",
    ),
    right(
        "kappa-llama2",
        say("Llama-2-7B keeps 512 KiB of cache a token in bf16"),
        "524,288 B",
        lambda: kappa("llama2-7b"),
        say("2 x 32 layers x 32 KV heads x 128 x 2 bytes: more than the 70B."),
    ),
    right(
        "without-gqa-70b",
        say("Without shared KV heads Llama-3.1-70B would keep 8 times as much"),
        "8 times",
        lambda: sharing_saves("llama3.1-70b"),
        say("64 query heads on 8 KV heads."),
    ),
    wrong(
        "without-gqa-8b",
        say("Without shared KV heads Llama-3.1-8B would keep 8 times as much"),
        "8 times",
        lambda: sharing_saves("llama3.1-8b"),
        say("It has 8 KV heads too, but 32 query heads."),
        slip=lambda: sharing_saves("llama3.1-70b"),
    ),
    right(
        "kappa-layer",
        say("One layer of Llama-3.1-70B writes 4 KiB a token"),
        "4,096 B",
        lambda: sum(
            cost.kv_append(1, model("llama3.1-70b").kv_heads, model("llama3.1-70b").head_dim).writes.values()
        ),
        say("A key and a value for 8 KV heads of 128."),
    ),
    right(
        "copied-bytes",
        say("The caches of 32 sequences of 32,768 tokens of Llama-3.1-70B are 344 GB"),
        "343.6 GB",
        lambda: 32 * serving.kv_bytes(model("llama3.1-70b"), 32_768),
        say("Or 320 GiB. More than twice the weights."),
    ),
)

"""The operations that a measured row can be of: its columns, and the floor that they give.

A floor is what no run can beat: the longer of compulsory bytes over the bandwidth and FLOPs over the dense
peak, both by the datasheet. Where a row leaves something open, the floor takes the least: the fastest
arithmetic that the formats allow, the fewest experts that a router can choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from book import catalog, cost, serving
from book.catalog import Accelerator

Row = Mapping[str, Any]

MLA_LATENT, MLA_ROPE = 512, 64  # DeepSeek's: kv_lora_rank and qk_rope_head_dim
MATRICES = 3  # of a gated expert


class NotAnswerable(ValueError):
    """A row that no floor can be given for: a column is missing, or says what can't exist."""


@dataclass(frozen=True)
class Work:
    """What a row must do at least.

    bytes: compulsory, each input read once and each output written once. flops: useful ones. peak:
    FLOP/s of the fastest arithmetic that its formats allow on its card. expected_bytes: what it moves
    on average, where that is more than the least (experts under even routing); else None.
    """

    bytes: float
    flops: float
    peak: float
    expected_bytes: float | None = None


@dataclass(frozen=True)
class Operation:
    """One kind of row. columns: what it needs beside accelerator and seconds; work: what it must do."""

    name: str
    columns: tuple[str, ...]
    work: Callable[[Accelerator, Row], Work]


@dataclass(frozen=True)
class Formats:
    """What a GEMM's dtype label means: formats of x and of the weights, and of the arithmetic."""

    x: str
    weights: str
    arithmetic: tuple[str, ...]


WORDS = ("dtype", "cache_dtype", "attention_dtype", "model")  # columns that hold no number

# Labels as tables of engines have them. Scales count only where the format has them of its own.
FORMATS: Mapping[str, Formats] = {
    "fp32": Formats("fp32", "fp32", ("fp32", "tf32")),
    "fp16": Formats("fp16", "fp16", ("fp16",)),
    "bf16": Formats("bf16", "bf16", ("bf16",)),
    "fp8": Formats("fp8", "fp8", ("fp8",)),
    "fp8_block": Formats("fp8", "fp8", ("fp8",)),
    "int8": Formats("int8", "int8", ("int8",)),
    "int8_wo": Formats("bf16", "int8", ("bf16", "fp16")),
    "int4_wo": Formats("bf16", "int4", ("bf16", "fp16")),
    "nvfp4": Formats("nvfp4", "nvfp4", ("nvfp4",)),
    "mxfp4": Formats("mxfp4", "mxfp4", ("mxfp4",)),
    "w4a16_mxfp4": Formats("bf16", "mxfp4", ("bf16", "fp16")),
}


def _fastest(card: Accelerator, names: tuple[str, ...]) -> float:
    """FLOP/s of the fastest of these that the card has."""
    rates = []
    for name in names:
        try:
            rates.append(card.peak(name))
        except catalog.UnsupportedDtype:
            continue
    if not rates:
        raise NotAnswerable(
            f"dtype: {card.name} multiplies none of {', '.join(names)}; it has {', '.join(card.peaks)}."
        )
    return max(rates)


def _formats(row: Row) -> Formats:
    label = str(row["dtype"])
    if label not in FORMATS:
        raise NotAnswerable(f"dtype = {label!r}: not known; use one of {', '.join(FORMATS)}.")
    return FORMATS[label]


def _gemm(card: Accelerator, row: Row) -> Work:
    f = _formats(row)
    m, n, k = row["m"], row["n"], row["k"]
    reads = cost.linear(m, k, n, catalog.effective_itemsize(f.x), catalog.effective_itemsize(f.weights))
    # The product is written in 16 bits, whatever it was made of.
    out = 4 if f.x == "fp32" else 2
    return Work(
        reads.reads["x"] + reads.reads["w"] + cost.linear(m, k, n, out).writes["y"],
        reads.flops,
        _fastest(card, f.arithmetic),
    )


def _cache(card: Accelerator, row: Row) -> tuple[float, float]:
    """Bytes of a cached number, and FLOP/s of the fastest arithmetic that may be done with it."""
    name = str(row["cache_dtype"])
    if name not in ("bf16", "fp16", "fp8", "int8"):
        raise NotAnswerable(f"cache_dtype = {name!r}: not known; use bf16, fp16, fp8 or int8.")
    narrow = str(row.get("attention_dtype") or name) in ("fp8", "int8") or catalog.itemsize(name) == 1
    has_fp8 = "fp8" in card.peaks
    return catalog.itemsize(name), _fastest(card, ("fp8",) if narrow and has_fp8 else (card.default_dtype,))


def _decode_attention(card: Accelerator, row: Row) -> Work:
    kv_itemsize, peak = _cache(card, row)
    seen = min(row["context"], row.get("window") or row["context"])
    heads = (row["heads"], row["kv_heads"], row["head_dim"])
    c = cost.decode_attention(row["batch"], *heads, seen, itemsize=2, kv_itemsize=kv_itemsize)
    return Work(c.bytes, c.flops, peak)


def _prefill_attention(card: Accelerator, row: Row) -> Work:
    itemsize, peak = _cache(card, row)
    if str(row.get("attention_dtype") or "") in ("fp8", "int8"):
        itemsize = 1
    heads = (row["heads"], row["kv_heads"], row["head_dim"])
    c = cost.flash_attention(row.get("batch") or 1, row["tokens"], *heads, itemsize=itemsize)
    return Work(c.bytes, c.flops, peak)


def _mla_decode(card: Accelerator, row: Row) -> Work:
    kv_itemsize, peak = _cache(card, row)
    c = cost.mla_decode(
        row["batch"], row["heads"], MLA_LATENT, MLA_ROPE, row["context"], itemsize=2, kv_itemsize=kv_itemsize
    )
    return Work(c.bytes, c.flops, peak)


def _moe(card: Accelerator, row: Row) -> Work:
    f, tokens = _formats(row), row["tokens"]
    one = expert_bytes(row)
    touched = serving.experts_touched_between(row["experts"], row["top_k"], tokens)
    flops = cost.weight_flops(MATRICES * row["hidden"] * row["expert_hidden"] / (row.get("tp") or 1), tokens)
    return Work(touched[0] * one, flops * row["top_k"], _fastest(card, f.arithmetic), touched[1] * one)


def expert_bytes(row: Row) -> float:
    """Bytes of one expert's weights, of the part that a card holds under tensor parallelism."""
    numbers = MATRICES * row["hidden"] * row["expert_hidden"] / (row.get("tp") or 1)
    return numbers * catalog.effective_itemsize(_formats(row).weights)


def _decode_step(card: Accelerator, row: Row) -> Work:
    """A whole step of a server. dtype: of the weights and the arithmetic; cache_dtype: bf16 if left out."""
    name = str(row.get("dtype") or card.default_dtype)
    d = serving.deploy(
        str(row["model"]),
        card,
        weight_itemsize=catalog.effective_itemsize(name),
        kv_itemsize=catalog.itemsize(str(row.get("cache_dtype") or "bf16")),
        gpus=row.get("gpus") or 1,
        dtype=name,
    )
    step = serving.decode_step(d, row["batch"], row["context"])
    return Work(step.cost.bytes, step.cost.flops, d.peak)


OPERATIONS: Mapping[str, Operation] = {
    o.name: o
    for o in (
        Operation("gemm", ("m", "n", "k", "dtype"), _gemm),
        Operation(
            "decode_attention",
            ("batch", "context", "heads", "kv_heads", "head_dim", "cache_dtype"),
            _decode_attention,
        ),
        Operation(
            "prefill_attention",
            ("tokens", "heads", "kv_heads", "head_dim", "cache_dtype"),
            _prefill_attention,
        ),
        Operation("mla_decode", ("batch", "context", "heads", "cache_dtype"), _mla_decode),
        Operation("decode_step", ("model", "batch", "context"), _decode_step),
        Operation("moe", ("tokens", "hidden", "expert_hidden", "top_k", "experts", "dtype"), _moe),
    )
}


def operation(name: str) -> Operation:
    """The operation of that name. Raises NotAnswerable with those that there are."""
    if name not in OPERATIONS:
        raise NotAnswerable(f"operation = {name!r}: not known; use one of {', '.join(OPERATIONS)}.")
    return OPERATIONS[name]


def work(op: Operation, card: Accelerator, row: Row) -> Work:
    """What the row must do at least. Raises NotAnswerable naming the column, its value and the remedy."""
    for name in op.columns:
        if row.get(name) is None:
            raise NotAnswerable(f"{name}: missing; {op.name} needs {', '.join(op.columns)}.")
    for name in (*op.columns, "tp", "gpus", "window"):
        value = row.get(name)
        if name in WORDS or value is None or (name == "window" and value == 0):
            continue
        if isinstance(value, str) or not math.isfinite(value) or value < 1 or value != int(value):
            raise NotAnswerable(f"{name} = {value!r}: must be a whole number from 1 on.")
    if op.name.endswith("attention") and row["heads"] % row["kv_heads"]:
        raise NotAnswerable(
            f"kv_heads = {row['kv_heads']}: {row['heads']} heads can't share them evenly; give a divisor."
        )
    if op.name == "moe" and row["top_k"] > row["experts"]:
        raise NotAnswerable(f"top_k = {row['top_k']}: there are {row['experts']} experts; choose no more.")
    return op.work(card, row)

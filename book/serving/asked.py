"""What may be asked of the law of chapter 09: a row by other people's names, checked before anything is told.

>>> asked({"accelerator": "H100 SXM", "engine": "trtllm", "gpus": "2", ...})["engine"]
'TensorRT-LLM'
>>> arithmetic("int8_wo", catalog.accelerator("h100_sxm"))
'bf16'
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from book import catalog
from book.catalog import Accelerator, Model
from book.catalog.names import UnknownName
from book.serving.deployment import splits

Row = Mapping[str, Any]

DEFAULT_MODEL = "llama3.1-70b"
NEEDED = ("accelerator", "engine", "gpus", "concurrency", "input_tokens", "output_tokens")
LEAST = {"gpus": 1, "concurrency": 1, "input_tokens": 1, "output_tokens": 2}
CACHES = (1, 2)  # bytes of a cached number for which a factor was fitted
# Other people's names of formats: how a weight is stored. Scales of FP8 blocks add 0.006 %.
FORMATS = {
    "fp8_block": "fp8",
    "fp8_static": "fp8",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8_wo": "int8",
    "int4_wo": "int4_g128",
    "w4afp8": "int4_g128",
    "w4a16_mxfp4": "mxfp4",
}
WEIGHT_ONLY = ("int8_wo", "int4_wo", "int4", "w4a16_mxfp4")  # unpacked to 16 bits before they are multiplied
ENGINES = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "tensorrtllm": "TensorRT-LLM", "sglang": "SGLang"}


def asked(row: Row) -> Row:
    """The row with the catalog's names and whole numbers.

    Raises ValueError in a sentence for what can't be served, and UnknownName for a card or model that the
    catalog doesn't have.
    """
    if not isinstance(row, Mapping):
        raise ValueError(f"row = {row!r}: a row is a mapping from a column's name to its value; give a dict.")
    absent = ", ".join(name for name in NEEDED if name not in row)
    if absent:
        raise ValueError(f"The row has no {absent}: give what a prediction is about.")
    counts = {name: _count(name, row[name], least) for name, least in LEAST.items()}
    model = catalog.model(_name("model", row.get("model") or DEFAULT_MODEL))
    _dealt_out(model, counts["gpus"])
    length = counts["input_tokens"] + counts["output_tokens"]
    if length > model.max_context:
        raise ValueError(
            f"input_tokens + output_tokens = {length:,}: {model.name} takes {model.max_context:,} tokens at "
            "most; give fewer, or another model."
        )
    named = {
        "model": model.id,
        "accelerator": catalog.accelerator(_name("accelerator", row["accelerator"])).id,
        "engine": _engine(row["engine"]),
    }
    if row.get("weights") is not None:
        named["weights"] = _name("weights", row["weights"])
    size = row.get("kv_itemsize")
    if size is not None and (type(size) not in (int, float) or size not in CACHES):
        raise ValueError(f"kv_itemsize = {size!r}: bytes of a cached number; give 1 (FP8) or 2 (16 bits).")
    return {**row, **counts, **named}


def stored(weights: str) -> str:
    """The catalog's name of a format of weights."""
    return FORMATS.get(weights, weights)


def arithmetic(weights: str, card: Accelerator) -> str:
    """What a product with such weights runs in: their own format where there are units for it, else 16 bits.

    Weight-only formats are unpacked first ("w4afp8" to FP8).
    """
    wanted = "fp8" if weights == "w4afp8" else stored(weights)
    return wanted if wanted in card.peaks and weights not in WEIGHT_ONLY else card.default_dtype


def _count(name: str, value: Any, least: int) -> int:
    remedy = f"give a whole number, at least {least}."
    if isinstance(value, bool):
        raise ValueError(f"{name} = {value!r}: {remedy}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} = {value!r}: {remedy}") from None
    if not isfinite(number) or number != int(number) or number < least:
        raise ValueError(f"{name} = {value}: {remedy}")
    return int(number)


def _name(field: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{field} = {value!r}: give its name as a text, one of the catalog's.")
    return value


def _engine(value: Any) -> str:
    plain = "".join(c for c in value.lower() if c.isalnum()) if isinstance(value, str) else ""
    if plain not in ENGINES:
        known = ", ".join(dict.fromkeys(ENGINES.values()))
        raise ValueError(f"engine = {value!r}: no law was fitted to its rows; use one of {known}.")
    return ENGINES[plain]


def _dealt_out(model: Model, gpus: int) -> None:
    can = splits(model)
    if gpus not in can:
        raise ValueError(
            f"gpus = {gpus}: {model.heads} query heads and {model.kv_heads} KV heads of {model.name} can't "
            f"be dealt out evenly; use one of {', '.join(map(str, can))}."
        )


__all__ = ["DEFAULT_MODEL", "Row", "UnknownName", "arithmetic", "asked", "stored"]

"""What the rows of several chapters ask for. Bytes and seconds; weights and caches are bf16 unless said."""

from __future__ import annotations

from typing import Any

from book import catalog, roofline, serving
from book.serving import deploy

card, model = catalog.accelerator, catalog.model


def attainable(accelerator: str, intensity: float) -> float:
    """FLOP/s in bf16."""
    one = card(accelerator)
    return roofline.attainable(intensity, one.peak("bf16"), one.bandwidth)


def weight_bytes(name: str) -> float:
    """Bytes of the whole model."""
    return serving.weight_bytes(model(name))


def weight_seconds(name: str, accelerator: str, count: str = "read", **deployed: Any) -> float:
    """Seconds to stream what a step reads of the weights; count "all" takes the input table for read, too."""
    return serving.decode_step(deploy(name, accelerator, count=count, **deployed), 1, 1).weight_time


def sequences(name: str, accelerator: str, context: int, **deployed: Any) -> float:
    """Whole sequences that fit beside the weights in nine tenths of the memory that a program sees."""
    return serving.sequences(deploy(name, accelerator, **deployed), context, fraction=0.9)

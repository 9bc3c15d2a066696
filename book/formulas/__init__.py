"""The chapters' formulas, in chapter order. `ALL` is what the tests walk through.

Each is made by calling `book.cost`, `book.serving` and `book.roofline` with symbols.
"""

from book.formula import Formula
from book.formulas.part1 import PART1, attainable, fma_chain, linear
from book.formulas.part2 import (
    decode_attention,
    decode_floor,
    decode_rate,
    kv_bytes_per_token,
    kv_capacity,
    utilisation,
)
from book.formulas.steps import decode_step, prefill, step_law

PART2: tuple[Formula, ...] = (
    utilisation,
    decode_floor,
    decode_rate,
    kv_bytes_per_token,
    kv_capacity,
    decode_attention,
    decode_step,
    prefill,
    step_law,
)
ALL: tuple[Formula, ...] = PART1 + PART2

__all__ = [
    "ALL",
    "PART1",
    "PART2",
    "attainable",
    "decode_attention",
    "decode_floor",
    "decode_rate",
    "decode_step",
    "fma_chain",
    "kv_bytes_per_token",
    "kv_capacity",
    "linear",
    "prefill",
    "step_law",
    "utilisation",
]

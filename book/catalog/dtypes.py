"""Number formats and the bytes that one element takes: their one home in this book."""

from __future__ import annotations

from book.catalog.names import look_up

ITEMSIZES: dict[str, float] = {
    "fp32": 4,
    "tf32": 4,  # kept in memory as fp32; the tensor cores drop the low mantissa bits
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "int8": 1,
    "fp4": 0.5,
    "int4": 0.5,
}


def itemsize(dtype: str) -> int | float:
    """Bytes per element of `dtype`, scales not included. Raises UnknownName for another name."""
    return look_up("dtype", dtype, ITEMSIZES)

"""Attention of decode steps on an H100, caches in bf16 and in FP8: the rows that chapter 06 shows."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, read

FILES = (
    "decode_attention/h100_sxm-vllm-0.24.0-bf16.csv",
    "decode_attention/h100_sxm-vllm-0.24.0-fp8.csv",
)


def rows() -> tuple[MeasuredRow, ...]:
    """All rows of these files; columns as in the files, times in seconds. Raises CatalogError."""
    return tuple(row for file in FILES for row in read(Path(__file__).parent / file))

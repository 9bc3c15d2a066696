"""DeepSeek's latent attention in decoding, bf16: the part of the table that chapter 06 shows."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, read

FILES = (
    "mla_decode/h100_sxm-trtllm-1.3.0rc20-bf16.csv",
    "mla_decode/h200_sxm-trtllm-1.3.0rc20-bf16.csv",
)


def rows() -> tuple[MeasuredRow, ...]:
    """All rows of these files; columns as in the files, times in seconds. Raises CatalogError."""
    return tuple(row for file in FILES for row in read(Path(__file__).parent / file))

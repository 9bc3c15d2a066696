"""Matrix products of Llama-3.1's layers as tensor parallelism cuts them. The files say the rest."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, folder

FOLDER = Path(__file__).parent / "gemm_shards"


def rows() -> tuple[MeasuredRow, ...]:
    """All of them; columns as in the files, times in seconds. Raises CatalogError."""
    return folder(FOLDER)

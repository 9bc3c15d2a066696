"""Attention of decode steps: one query token a sequence over its cache. The files say the rest."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, folder

FOLDER = Path(__file__).parent / "decode_attention"


def rows() -> tuple[MeasuredRow, ...]:
    """All of them; columns as in the files, times in seconds. Raises CatalogError."""
    return folder(FOLDER)

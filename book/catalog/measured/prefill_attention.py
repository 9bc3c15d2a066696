"""Causal attention of a prompt. The files say how, and where they are from."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, folder

FOLDER = Path(__file__).parent / "prefill_attention"


def rows() -> tuple[MeasuredRow, ...]:
    """All of them; columns as in the files, times in seconds. Raises CatalogError."""
    return folder(FOLDER)

"""All-reduces on 2, 4 and 8 cards of a node. The files say how, and where they are from."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, folder

FOLDER = Path(__file__).parent / "all_reduce"


def rows() -> tuple[MeasuredRow, ...]:
    """All of them; columns as in the files, times in seconds. Raises CatalogError."""
    return folder(FOLDER)

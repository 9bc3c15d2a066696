"""Expert layers of Mixtral 8x7B, Qwen3-235B and DeepSeek-V3. The files say how, and where they are from."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, folder

FOLDER = Path(__file__).parent / "moe"


def rows() -> tuple[MeasuredRow, ...]:
    """All of them; columns as in the files, times in seconds. Raises CatalogError."""
    return folder(FOLDER)

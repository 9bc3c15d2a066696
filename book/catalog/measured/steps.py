"""Whole servers: TTFT and TPOT of Llama-3.1-70B and 8B. The files say how, and where they are from."""

from __future__ import annotations

from pathlib import Path

from book.catalog.measured.rows import MeasuredRow, folder

LLAMA_70B = Path(__file__).parent / "llama70b_steps"
LLAMA_8B = Path(__file__).parent / "llama8b_steps"


def llama_70b() -> tuple[MeasuredRow, ...]:
    """Llama-3.1-70B with FP8 weights: gpus, concurrency, input_tokens, output_tokens, ttft_s, tpot_s.

    Raises CatalogError.
    """
    return folder(LLAMA_70B)


def llama_8b() -> tuple[MeasuredRow, ...]:
    """Llama-3.1-8B, same columns; `weights` is None where the source doesn't say the precision.

    Raises CatalogError.
    """
    return folder(LLAMA_8B)

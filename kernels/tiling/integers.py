"""Whole numbers that tilings are made of. `ceil_div` is that of the costs."""

from __future__ import annotations

from book.cost.base import ceil_div

__all__ = ["ceil_div", "power_of_two"]


def power_of_two(x: int) -> int:
    """The least power of two that is at least x; 1 for x = 0."""
    return 1 << max(x - 1, 0).bit_length()

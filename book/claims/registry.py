"""What a claim's exact value is computed with: small functions, called by name with plain inputs.

A row of claims.yaml names one of them and gives its arguments. They say nothing new: each asks
`book.cost`, `book.roofline`, `book.serving` or the catalog. Names that start with "slip_" make a
known mistake on purpose, to show where a printed number comes from. Shares are fractions of one.
"""

from __future__ import annotations

from collections.abc import Callable

EXPRESSIONS: dict[str, Callable[..., float]] = {}


def expression(function: Callable[..., float]) -> Callable[..., float]:
    """Make a function callable from claims.yaml, under its own name."""
    EXPRESSIONS[function.__name__] = function
    return function

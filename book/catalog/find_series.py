"""Published measurements by kind and by what was fixed, read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from book.catalog import find_card, find_model
from book.catalog.measurements import Series, load_published
from book.catalog.names import look_up


@lru_cache(maxsize=1)
def _published() -> Mapping[str, tuple[Series, ...]]:
    return load_published(
        accelerators=[card.id for card in find_card.accelerators()],
        models=[model.id for model in find_model.models()],
    )


def published_kinds() -> tuple[str, ...]:
    """The kinds of measurement that `published` knows."""
    return tuple(_published())


def published(kind: str) -> tuple[Series, ...]:
    """All series of one kind ("linear", "decode_attention", ...), in SI units. Raises UnknownName."""
    return look_up("kind of published measurement", kind, _published())


def series(kind: str, *, accelerator: str, **fixed: float) -> Series:
    """The one published series of this kind, card and fixed values (k=16384, ...).

    Raises UnknownName for an unknown kind or accelerator, ValueError listing what there is if none
    or several fit.
    """
    card = find_card.accelerator(accelerator).id
    ours = [s for s in published(kind) if s.accelerator == card]
    fitting = [s for s in ours if all(s.fixed.get(name) == value for name, value in fixed.items())]
    if len(fitting) != 1:
        there = "; ".join(", ".join(f"{k} = {v}" for k, v in s.fixed.items()) for s in ours) or "none"
        raise ValueError(f"{kind} on {card} with {fixed}: {len(fitting)} series fit; there are: {there}.")
    return fitting[0]

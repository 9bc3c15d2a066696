"""The accelerators by name, read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from book.catalog.hardware import Accelerator, Unit, load_accelerators
from book.catalog.names import by_plain_name, look_up, plain

# How a driver's name of a card begins. A shorter one is a person's, who may not know that it means several.
DRIVERS_SAY = ("nvidia ", "tesla ", "amd ")

# A slice of a card: MIG ("... MIG 1g.10gb"), or a vGPU's profile ("A10-4Q", "A30-2-12C", "A100-1-5CME").
_SLICE = re.compile(r"\bMIG\b|-\d+(-\d+)?[ABCQ](ME)?\b", re.IGNORECASE)


@lru_cache(maxsize=1)
def _accelerators() -> Mapping[str, Accelerator]:
    return load_accelerators()


def accelerators() -> tuple[Accelerator, ...]:
    """All accelerators, in the order of the file."""
    return tuple(_accelerators().values())


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    """Every name that means a card, `plain` -> id: ids, names, short names and the file's aliases."""
    named = {name: c.id for c in accelerators() for name in (c.id, c.name, c.short_name, *c.aliases)}
    return by_plain_name("accelerator", named)


def accelerator(name: str) -> Accelerator:
    """The accelerator of this name: an id, a name, a short name, what a driver calls it, or an alias.

    Case, spaces, dashes and underscores don't count: "h100_sxm", "H100 SXM", "NVIDIA H100 80GB HBM3".
    Raises UnknownName with the nearest: a bare "H100" is three cards.
    """
    return _card(name)


def card_called(device_name: str) -> Accelerator | None:
    """The card that a driver calls `device_name` ("NVIDIA H100 80GB HBM3"), None if it is not known.

    A name that fits several cards (a bare "NVIDIA H100") is none: SXM and PCIe are different cards. So is
    a slice of a card (MIG, vGPU), which has neither the memory nor the units of the whole.
    """
    if _SLICE.search(device_name):
        return None
    found = [
        row
        for row in accelerators()
        if any(re.search(pattern, device_name, re.IGNORECASE) for pattern in row.driver_names)
    ]
    return found[0] if len(found) == 1 else None


def _card(name: str) -> Accelerator:  # `accelerator` is the name of an argument below
    rows, names = _accelerators(), _names()
    if isinstance(name, str) and name.lower().startswith(DRIVERS_SAY) and plain(name) not in names:
        return card_called(name) or look_up("accelerator", name, rows)
    return look_up("accelerator", name, rows, names)


def roof_peak(accelerator: str | Accelerator, arithmetic: str, unit: Unit = "matrix") -> float:
    """The height of a kernel's roof, dense FLOP/s, by what it computes in and on which units.

    accelerator: a row, its id or its short name. arithmetic: the dtype that is multiplied, which
    need not be one that a tensor is stored in. unit: "matrix" or "vector"; what computes on the
    vector units has the fp32 vector rate, in whatever format its tensors are stored
    (`Accelerator.peak` says why).

        roof_peak("a100_80gb_sxm", "fp16")              # int4 weights multiplied as fp16: 312e12
        roof_peak("a100_80gb_sxm", "fp16", "vector")    # a GEMV that streams fp16 weights: 19.5e12

    Raises UnsupportedDtype naming the dtypes that the card has; UnknownName; ValueError for a unit.
    """
    card = accelerator if isinstance(accelerator, Accelerator) else _card(accelerator)
    return card.peak(arithmetic, unit)

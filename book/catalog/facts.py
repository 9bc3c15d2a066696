"""What a reader's choice of a card, or of a number format, decides in a formula: one row a fact.

A formula's parameter names its source and the fact (`Parameter(source="accelerator", fact="link")`);
the explorer's dropdowns, its pages and its sentences all read these two tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from book.catalog.dtypes import effective_itemsize, itemsize
from book.catalog.hardware import Accelerator

# fact: (card, dtype) -> number in SI units, or None where the card has no such thing.
ACCELERATOR_FACTS: Mapping[str, Callable[[Accelerator, str], float | None]] = MappingProxyType(
    {
        "peak": lambda card, dtype: card.peaks.get(dtype),  # FLOP/s, the one that the dtype decides, too
        "bandwidth": lambda card, _: card.bandwidth,  # byte/s
        "capacity": lambda card, _: card.usable,  # byte, as `Accelerator.usable` says
        "alone": lambda card, _: float(card.interconnect_bandwidth is None),  # 1: nothing joins two of them
        "link": lambda card, _: card.interconnect_bandwidth,  # byte/s to other cards, each way
    }
)

# fact: dtype -> number
DTYPE_FACTS: Mapping[str, Callable[[str], float]] = MappingProxyType(
    {
        "itemsize": itemsize,  # byte
        "effective_itemsize": effective_itemsize,  # byte, with its share of the scales
    }
)

FACTS: Mapping[str, Mapping[str, Callable[..., float | None]]] = MappingProxyType(
    {"accelerator": ACCELERATOR_FACTS, "dtype": DTYPE_FACTS}
)

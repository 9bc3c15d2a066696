"""The numbers: accelerators, models and published measurements, each with its source.

    >>> from book import catalog
    >>> catalog.accelerator("h100_sxm").ridge("bf16")
    295.34...
    >>> catalog.model("llama3-8b").parameters
    8030261248

The facts live in the YAML files beside this module and nowhere else. They are read once, when
first asked for, and checked as they are read: a `CatalogError` says what to mend. Everything that
comes out is in SI base units (bytes, bytes/s, FLOP/s, seconds), and every peak is dense.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from book.catalog.architecture import Attention, Experts, Model, load_models
from book.catalog.dtypes import RATES, Dtype, dtype, effective_bits, effective_itemsize, itemsize
from book.catalog.hardware import Accelerator, NoLink, Unit, UnsupportedDtype, load_accelerators
from book.catalog.measurements import Series, load_published
from book.catalog.names import UnknownName, look_up
from book.catalog.rows import CatalogError, Source

__all__ = [
    "Accelerator",
    "Attention",
    "CatalogError",
    "Dtype",
    "Experts",
    "Model",
    "NoLink",
    "RATES",
    "Series",
    "Source",
    "Unit",
    "UnknownName",
    "UnsupportedDtype",
    "accelerator",
    "accelerators",
    "dtype",
    "effective_bits",
    "effective_itemsize",
    "itemsize",
    "linear_layers",
    "model",
    "models",
    "published",
    "published_kinds",
    "roof_peak",
    "series",
]


@lru_cache(maxsize=1)
def _accelerators() -> Mapping[str, Accelerator]:
    return load_accelerators()


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Model]:
    return load_models()


@lru_cache(maxsize=1)
def _published() -> Mapping[str, tuple[Series, ...]]:
    return load_published(accelerators=_accelerators(), models=_models())


def accelerators() -> tuple[Accelerator, ...]:
    """All accelerators, in the order of the file."""
    return tuple(_accelerators().values())


def accelerator(id: str) -> Accelerator:
    """The accelerator with this id or short name ("h100_sxm", "H100 SXM"). Raises UnknownName."""
    return _card(id)


def card_called(device_name: str) -> Accelerator | None:
    """The card that a driver calls `device_name` ("NVIDIA H100 80GB HBM3"), None if it is not known.

    A name that fits several cards (a bare "NVIDIA H100") is none: SXM and PCIe are different cards.
    """
    found = [
        row
        for row in accelerators()
        if any(re.search(pattern, device_name, re.IGNORECASE) for pattern in row.driver_names)
    ]
    return found[0] if len(found) == 1 else None


def _card(id: str) -> Accelerator:  # `accelerator` is the name of an argument below
    rows = _accelerators()
    return look_up("accelerator", id, rows, {a.short_name: a.id for a in rows.values()})


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


def models() -> tuple[Model, ...]:
    """All models, in the order of the file."""
    return tuple(_models().values())


def model(id: str) -> Model:
    """The model with this id or name ("llama3-8b", "Llama-3-8B"). Raises UnknownName."""
    rows = _models()
    return look_up("model", id, rows, {m.name: m.id for m in rows.values()})


def linear_layers() -> dict[str, dict[str, dict[str, int]]]:
    """Every model's distinct linear layers: model name -> layer label -> {"k": ..., "n": ...}."""
    return {
        m.name: {label: {"k": k, "n": n} for label, (k, n) in m.linear_layers().items()} for m in models()
    }


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
    card = look_up("accelerator", accelerator, _accelerators()).id
    ours = [s for s in published(kind) if s.accelerator == card]
    fitting = [s for s in ours if all(s.fixed.get(name) == value for name, value in fixed.items())]
    if len(fitting) != 1:
        there = "; ".join(", ".join(f"{k} = {v}" for k, v in s.fixed.items()) for s in ours) or "none"
        raise ValueError(f"{kind} on {card} with {fixed}: {len(fitting)} series fit; there are: {there}.")
    return fitting[0]

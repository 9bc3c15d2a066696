"""The models by name, read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from book.catalog.architecture import Model, load_models
from book.catalog.names import look_up


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Model]:
    return load_models()


def models() -> tuple[Model, ...]:
    """All models, in the order of the file."""
    return tuple(_models().values())


def model(id: str) -> Model:
    """The model with this id or name ("llama3.1-8b", "Llama-3.1-8B"). Raises UnknownName."""
    rows = _models()
    return look_up("model", id, rows, {m.name: m.id for m in rows.values()})


def linear_layers() -> dict[str, dict[str, dict[str, int]]]:
    """Every model's distinct linear layers: model name -> layer label -> {"k": ..., "n": ...}."""
    return {
        m.name: {label: {"k": k, "n": n} for label, (k, n) in m.linear_layers().items()} for m in models()
    }

"""The models by name, read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from book.catalog.architecture import Model, load_models, load_refused
from book.catalog.names import UnknownName, by_plain_name, look_up, plain


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Model]:
    return load_models()


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    """Every name that means a model, `plain` -> id: ids, display names, hf ids and the file's aliases."""
    named = {name: m.id for m in models() for name in (m.id, m.name, m.hf_id, *m.aliases)}
    return by_plain_name("model", named)


@lru_cache(maxsize=1)
def _refused() -> Mapping[str, str]:
    return MappingProxyType({plain(name): reason for name, reason in load_refused().items()})


def _why_refused(name: str) -> str:
    """What a refused model is built of, "" for another. "...-FP8" after its name is that model still."""
    return next((reason for known, reason in _refused().items() if name.startswith(known)), "")


def models() -> tuple[Model, ...]:
    """All models, in the order of the file."""
    return tuple(_models().values())


def model(name: str) -> Model:
    """The model of this name: an id, a display name, a Hugging Face id, or another name the file gives.

    Case, spaces, dashes and what stands before a slash don't count: "llama3.1-8b", "Llama-3.1-8B" and
    "meta-llama/Llama-3.1-8B-Instruct" are one. Raises UnknownName, which lists the nearest, or says
    what a known model is built of that a `Model` can't hold.
    """
    if isinstance(name, str) and plain(name) not in _names() and (reason := _why_refused(plain(name))):
        raise UnknownName(f"{name!r} is not in the catalog: it has {reason}, which a Model can't hold.")
    return look_up("model", name, _models(), _names())


def linear_layers() -> dict[str, dict[str, dict[str, int]]]:
    """Every model's distinct linear layers: model name -> layer label -> {"k": ..., "n": ...}."""
    return {
        m.name: {label: {"k": k, "n": n} for label, (k, n) in m.linear_layers().items()} for m in models()
    }

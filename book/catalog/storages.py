"""How checkpoints are published: which numbers of a model are kept in which format.

    >>> storage(model("gpt-oss-120b"), "mxfp4")["experts"]      # bytes a parameter, scales included
    0.5324...

A format's name says what the large matrices are in, never all: norms, the tables and often attention
stay in 16 bits. So "FP8" weights are more than a byte a parameter, and "4-bit" ones more than half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from book.catalog.architecture import PATH, Model
from book.catalog.dtypes import DTYPES, effective_itemsize
from book.catalog.find_model import model as model_called
from book.catalog.find_model import models
from book.catalog.names import by_plain_name, look_up
from book.catalog.parameters import KINDS
from book.catalog.rows import Row, Source, read, rows

OTHERS, PREDICTION, ABSENT = "others", "prediction", "absent"


@dataclass(frozen=True)
class Storage:
    """One way to publish weights.

    aliases: other names by which `storage` finds it.
    kept: kind of number (`parameters.KINDS`) -> its format; "absent" for what such a checkpoint does
    not have (scales of its own come with a format); "prediction" for all of a prediction module,
    "others" for the rest. published_bytes: model id -> bytes of all tensors, where a source has them.
    """

    id: str
    aliases: tuple[str, ...]
    about: str
    kept: Mapping[str, str]
    published_bytes: Mapping[str, int]
    sources: tuple[Source, ...]
    notes: str

    def itemsize(self, part: str, kind: str) -> float:
        """Bytes of a number of this kind in this part of a model, its share of the scales included."""
        name = self.kept.get(PREDICTION) if part == PREDICTION else None
        name = name or self.kept.get(kind) or self.kept[OTHERS]
        return 0 if name == ABSENT else effective_itemsize(name)


@lru_cache(maxsize=1)
def _storages() -> Mapping[str, Storage]:
    return load_storages(models=[m.id for m in models()])


def storages() -> tuple[Storage, ...]:
    """All ways of publishing weights that the catalog knows."""
    return tuple(_storages().values())


def storage(model: str | Model, name: str, asked: str = "storage") -> Mapping[str, float]:
    """Part of the model -> mean bytes of one of its parameters, scales included: a `weight_itemsize`.

    model: a row or a name of it. name: "bf16", "fp8", "mxfp4", "nvfp4", ... (`storages()` lists them).
    asked: what the caller calls it, for messages.

    Raises UnknownName; ValueError where nothing of this model would be kept in that format.
    """
    held = model if isinstance(model, Model) else model_called(model)
    rows = _storages()
    named = {name: id for id, way in rows.items() for name in (id, *way.aliases)}
    way = look_up(asked, name, rows, by_plain_name("storage", named))
    kinds = {kind for counts in held.parameter_kinds.values() for kind in counts}
    special = {kind for kind, dtype in way.kept.items() if kind in KINDS and dtype != ABSENT}
    if special and not kinds & special:
        raise ValueError(
            f"{asked} = {name!r}: it keeps {', '.join(sorted(special))} in a format of their own, and "
            f"{held.name} has none; take another {asked} or another model."
        )
    made = {}
    for part, counts in held.parameter_kinds.items():
        if total := sum(counts.values()):
            made[part] = sum(n * way.itemsize(part, kind) for kind, n in counts.items()) / total
    return MappingProxyType(made)


def load_storages(path: Path = PATH, *, models: list[str]) -> Mapping[str, Storage]:
    """id -> Storage, checked. Raises CatalogError."""
    return MappingProxyType(
        {row.data["id"]: _storage(row, models) for row in rows(read(path), "storages", path)}
    )


def _storage(row: Row, models: list[str]) -> Storage:
    kept, published = row.row("kept"), row.row("published_bytes", optional=True)
    formats = tuple(name for name, dtype in DTYPES.items() if dtype.storage)
    made = Storage(
        id=row.text("id"),
        aliases=tuple(str(x) for x in row.items("aliases", optional=True)),
        about=row.text("about"),
        kept=MappingProxyType({kind: kept.choice(kind, (*formats, ABSENT)) for kind in kept.data}),
        published_bytes=MappingProxyType(
            {id: published.number(id, integer=True) for id in published.data} if published else {}
        ),
        sources=row.cited(),
        notes=row.text("notes"),
    )
    row.finish()
    for kind in made.kept:
        if kind not in (*KINDS, OTHERS, PREDICTION):
            kept.refuse(kind, made.kept[kind], f"no kind of parameter; use {', '.join(KINDS)} or {OTHERS}.")
    if OTHERS not in made.kept:
        kept.refuse(OTHERS, None, "say what the kinds that aren't named are kept in.")
    for id in made.published_bytes:
        if id not in models:
            row.refuse("published_bytes", id, "no such model in the file; take the id of one.")
    return made

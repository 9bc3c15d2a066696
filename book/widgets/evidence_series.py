"""Measured points as the explorer draws them: each series checked, completed and told apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from book import catalog
from book.formulas.formula import Formula
from book.widgets.explorer_payload import DTYPES, sliders
from book.widgets.words import word

RUNGS = ("counted", "executed", "compiled", "timed", "recorded", "published")

Series = dict[str, Any]

_ADDRESS = re.compile(r"(?P<page>[\w-]+(?:\.[\w-]+)+/[\w./-]+)(?:@(?P<commit>\w+))?")
_SIZE = re.compile(r"\w+ = [\d.,]+\Z")  # "k = 8,192"


def published(kind: str, accelerators: Iterable[str]) -> list[Series]:
    """The catalog's published series of one kind, for these accelerators only."""
    wanted = set(accelerators)
    return [
        {
            "rung": "published",
            "label": ", ".join(
                [*filter(None, [s.fixed.get("engine")]), *(x.key for x in s.sources), s.table]
            ),
            "model": s.model,
            "source": s.source,
            "engine": s.engine,
            "accelerator": s.accelerator,
            "dtype": s.dtype,
            "fixed": dict(s.fixed),
            "points": [dict(p) for p in s.points],
        }
        for s in catalog.published(kind)
        if s.accelerator in wanted
    ]


def series(formula: Formula, item: Mapping[str, Any]) -> Series:
    """One series as the front-end draws it.

    item: {"rung", "label", "points": [{symbol: value, "intensity", "flops_per_s", "seconds"}]}, and
    if known "accelerator", "dtype", "source", "engine", "model" (its id), "fixed": {symbol: value}. What a
    point does not say and the formula can is filled in: the intensity at its sizes, and FLOP/s from seconds.
    Raises ValueError for an unknown rung, no point, or a point that can't be placed.
    """
    name = item.get("label") or item.get("rung")
    if item.get("rung") not in RUNGS:
        raise ValueError(f"series {name!r}: rung = {item.get('rung')!r}; use one of {', '.join(RUNGS)}.")
    if not item.get("dtype"):  # some labels say it
        item = {**item, "dtype": next((p for p in str(item.get("label")).split(", ") if p in DTYPES), None)}
    points = [_point(formula, name, item, p) for p in item.get("points") or ()]
    if not points:
        raise ValueError(f"series {name!r}: points is empty; leave the series out, or give it a point.")
    of_model = _decided_by(formula, item.get("model"))
    for p in points:
        p["at"] = {**of_model, **p["at"]}
    axis = formula.limit.parameter if formula.limit else sliders(formula)[0].symbol
    fixed = {
        name: value
        for name, value in points[0]["at"].items()
        if all(p["at"].get(name) == value for p in points) and (len(points) > 1 or name != axis)
    }
    for p in points:
        p["at"] = {s: v for s, v in p["at"].items() if s not in fixed}
    made = {"rung": item["rung"], "label": _label(item), "fixed": fixed, "points": points}
    known = {k: item[k] for k in ("accelerator", "dtype", "source", "engine") if item.get(k)}
    link = _link(item.get("source") or "")
    return made | known | ({"link": link} if link else {})


def _link(source: str) -> str:
    """Where a source can be read, if it begins with an address; "github.com/a/b@095f58a" at that commit."""
    found = _ADDRESS.match(source)
    if not found:
        return ""
    commit = f"/tree/{found['commit']}" if found["commit"] else ""
    return f"https://{found['page'].rstrip('./')}{commit}"


def _decided_by(formula: Formula, model: str | None) -> dict[str, float]:
    """What a model decides in the formula, however its parameters are counted; nothing of an unknown one."""
    if not model or not formula.presets:
        return {}
    labels = formula.presets().get(catalog.model(model).name)
    if not labels:
        return {}
    own = {p.symbol for p in formula.parameters if p.source == "model"}
    first, *others = labels.values()
    return {n: v for n, v in first.items() if n in own and all(o.get(n) == v for o in others)}


def _label(item: Mapping[str, Any]) -> str:
    """What the label adds: rung, sizes, format and card are shown by the explorer itself."""
    card = item.get("accelerator")
    rung = item["rung"]
    name = catalog.accelerator(card).short_name if card else ""
    known = {rung, word(f"rung_{rung}"), *DTYPES, name}
    parts = [p for p in str(item.get("label") or "").split(", ") if p not in known and not _SIZE.match(p)]
    if not parts and item.get("source"):  # "address (details): table"
        address, _, table = item["source"].rpartition(": ")
        parts = [p for p in (address.split(" ")[0], table) if p]
    return ", ".join(parts)


def merged(series: Iterable[Series], accelerators: Iterable[str]) -> list[Series]:
    """Each series once, without what others published on cards that are not in the picture."""
    cards, kept = set(accelerators), {}
    for one in series:
        if one["rung"] == "published" and one.get("accelerator") not in cards:
            continue
        sizes = {k: v for k, v in one["fixed"].items() if k != "itemsize"}
        kept.setdefault(repr((one["rung"], one.get("accelerator"), sizes, one["points"])), one)
    return list(kept.values())


def _point(formula: Formula, name: Any, item: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    given = {**(item.get("fixed") or {}), **point}
    sizes = {p.symbol: _number(given[p.symbol]) for p in formula.parameters if p.symbol in given}
    for p in formula.parameters:
        # a point's dtype is that of its weights and its cache, too, where nobody says otherwise
        if item.get("dtype") and (p.source == "dtype" or p.symbol in ("weight_itemsize", "kv_itemsize")):
            sizes.setdefault(p.symbol, catalog.itemsize(item["dtype"]))
    needed = [p.symbol for p in formula.arguments if p.source != "accelerator"]
    complete = all(name in sizes for name in needed)
    intensity, rate, seconds = (point.get(k) for k in ("intensity", "flops_per_s", "seconds"))
    if intensity is None and complete and formula.on_roofline:
        intensity = formula.evaluate("intensity", **sizes)
    if rate is None and seconds and complete and "flops" in formula.outputs:
        rate = formula.evaluate("flops", **sizes) / seconds
    value = given.get(formula.value) if formula.value not in ("intensity", "attainable") else None
    if value is None and formula.unit == "s":
        value = seconds
    made = {"intensity": intensity, "rate": rate, "value": value}
    if not any(made.values()):
        raise ValueError(
            f"series {name!r}: point {dict(point)} can't be placed; give intensity, {formula.value}, "
            f"or all of {', '.join(p.symbol for p in formula.parameters if not p.source)}."
        )
    short = {k: float(f"{_number(v):.7g}") for k, v in made.items() if v is not None}
    return {"at": {s: v for s, v in sizes.items()}} | short


def _number(value: Any) -> float | int:
    """A plain, finite Python number from whatever numeric type. Raises ValueError."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not math.isfinite(plain):
        raise ValueError(f"{value!r} is not a finite number.")
    return plain

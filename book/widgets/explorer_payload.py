"""What the explorer's front-end is given: formula code, machines, presets and evidence as JSON."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import sympy
from sympy.printing.mathml import mathml

from book import catalog
from book.formulas.formula import Alias, Formula, Parameter, roof_javascript, symbol
from book.widgets.words import PACES

DTYPES = catalog.RATES  # what a card has a peak for
RUNGS = ("counted", "compiled", "timed", "recorded", "published")
SOURCED = {"accelerator": ("peak", "bandwidth", "capacity"), "dtype": ("itemsize",)}

Series = dict[str, Any]

_SIZE = re.compile(r"\w+ = [\d.,]+\Z")  # "k = 8,192"


def letter(parameter: Parameter | Alias) -> str:
    r"""A parameter's name in plain text: "M" for M, "β" for \beta."""
    name = parameter.latex or parameter.symbol
    if not name.startswith("\\"):
        return name
    try:
        return unicodedata.lookup(f"GREEK SMALL LETTER {name[1:].upper()}")
    except KeyError:
        return parameter.symbol


def _lettered(formula: Formula, expression: sympy.Expr) -> sympy.Expr:
    named = (*formula.parameters, *formula.aliases)
    return expression.xreplace({symbol(p.symbol): sympy.Symbol(letter(p), positive=True) for p in named})


def _plain(formula: Formula, expression: sympy.Expr) -> str:
    """An expression on one line of plain text, as a label in a picture: "2·M/s"."""
    return sympy.sstr(_lettered(formula, expression)).replace("**", "^").replace("*", "·")


def _mathml(formula: Formula, expression: sympy.Expr) -> str:
    """MathML, which every current browser sets by itself."""
    return mathml(sympy.factor_terms(_lettered(formula, expression)), printer="presentation")


def sliders(formula: Formula) -> tuple[Parameter, ...]:
    """The parameters that a reader moves; their ranges are widened to reach every preset."""
    reach: dict[str, set[float]] = {}
    for group in presets(formula).values():
        for sizes in group.values():
            for name, value in sizes.items():
                reach.setdefault(name, set()).add(value)
    return tuple(
        replace(p, low=min([p.low, *reach.get(p.symbol, ())]), high=max([p.high, *reach.get(p.symbol, ())]))
        for p in formula.parameters
        if not p.source
    )


def presets(formula: Formula) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """{model: {layer: {symbol: value}}}, empty where the formula has none."""
    return formula.presets() if formula.presets else {}


def _parameter(p: Parameter) -> dict[str, Any]:
    shared = {"symbol": p.symbol, "letter": letter(p), "label": p.label, "unit": p.unit}
    if p.source:
        if p.symbol not in SOURCED.get(p.source, (p.symbol,)):
            raise ValueError(
                f"parameter {p.symbol}: source {p.source!r} decides only {', '.join(SOURCED[p.source])}; "
                "use one of those symbols, or make it a slider."
            )
        return {**shared, "source": p.source}
    steps = {"steps": list(p.steps)} if p.steps else {}
    return {
        **shared,
        **{"low": p.low, "high": p.high, "scale": p.scale, "integer": p.integer, "source": ""},
        **steps,
    }


def _formula(formula: Formula) -> dict[str, Any]:
    ranges = {p.symbol: p for p in sliders(formula)}
    made = {
        "name": formula.name,
        "title": formula.title,
        "value": formula.value,
        "value_label": formula.value_label or formula.value,
        "preset_kind": formula.preset_kind,
        "unit": formula.unit,
        "mathml": _mathml(formula, formula.stated),
        "aliases": [
            f"<mi>{letter(a)}</mi><mo>=</mo>{_mathml(formula, a.expression)}" for a in formula.aliases
        ],
        "parameters": [_parameter(ranges.get(p.symbol, p)) for p in formula.parameters],
        "code": formula.javascript(),
    }
    if formula.limit is not None:
        made["limit"] = {
            "parameter": formula.limit.parameter,
            "label": f"{_plain(formula, formula.limit.expression)} ({formula.limit.label})",
        }
    if formula.described:
        made["described"] = {n: {"label": o.label, "unit": o.unit} for n, o in formula.described.items()}
        made |= {name: list(getattr(formula, name)) for name in ("readouts", "parts", "beside")}
    for name in ("balance", "timeline"):
        if getattr(formula, name) is not None:
            made[name] = asdict(getattr(formula, name))
    return made


def views(formula: Formula, cards: int) -> list[str]:
    """The pictures that this formula can be drawn as, the one that it is made for first."""
    has = {
        "timeline": formula.timeline is not None,
        "bars": bool(formula.parts),
        "roofline": formula.on_roofline and cards > 0,
        "formula": True,
    }
    return [view for view, there in has.items() if there]


def build(
    id: str, formula: Formula, accelerators: Sequence[catalog.Accelerator], words: Mapping[str, str]
) -> dict[str, Any]:
    """The part of an explorer that never changes, JSON-safe and the same at every build."""
    dtypes = [d for d in DTYPES if any(d in a.peaks for a in accelerators)]
    symbols = _preset_symbols(formula)
    return {
        "id": id,
        "formula": _formula(formula),
        "roof": roof_javascript(),
        "views": views(formula, len(accelerators)),
        "accelerators": [
            {
                "id": a.id,
                "name": a.short_name,
                "bandwidth": float(a.bandwidth),
                "capacity": float(a.driver_bytes or a.capacity),
                "peaks": {d: float(a.peaks[d]) for d in dtypes if d in a.peaks},
            }
            for a in accelerators
        ],
        "itemsize": {d: catalog.itemsize(d) for d in dtypes or DTYPES},
        # lists in the order of `preset_symbols`: the names would be most of the bytes
        "preset_symbols": symbols,
        "presets": {
            group: {label: [sizes.get(s) for s in symbols] for label, sizes in layers.items()}
            for group, layers in presets(formula).items()
        },
        **({"paces": [list(p) for p in PACES]} if formula.timeline else {}),
        "words": dict(words),
    }


def _preset_symbols(formula: Formula) -> list[str]:
    found = {s for layers in presets(formula).values() for sizes in layers.values() for s in sizes}
    return [p.symbol for p in formula.parameters if p.symbol in found]


# ------------------------------------------------------------------------------------- evidence


def published(kind: str, accelerators: Iterable[str]) -> list[Series]:
    """The catalog's published series of one kind, for these accelerators only."""
    wanted = set(accelerators)
    return [
        {
            "rung": "published",
            "label": ", ".join([*(source.key for source in s.sources), s.table]),
            "source": s.source,
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
    if known "accelerator", "dtype", "source", "fixed": {symbol: value}. What a point does not say
    and the formula can is filled in: the intensity at its sizes, and FLOP/s from seconds.
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
    axis = formula.limit.parameter if formula.limit else sliders(formula)[0].symbol
    fixed = {
        name: value
        for name, value in points[0]["at"].items()
        if all(p["at"].get(name) == value for p in points) and (len(points) > 1 or name != axis)
    }
    for p in points:
        p["at"] = {s: v for s, v in p["at"].items() if s not in fixed}
    made = {"rung": item["rung"], "label": _label(item), "fixed": fixed, "points": points}
    return made | {k: item[k] for k in ("accelerator", "dtype", "source") if item.get(k)}


def _label(item: Mapping[str, Any]) -> str:
    """What the label adds: rung, sizes, format and card are shown by the explorer itself."""
    card = item.get("accelerator")
    known = {item["rung"], "timed here", *DTYPES, catalog.accelerator(card).short_name if card else ""}
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
        if item.get("dtype") and p.symbol in ("itemsize", "kv_itemsize"):  # said of both, if not said apart
            sizes.setdefault(p.symbol, catalog.itemsize(item["dtype"]))
    needed = [p.symbol for p in formula.parameters if p.source in ("", "model") or p.symbol == "itemsize"]
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

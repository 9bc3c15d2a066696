"""What the explorer's front-end is given: formula code, machines, presets and evidence as JSON."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import sympy
from sympy.printing.mathml import mathml

from book import catalog
from book.catalog.facts import ACCELERATOR_FACTS, DTYPE_FACTS, FACTS
from book.drawing import number_text
from book.formulas.code_generation import javascript, written_out
from book.formulas.formula import Alias, Formula, Parameter, roof_javascript, symbol
from book.formulas.symbols import plain_letter
from book.formulas.views import Roofline, Shown, Stack, Timeline, Trace, View
from book.say import translated
from book.simulators import trace
from book.widgets.words import PACES, words_for

DTYPES = catalog.RATES  # what a card has a peak for
# Sliders that are something of what a reader serves (`book.widgets.serve`): there an explorer opens.
SERVED = {
    **dict.fromkeys(("batch", "m"), "people"),
    **dict.fromkeys(("context", "length"), "context"),
    "gpus": "cards",
    "weight_itemsize": "weights",
    "kv_itemsize": "cache",
}


def letter(parameter: Parameter | Alias) -> str:
    r"""A parameter's name in plain text: "M" for M, "β" for \beta."""
    return plain_letter(parameter.symbol, parameter.latex)


def named(parameter: Parameter) -> str:
    """What a position calls it: its letter, or words where the letter has an index that text can't set."""
    short = letter(parameter)
    return parameter.label.split(":")[0] if "_" in short else short


def _lettered(formula: Formula, expression: sympy.Expr) -> sympy.Expr:
    named = (*formula.parameters, *formula.aliases)
    return expression.xreplace({symbol(p.symbol): sympy.Symbol(letter(p), positive=True) for p in named})


def _plain(formula: Formula, expression: sympy.Expr) -> str:
    """An expression on one line of plain text, as a label in a picture: "2·M/s"."""
    return sympy.sstr(_lettered(formula, expression)).replace("**", "^").replace("*", "·")


def _mathml(formula: Formula, expression: sympy.Expr) -> str:
    """MathML, which every current browser sets by itself; a minus is one, and no hyphen."""
    shown = written_out(sympy.factor_terms(_lettered(formula, expression)))
    return mathml(shown, printer="presentation").replace("<mo>-</mo>", "<mo>&#8722;</mo>")


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
    if named(p) != letter(p):
        shared["named"] = named(p)
    if p.source:
        known = FACTS.get(p.source, (p.fact,))
        if p.fact not in known:
            raise ValueError(
                f"parameter {p.symbol}: source {p.source!r} decides {', '.join(known)}, not {p.fact!r}; "
                "name one of those as its fact, or make it a slider."
            )
        known_here = {} if math.isnan(p.default) or p.source != "model" else {"default": p.default}
        return {**shared, "source": p.source, "fact": p.fact, **known_here}
    if p.shown_in:
        shared["shown"] = {"unit": p.shown_in, "scale": p.shown_scale}
    return {
        **shared,
        **{"low": p.low, "high": p.high, "scale": p.scale, "integer": p.integer, "source": ""},
        **({"steps": list(p.steps)} if p.steps else {}),
    }


def _formula(formula: Formula) -> dict[str, Any]:
    ranges = {p.symbol: p for p in sliders(formula)}
    made = {
        "name": formula.name,
        "title": formula.title,
        "value": formula.value,
        "preset_kind": formula.preset_kind,
        "unit": formula.unit,
        "mathml": _mathml(formula, formula.stated),
        "aliases": [f"{_set(letter(a))}<mo>=</mo>{_meaning(formula, a)}" for a in formula.aliases],
        "parameters": [_parameter(ranges.get(p.symbol, p)) for p in formula.parameters],
        "code": formula.javascript(),
    }
    if formula.capacity is not None:
        asked = {p.symbol for p in formula.arguments}
        for p in made["parameters"]:
            if p["symbol"] not in asked:
                p["quiet"] = True  # nothing that is shown depends on it but the line on memory
        made["capacity"] = {
            "held": formula.capacity.held,
            "gpus": formula.capacity.gpus,
            "code": {name: javascript(e) for name, e in formula.capacity.outputs.items()},
            "broken": {name: javascript(e) for name, e in formula.capacity.broken.items()},
        }
    if formula.limit is not None:
        made["limit"] = {
            "parameter": formula.limit.parameter,
            "label": f"{_plain(formula, formula.limit.expression)} ({formula.limit.label})",
        }
    return made


def _meaning(formula: Formula, alias: Alias) -> str:
    """What a letter stands for: an expression, a number in its unit, words where it chooses or rounds."""
    if alias.expression.has(sympy.Piecewise, sympy.floor, sympy.Mod):
        return f"<mtext>{html.escape(translated(alias.label))}</mtext>"
    if alias.expression.is_number:
        return f"<mtext>{number_text.si(float(alias.expression), alias.unit)}</mtext>"
    return _mathml(formula, alias.expression)


def _set(letter: str) -> str:
    """A letter in MathML, its index set low."""
    base, _, index = letter.partition("_")
    return f"<msub><mi>{base}</mi><mi>{index}</mi></msub>" if index else f"<mi>{base}</mi>"


def pictures(formula: Formula, cards: int) -> tuple[View, ...]:
    """The views that can be drawn with so many cards, the one that the formula is made for first."""
    return tuple(v for v in formula.pictures if cards or not isinstance(v, Roofline))


def shown_outputs(formula: Formula) -> tuple[Shown, ...]:
    """The outputs that its views call by a label, each once: pictures first, then the read-outs."""
    every = [s for v in (*formula.pictures, formula.readouts) for s in v.shown]
    return tuple({s.output: s for s in every}.values())


def _listed(value: Any) -> Any:
    """As JSON has it: a list for a tuple."""
    return list(value) if isinstance(value, tuple) else value


def _view(formula: Formula, view: View) -> dict[str, Any]:
    """A view as the front-end is given it; a trace with all its runs, and where they were made."""
    if isinstance(view, Trace):
        if unknown := [s for s in view.grid if s not in {p.symbol for p in sliders(formula)}]:
            raise ValueError(f"formula {formula.name}: its trace's grid moves {unknown[0]!r}, no slider.")
        start = {p.symbol: p.default for p in sliders(formula) if p.symbol not in view.grid}
        kinds = {name: asdict(kind) for name, kind in view.kinds.items()}
        compare = [{"measured": name, **asdict(shown)} for name, shown in view.compare.items()]
        shared = {"kind": view.kind, "unit": view.unit, "kinds": kinds, "compare": compare, "at": start}
        return shared | trace.runs(view.simulate, view.grid)
    made = {name: _listed(value) for name, value in asdict(view).items() if value not in (None, "", ())}
    if isinstance(view, Stack) and view.mark:
        made["measured"] = asdict(view.mark)
    if isinstance(view, Timeline):
        made["paces"] = [list(p) for p in PACES]
    return {"kind": view.kind, **made}


CHOICES = ("accelerator", "dtype", "preset", "against", "shown")  # an explorer's dropdowns, by their traits
IN_VIEW = 4  # sliders, where nobody says which of them are used less


def less_used(formula: Formula, names: Sequence[str] | None = None) -> list[str]:
    """The sliders and dropdowns that are folded away: those named, else all after the first four sliders.

    Raises ValueError for a name that is neither.
    """
    movable = [p.symbol for p in sliders(formula)]
    if names is None:
        return movable[IN_VIEW:] + ["shown"] * (len(movable) > 1)
    if unknown := [n for n in names if n not in (*movable, *CHOICES)]:
        raise ValueError(
            f"less_used = {unknown[0]!r}: {formula.name} has the sliders and choices "
            f"{', '.join((*movable, *CHOICES))}; name some of those."
        )
    return list(names)


def build(
    id: str,
    formula: Formula,
    accelerators: Sequence[catalog.Accelerator],
    folded: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The part of an explorer that never changes, JSON-safe and the same at every build.

    folded: as `less_used` takes them.
    """
    dtypes = [d for d in DTYPES if any(d in a.peaks for a in accelerators)]
    symbols = _preset_symbols(formula)
    wanted = {"bandwidth"} | {p.fact for p in formula.parameters}  # a roof needs it where no formula does
    return {
        "id": id,
        "formula": _formula(formula),
        "roof": roof_javascript(),
        "views": [_view(formula, v) for v in pictures(formula, len(accelerators))],
        "readouts": _view(formula, formula.readouts),
        "accelerators": [
            {
                "id": a.id,
                "name": a.short_name,
                "peaks": {d: float(a.peaks[d]) for d in dtypes if d in a.peaks},
                "facts": {
                    name: float(value)
                    for name, fact in ACCELERATOR_FACTS.items()
                    if name in wanted and (value := fact(a, "")) is not None
                },
            }
            for a in accelerators
        ],
        "dtypes": {
            d: {name: fact(d) for name, fact in DTYPE_FACTS.items() if name in wanted}
            for d in dtypes or DTYPES
        },
        # lists in the order of `preset_symbols`: the names would be most of the bytes
        "preset_symbols": symbols,
        "presets": {
            group: {label: [sizes.get(s) for s in symbols] for label, sizes in layers.items()}
            for group, layers in presets(formula).items()
        },
        "more": less_used(formula, folded),
        "serves": {p.symbol: SERVED[p.symbol] for p in sliders(formula) if p.symbol in SERVED},
        "words": words_for(
            (v.kind for v in pictures(formula, len(accelerators))),
            formula.capacity.held if formula.capacity else "",
        ),
    }


def _preset_symbols(formula: Formula) -> list[str]:
    found = {s for layers in presets(formula).values() for sizes in layers.values() for s in sizes}
    return [p.symbol for p in formula.parameters if p.symbol in found]

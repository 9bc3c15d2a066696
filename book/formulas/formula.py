"""A formula with its parameters: stated once in SymPy, printed as LaTeX, run as JavaScript.

The expressions come from `book.cost` and `book.roofline` called with symbols; the sliders' code
comes from the expressions. Nobody types a formula a second time, so the text, the sliders, the
predictions and the tests can't drift apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import sympy
from sympy.printing.latex import LatexPrinter

from book import roofline
from book.cost import Cost
from book.formulas.band import HIGH, LOW, Band, expanded
from book.formulas.capacity import CARDS, Capacity
from book.formulas.code_generation import javascript, numeric, written_out
from book.formulas.symbols import Parameter, plain_letter, symbol
from book.formulas.views import Curve, Readouts, Roofline, View

Presets = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class Limit:
    """What the formula tends to as `parameter` grows small or large, drawn as a dashed line."""

    parameter: str
    expression: sympy.Expr
    label: str


@dataclass(frozen=True)
class Alias:
    """A letter that the text uses for an expression, as W for the bytes of all weights.

    unit: of an expression that is a number, which is shown with it.
    """

    symbol: str
    label: str
    latex: str
    expression: sympy.Expr
    unit: str = ""

    @property
    def sympy(self) -> sympy.Symbol:
        """The letter itself, for expressions that use it; `expression` is put in its place."""
        return symbol(self.symbol)


@dataclass(frozen=True)
class Formula:
    """`outputs[value]` as a function of `parameters`.

    outputs: named SymPy expressions, in the parameters and in `aliases`, which are put in at once. A
    `Band` among them makes three: its expected value has the name, name_low and name_high are its ends.
    A formula that is the cost of an operation has "flops", "bytes" and "intensity", and so can be
    placed on a roofline. value: the output that the chapter is about. unit: its unit; "%" if it is
    a share.
    presets: {group: {label: {symbol: value}}}, made from the catalog, for the dropdown. A group
    with the one label "" is chosen by its own name. preset: the name that gives the "model"
    parameters their values until a reader chooses. preset_kind: what the dropdown is called.

    views: how it is shown (`book.formulas.views`), the view that it is made for first. With no
    picture among them it gets a roofline, if it has an intensity, and a curve.
    capacity: what a position holds in a card's memory. The parameters that only it needs are added at
    the end of `parameters`; `arguments` are those that were given.
    """

    name: str
    title: str
    value: str
    unit: str
    parameters: tuple[Parameter, ...]
    outputs: Mapping[str, sympy.Expr | Band]
    limit: Limit | None = None
    presets: Callable[[], Presets] | None = field(default=None, compare=False)
    preset: str = ""
    preset_kind: Literal["layer", "model", "phase", "engine"] = "layer"
    aliases: tuple[Alias, ...] = ()
    views: tuple[View, ...] = ()
    capacity: Capacity | None = None
    stated: sympy.Expr = field(init=False)
    arguments: tuple[Parameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.value not in self.outputs:
            raise ValueError(f"formula {self.name}: value {self.value!r} is none of {list(self.outputs)}.")
        put_in = {symbol(a.symbol): a.expression for a in self.aliases}
        stated = expanded(self.outputs)
        outputs = {name: e.xreplace(put_in) for name, e in stated.items()}
        object.__setattr__(self, "stated", stated[self.value])
        object.__setattr__(self, "outputs", MappingProxyType(outputs))
        object.__setattr__(self, "arguments", self.parameters)
        if self.capacity is not None:
            own = {p.symbol for p in self.parameters}
            more = tuple(p for p in self.capacity.parameters if p.symbol not in own)
            object.__setattr__(self, "parameters", (*self.parameters, *more))
        known = {p.sympy for p in self.parameters}
        for name, expression in (outputs | self._held()).items():
            if unknown := expression.free_symbols - known:
                raise ValueError(f"formula {self.name}: {name} uses {unknown}, which is no parameter.")
        object.__setattr__(self, "views", self._views())
        for view in self.views:
            for name in view.outputs:
                if name not in outputs:
                    raise ValueError(
                        f"formula {self.name}: the view {view.kind!r} shows {name!r}, "
                        f"which is none of its outputs {list(outputs)}."
                    )
        decided = any(p.source == "model" and math.isnan(p.default) for p in self.parameters)
        if decided and not (self.presets and self.preset):
            raise ValueError(
                f"formula {self.name}: a model decides some parameters; give presets, and preset to start."
            )

    def _views(self) -> tuple[View, ...]:
        """The given views, with the usual pictures if there is none, and with read-outs."""
        given = self.views
        if all(isinstance(v, Readouts) for v in given):
            ends = self.value + LOW, self.value + HIGH
            curve = Curve(*ends) if set(ends) <= self.outputs.keys() else Curve()
            given = (*((Roofline(),) if "intensity" in self.outputs else ()), curve, *given)
        return given if any(isinstance(v, Readouts) for v in given) else (*given, Readouts(self.value))

    def _held(self) -> dict[str, sympy.Expr]:
        """The capacity's expressions, for one card where they count them."""
        if self.capacity is None:
            return {}
        every = {**self.capacity.outputs, **self.capacity.broken}
        return {name: sympy.sympify(e).subs(CARDS, 1) for name, e in every.items()}

    @classmethod
    def of_cost(
        cls, name: str, title: str, cost: Callable[..., Cost], parameters: Sequence[Parameter], **more: Any
    ) -> Formula:
        """The intensity of an operation: calls `cost` once with the parameters' symbols."""
        c = cost(**{p.symbol: p.sympy for p in parameters})
        outputs = {
            "intensity": sympy.cancel(c.intensity),
            "flops": sympy.sympify(c.flops),
            "bytes": sympy.expand(c.bytes),
        }
        if c.sent:
            outputs["sent"] = sympy.factor(c.sent_bytes)
        return cls(name, title, "intensity", "FLOP/byte", tuple(parameters), outputs, **more)

    @property
    def expression(self) -> sympy.Expr:
        """The formula itself."""
        return self.outputs[self.value]

    @property
    def readouts(self) -> Readouts:
        """The numbers that are shown, and what the value is called."""
        return next(v for v in self.views if isinstance(v, Readouts))

    @property
    def pictures(self) -> tuple[View, ...]:
        """The views that are drawn, the one that the formula is made for first."""
        return tuple(v for v in self.views if not isinstance(v, Readouts))

    def view(self, kind: str) -> View | None:
        """The view of this kind, or None."""
        return next((v for v in self.views if v.kind == kind), None)

    @property
    def on_roofline(self) -> bool:
        """Has an intensity, so it can be drawn as a point under a roof."""
        return "intensity" in self.outputs

    def parameter(self, symbol: str) -> Parameter:
        """The parameter of that symbol. Raises KeyError with the known ones."""
        for p in self.parameters:
            if p.symbol == symbol:
                return p
        raise KeyError(
            f"{self.name} has no parameter {symbol!r}; it has {[p.symbol for p in self.parameters]}."
        )

    @property
    def symbols(self) -> dict[str, sympy.Symbol]:
        """Name to SymPy symbol of its arguments, for a derivation in a chapter."""
        return {p.symbol: p.sympy for p in self.arguments}

    def defaults(self) -> dict[str, float]:
        """Every parameter at its start value."""
        chosen = self.preset_values(self.preset) if self.preset else {}
        return {p.symbol: chosen.get(p.symbol, p.default) for p in self.parameters}

    def preset_values(self, name: str) -> Mapping[str, float]:
        """{symbol: value} of a preset, as in "group / label". Raises KeyError with the known ones."""
        presets = self.presets() if self.presets else {}
        group, _, label = name.partition(" / ")
        if label not in presets.get(group, ()):
            known = [preset_name(g, n) for g, labels in presets.items() for n in labels]
            raise KeyError(f"{self.name} has no preset {name!r}; it has {known}.")
        own = {p.symbol for p in self.parameters}
        return {name: value for name, value in presets[group][label].items() if name in own}

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        arguments = [p.sympy for p in self.parameters]
        return {k: numeric(arguments, e) for k, e in self.outputs.items()}

    @cached_property
    def _held_functions(self) -> dict[str, Callable[..., Any]]:
        assert self.capacity is not None
        arguments = [*(p.sympy for p in self.parameters), CARDS]
        every = {**self.capacity.outputs, **self.capacity.broken}
        return {k: numeric(arguments, e) for k, e in every.items()}

    def held(self, cards: float | None = None, **values: Any) -> dict[str, float]:
        """What the capacity's expressions are at these values, on `cards` cards or the slider's number.

        Bytes of one card: needed, weights, there, memory; see `Capacity.outputs`. Raises ValueError for a
        formula that holds nothing, KeyError for a name that is no parameter.
        """
        if self.capacity is None:
            raise ValueError(f"formula {self.name}: it has no weights and no cache that a card must hold.")
        for name in values:
            self.parameter(name)
        at = {**self.defaults(), **values}
        cards = at.get(self.capacity.gpus, 1) if cards is None else cards
        return {
            k: run(*(at[p.symbol] for p in self.parameters), cards) for k, run in self._held_functions.items()
        }

    def evaluate(self, output: str = "", **values: Any) -> Any:
        """One output at these values (numbers or arrays); parameters left out keep their default.

        Raises KeyError for a name that is no parameter or no output.
        """
        for name in values:
            self.parameter(name)
        output = output or self.value
        if output not in self._functions:
            raise KeyError(f"{self.name} has no output {output!r}; it has {list(self.outputs)}.")
        return self._functions[output](*({**self.defaults(), **values}[p.symbol] for p in self.parameters))

    def __call__(self, **values: Any) -> Any:
        """The formula's value."""
        return self.evaluate(**values)

    def latex(self, expression: sympy.Expr | None = None, **others: str) -> str:
        """LaTeX of the formula, or of another expression in its symbols and in `others` (name: LaTeX).

        Factors and terms stand in the order of the letters that a reader sees, as in the explorer.
        """
        named: tuple[Parameter | Alias, ...] = (*self.parameters, *self.aliases)
        called = {p.symbol: p.latex for p in named} | others
        shown = sympy.sympify(self.expression if expression is None else expression)
        nameless = {s for s in shown.free_symbols if s.name not in called}
        lettered, printed = {}, {}
        for name, latex in called.items():
            shown_as = symbol(plain_letter(name, latex))
            while shown_as in printed or shown_as in nameless:  # two symbols with one letter stay two
                shown_as = symbol(f"{shown_as.name}'")
            lettered[symbol(name)], printed[shown_as] = shown_as, latex or name
        return _Latex({"symbol_names": printed}).doprint(written_out(shown.xreplace(lettered)))

    def javascript(self) -> dict[str, str]:
        """Every output, and the limit, as a JavaScript expression of the parameters' symbols."""
        code = {name: javascript(e) for name, e in self.outputs.items()}
        if self.limit is not None:
            code["limit"] = javascript(self.limit.expression)
        return code


class _Latex(LatexPrinter):
    """The arguments of Max and Min in the order that they have in an explorer, which factors them."""

    def _hprint_variadic_function(self, expr: sympy.Expr, exp: str | None = None) -> str:
        inside = sorted(expr.args, key=lambda a: sympy.default_sort_key(sympy.factor_terms(a)))
        made = rf"\{str(expr.func).lower()}\left({', '.join(map(self._print, inside))}\right)"
        return made if exp is None else rf"{made}^{{{exp}}}"

    _print_Min = _print_Max = _hprint_variadic_function


def preset_name(group: str, label: str) -> str:
    """A preset as the dropdown, the link and `explore` know it."""
    return f"{group} / {label}" if label else group


def roof_javascript() -> dict[str, str]:
    """`book.roofline` as JavaScript of intensity, flops, bytes, peak and bandwidth.

    "time_linked" is the time of one rank of several, of `sent` and `link` as well.
    """
    intensity, flops, bytes_, sent, peak, bandwidth, link = map(
        symbol, ("intensity", "flops", "bytes", "sent", "peak", "bandwidth", "link")
    )
    return {
        "ridge": javascript(roofline.ridge(peak, bandwidth)),
        "attainable": javascript(roofline.attainable(intensity, peak, bandwidth)),
        "time": javascript(roofline.time(flops, bytes_, peak, bandwidth)),
        "time_linked": javascript(roofline.time(flops, bytes_, peak, bandwidth, sent, link)),
    }

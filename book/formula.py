"""A formula with its parameters: stated once in SymPy, printed as LaTeX, run as JavaScript.

The expressions come from `book.cost` and `book.roofline` called with symbols; the sliders' code
comes from the expressions. Nobody types a formula a second time, so the text, the sliders, the
predictions and the tests can't drift apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import sympy

from book import roofline
from book.cost import Cost

Scale = Literal["linear", "log2"]
Source = Literal["", "accelerator", "dtype"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Parameter:
    """One symbol of a formula, and how a reader moves it.

    symbol: ASCII name, used in Python and in JavaScript. latex: how it is printed.
    low, high, default: the slider's range and start, in `unit`. scale "log2" walks in doublings.
    source: "accelerator" or "dtype" if a dropdown decides the value and there is no slider.
    """

    symbol: str
    label: str
    default: float
    low: float = 1
    high: float = 1
    unit: str = ""
    latex: str = ""
    scale: Scale = "log2"
    integer: bool = True
    source: Source = ""

    def __post_init__(self) -> None:
        if not _NAME.match(self.symbol):
            raise ValueError(f"parameter symbol {self.symbol!r}: use letters, digits and _ only.")
        if not self.source and not self.low <= self.default <= self.high:
            raise ValueError(
                f"parameter {self.symbol}: default {self.default} lies outside {self.low} to {self.high}."
            )

    @property
    def sympy(self) -> sympy.Symbol:
        """The positive SymPy symbol; equal symbols compare equal everywhere in the book."""
        return symbol(self.symbol)


def symbol(name: str) -> sympy.Symbol:
    """A positive SymPy symbol, as every quantity in this book is."""
    return sympy.Symbol(name, positive=True)


@dataclass(frozen=True)
class Limit:
    """What the formula tends to as `parameter` grows small or large, drawn as a dashed line."""

    parameter: str
    expression: sympy.Expr
    label: str


@dataclass(frozen=True)
class Formula:
    """`outputs[value]` as a function of `parameters`.

    outputs: named SymPy expressions. A formula that is the cost of an operation has "flops",
    "bytes" and "intensity", and so can be placed on a roofline. value: the output that the
    chapter is about. unit: its unit. presets: {group: {label: {symbol: value}}}, made from the
    catalog's models, for the model dropdown.
    """

    name: str
    title: str
    value: str
    unit: str
    parameters: tuple[Parameter, ...]
    outputs: Mapping[str, sympy.Expr]
    limit: Limit | None = None
    value_label: str = ""
    presets: Callable[[], Mapping[str, Mapping[str, Mapping[str, float]]]] | None = field(
        default=None, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", MappingProxyType(dict(self.outputs)))
        if self.value not in self.outputs:
            raise ValueError(f"formula {self.name}: value {self.value!r} is none of {list(self.outputs)}.")
        known = {p.sympy for p in self.parameters}
        for name, expression in self.outputs.items():
            if unknown := expression.free_symbols - known:
                raise ValueError(f"formula {self.name}: {name} uses {unknown}, which is no parameter.")

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
        return cls(name, title, "intensity", "FLOP/byte", tuple(parameters), outputs, **more)

    @property
    def expression(self) -> sympy.Expr:
        """The formula itself."""
        return self.outputs[self.value]

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
        """Name to SymPy symbol, for a derivation in a chapter."""
        return {p.symbol: p.sympy for p in self.parameters}

    def defaults(self) -> dict[str, float]:
        """Every parameter at its start value."""
        return {p.symbol: p.default for p in self.parameters}

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        arguments = [p.sympy for p in self.parameters]
        return {k: sympy.lambdify(arguments, e, "numpy") for k, e in self.outputs.items()}

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
        """LaTeX of the formula, or of another expression in its symbols and in `others` (name: LaTeX)."""
        names = {p.sympy: p.latex or p.symbol for p in self.parameters}
        names |= {symbol(name): latex for name, latex in others.items()}
        return sympy.latex(self.expression if expression is None else expression, symbol_names=names)

    def javascript(self) -> dict[str, str]:
        """Every output, and the limit, as a JavaScript expression of the parameters' symbols."""
        code = {name: javascript(e) for name, e in self.outputs.items()}
        if self.limit is not None:
            code["limit"] = javascript(self.limit.expression)
        return code


def javascript(expression: sympy.Expr) -> str:
    """One SymPy expression as a JavaScript expression. Raises ValueError if SymPy can't print it."""
    try:
        code = sympy.jscode(sympy.sympify(expression), strict=True)
    except NotImplementedError:
        code = "\n"
    if "\n" in code:
        raise ValueError(f"{expression}: SymPy has no one-line JavaScript for this; state it otherwise.")
    return code


def roof_javascript() -> dict[str, str]:
    """`book.roofline` as JavaScript of intensity, flops, bytes, peak and bandwidth."""
    intensity, flops, bytes_, peak, bandwidth = map(
        symbol, ("intensity", "flops", "bytes", "peak", "bandwidth")
    )
    return {
        "ridge": javascript(roofline.ridge(peak, bandwidth)),
        "attainable": javascript(roofline.attainable(intensity, peak, bandwidth)),
        "time": javascript(roofline.time(flops, bytes_, peak, bandwidth)),
    }

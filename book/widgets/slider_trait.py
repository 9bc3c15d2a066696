"""A slider as a trait: a number in a parameter's range, refused in a sentence where it is none."""

from __future__ import annotations

import numbers
from typing import Any

import traitlets

from book.formulas.formula import Parameter


class Position(traitlets.TraitType):
    """A slider's value: a number in the parameter's range, whole where the parameter is."""

    def __init__(self, parameter: Parameter, **more: Any) -> None:
        self.parameter = parameter
        super().__init__(parameter.default, **more)

    def validate(self, obj: Any, value: Any) -> float:
        """The number, or a TraitError whose sentence gives the range."""
        p = self.parameter
        plain = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
        whole = (
            f"a whole number from {p.low:,g} to {p.high:,g}" if p.integer else f"from {p.low:g} to {p.high:g}"
        )
        if p.steps:
            whole = f"one of {', '.join(_told(s, p) for s in p.steps)}"
        known = not p.steps or plain in p.steps
        if (
            isinstance(plain, numbers.Real)
            and not isinstance(plain, bool)
            and p.low <= plain <= p.high
            and known
        ):
            if not p.integer:
                return float(plain)
            if plain == int(plain):
                return int(plain)
        raise traitlets.TraitError(f"{p.symbol} = {value!r}: {p.label} must be {whole}.")


def _told(value: float, p: Parameter) -> str:
    """A step of a slider, with what a reader sees there, if that is something else."""
    return f"{value:g} ({value * p.shown_scale:g} {p.shown_in})" if p.shown_in else f"{value:g}"

"""An output that is no one number: what is expected, between two ends that no run can leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

LOW, HIGH = "_low", "_high"  # how the ends' outputs are called after the band's


@dataclass(frozen=True)
class Band:
    """`expected` on average; never below `low`, never above `high`. A bound is not a mean.

    As an output of a `Formula` it makes three: its own name is the expected value, `name_low` and
    `name_high` are the ends.
    """

    low: sympy.Expr
    expected: sympy.Expr
    high: sympy.Expr

    def outputs(self, name: str) -> dict[str, sympy.Expr]:
        """The three outputs of a band called `name`."""
        return {name: self.expected, name + LOW: self.low, name + HIGH: self.high}

    def at(self, **values: Any) -> tuple[float, float, float]:
        """(low, expected, high) at these values of its symbols.

        Raises ValueError where what is expected lies outside its own bounds: one of the three is wrong.
        """
        put_in: Mapping[str, Any] = {name: sympy.sympify(value) for name, value in values.items()}
        low, expected, high = (
            float(sympy.sympify(e).subs({s: put_in[s.name] for s in sympy.sympify(e).free_symbols}))
            for e in (self.low, self.expected, self.high)
        )
        slack = 1e-12 * max(abs(low), abs(high))  # the ends may be reached
        if not low - slack <= expected <= high + slack:
            raise ValueError(
                f"band at {values}: {expected} is expected, outside {low} to {high}; mend one of the three."
            )
        return low, expected, high


def expanded(outputs: Mapping[str, sympy.Expr | Band]) -> dict[str, sympy.Expr]:
    """The outputs with each band in its three parts. Raises ValueError for a name that is there already."""
    made: dict[str, sympy.Expr] = {}
    for name, output in outputs.items():
        parts = output.outputs(name) if isinstance(output, Band) else {name: output}
        for part, expression in parts.items():
            if part in made or (part != name and part in outputs):
                raise ValueError(f"output {part!r} is there twice: the band {name!r} makes it; rename one.")
            made[part] = sympy.sympify(expression)
    return made

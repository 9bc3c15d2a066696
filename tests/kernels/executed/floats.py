"""Number formats from first principles, in whole numbers and fractions: the oracle of the executed rung.

Nothing here comes from `kernels.evidence.executed`; test_formats.py holds it to struct's and torch's casts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

NAN = "nan"  # any NaN: which one is the card's affair


@dataclass(frozen=True)
class Format:
    """A binary float. infinite: its top exponent means infinities and NaN; without, only all ones is NaN."""

    exponent: int
    mantissa: int
    infinite: bool = True

    @property
    def bits(self) -> int:
        """Of a number, its sign included."""
        return 1 + self.exponent + self.mantissa

    @property
    def _top(self) -> int:
        return (1 << self.exponent) - 1

    @property
    def _bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def largest(self) -> int:
        """The code of the largest finite number."""
        return (self._top << self.mantissa) - 1 if self.infinite else (1 << self.bits - 1) - 2

    def number(self, code: int) -> float:
        """The number of a code, exactly (all of these formats fit into a double)."""
        sign = -1.0 if code >> self.bits - 1 else 1.0
        size = code & (1 << self.bits - 1) - 1
        exponent, mantissa = size >> self.mantissa, size & (1 << self.mantissa) - 1
        if size > self.largest:
            return sign * math.inf if self.infinite and not mantissa else math.nan
        if not exponent:
            return sign * math.ldexp(mantissa, 1 - self._bias - self.mantissa)
        return sign * math.ldexp(mantissa + (1 << self.mantissa), exponent - self._bias - self.mantissa)

    def code(self, value: float | Fraction, *, saturate: bool = False) -> int | str:
        """The code of the nearest number, the even one of two; NAN for a NaN.

        saturate: what is too large becomes the largest finite number (.satfinite), and a NaN is all ones.
        """
        if isinstance(value, float) and math.isnan(value):
            return NAN
        negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
        sign = int(negative) << self.bits - 1
        beyond = sign | (self.largest if saturate or not self.infinite else self.largest + 1)
        if isinstance(value, float) and math.isinf(value):
            return beyond
        exact = abs(Fraction(value))
        if not exact:
            return sign
        power = exact.numerator.bit_length() - exact.denominator.bit_length()
        power -= Fraction(2) ** power > exact
        quantum = max(power, 1 - self._bias) - self.mantissa
        steps = round(exact / Fraction(2) ** quantum)  # to nearest, ties to even
        size = steps + (quantum + self._bias + self.mantissa - 1 << self.mantissa)
        return sign | size if size <= self.largest else beyond


FORMATS = {
    "f16": Format(5, 10),
    "bf16": Format(8, 7),
    "f32": Format(8, 23),
    "f64": Format(11, 52),
    "e4m3": Format(4, 3, infinite=False),
    "e5m2": Format(5, 2),
}


def rounded(kind: str, terms: tuple[float, ...], plus: float | None = None) -> int | str:
    """The product of `terms` (+ `plus`), rounded once to `kind`."""
    rough = math.prod(terms)
    if plus is not None:
        rough += plus
    if rough == 0 or math.isinf(rough) or math.isnan(rough):
        return FORMATS[kind].code(rough)  # nothing to round, and the sign of zero is right
    exact = math.prod(Fraction(term) for term in terms) + (0 if plus is None else Fraction(plus))
    return FORMATS[kind].code(exact)

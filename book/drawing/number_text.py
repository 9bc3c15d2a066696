"""Numbers as people read them: scaled units, and GB that are not GiB.

Code keeps SI base units everywhere; only the functions here scale, and what they return is text.
"""

from __future__ import annotations

import math
from decimal import Decimal

from book.say import say

PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_SYMBOL = {"byte": "B", "bytes": "B", "byte/s": "B/s", "bytes/s": "B/s", "byte/token": "B/token"}
# Units that take a prefix, and the exponents allowed. Nobody says kiloseconds or millibytes.
_RANGE = {
    "s": (-12, 0),
    "Hz": (0, 18),
    "W": (-3, 18),
    "B": (0, 18),
    "B/s": (0, 18),
    "B/token": (0, 18),
    "FLOP": (0, 18),
    "FLOP/s": (0, 18),
    "": (0, 18),
}


def _exponent(value: float, digits: int) -> int:
    """The decimal exponent that `value` has after rounding to `digits` significant digits."""
    return int(f"{value:.{digits - 1}e}".split("e")[1])


def _fixed(value: Decimal, exponent: int, digits: int) -> str:
    return f"{value:,.{max(0, digits - 1 - exponent)}f}".replace("-", "−")


def number(value: float, digits: int = 3) -> str:
    """`value` with at least `digits` significant digits, thousands separated, no powers of ten.

    The digits before the point are never blanked out, and ints are exact:
    2730.67 -> "2,731", 0.33856 -> "0.339", 117440512 -> "117,440,512".
    """
    if isinstance(value, int) or (hasattr(value, "dtype") and value.dtype.kind in "iu"):
        return f"{int(value):,}".replace("-", "−")
    value = float(value)
    if math.isnan(value):
        return say("not a number")
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return "0" if value == 0 else _fixed(Decimal(value), _exponent(value, digits), digits)


def si(value: float, unit: str, digits: int = 3) -> str:
    """Text for a quantity in SI base units, scaled by a prefix: 3.35e12 "B/s" is "3.35 TB/s".

    unit: "B", "B/s", "FLOP", "FLOP/s", "s", "Hz", "W" take a prefix ("byte" is read as "B"), and so
    does "" (a bare count: "1.00 k"). Any other unit, "FLOP/byte" for one, keeps its number as it is.
    Rounds first and picks the prefix after, so 999.96 is "1.00 k" and never "1000". Ints below a
    thousand are exact and keep no decimals.
    """
    unit = _SYMBOL.get(unit, unit)
    if unit not in _RANGE or not math.isfinite(value) or value == 0:
        return f"{number(value, digits)} {unit}".rstrip()
    if isinstance(value, int) and abs(value) < 1000:
        return f"{number(value)} {unit}".rstrip()
    exponent = _exponent(float(value), digits)
    low, high = _RANGE[unit]
    scale = min(max(3 * (exponent // 3), low), high)
    text = _fixed(Decimal(float(value)).scaleb(-scale), exponent - scale, digits)
    return f"{text} {PREFIXES[scale]}{unit}".rstrip()


def gigabytes(bytes: float, digits: int = 3) -> str:
    """Decimal gigabytes, 1e9 bytes, as bandwidths are counted: 80 * 2**30 bytes are "85.9 GB"."""
    return f"{number(float(bytes / 1e9), digits)} GB"


def gibibytes(bytes: float, digits: int = 3) -> str:
    """Binary gibibytes, 2**30 bytes, as memory is made: 80 * 2**30 bytes are "80.0 GiB"."""
    return f"{number(float(bytes / 2**30), digits)} GiB"

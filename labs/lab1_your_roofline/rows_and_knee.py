"""Lab 1: the row count at the ridge, predicted and found, and the mistakes that people make in both."""

from __future__ import annotations

import math
import statistics

from book import roofline
from book.say import say
from labs.kit.question import Draw
from labs.lab1_your_roofline.judges import Formula


def _square(draw: Draw, i: int) -> tuple[float, float, int, int]:
    """Most layers reach the ridge; every third one never does."""
    k, itemsize = int(draw.rng.integers(8, 130)) * 128, (2, 4, 2, 1)[i % 4]
    share = draw.rng.uniform(1.05, 3) if i % 3 == 2 else draw.rng.uniform(0.02, 0.45)
    bandwidth = 10 ** draw.rng.uniform(10.3, 12.9)
    return bandwidth * share * k / itemsize, bandwidth, k, itemsize


def rows(peak: float, bandwidth: float, k: int, itemsize: float) -> float:
    """Rows at which a layer of k by k reaches the ridge: itemsize·I*·k / (2 (k - itemsize·I*)), or infinity.

    From 2mk² / (itemsize (k² + 2mk)) = I*. More rows never bring more than k / itemsize FLOP/byte.
    """
    per_number = itemsize * roofline.ridge(peak, bandwidth)
    return per_number * k / (2 * (k - per_number)) if per_number < k else math.inf


def _activations(count: float):
    def mistaken(f: float, b: float, k: int, s: float) -> float:
        r = s * f / b
        return r * k / (2 * k - count * r) if count * r < 2 * k else math.inf

    return mistaken


ROWS = Formula(
    "rows_to_ridge",
    ("peak", "bandwidth", "k", "itemsize"),
    rows,
    _square,
    (
        (
            say("that is the limit for wide layers. The activations are bytes too: solve the exact formula."),
            lambda f, b, k, s: s * f / b / 2,
        ),
        (
            say("that is the limit for wide layers. The activations are bytes too: solve the exact formula."),
            lambda f, b, k, s: s * f / b / 2 if s * f / b < k else math.inf,
        ),
        (
            say("that is the ridge. It is a row count only at two bytes and in the limit."),
            lambda f, b, k, s: f / b,
        ),
        (say("you counted one of the two activations. x is read, and y is written."), _activations(1)),
        (
            say(
                "right where the ridge is reached. If k is too small no row count reaches it: return "
                "math.inf."
            ),
            lambda f, b, k, s: s * f / b * k / (2 * (k - s * f / b)),
        ),
        (
            say("you used two bytes a number; itemsize says how many there are."),
            lambda f, b, k, s: rows(f, b, k, 2),
        ),
        (say("that is per number, not per byte: itemsize is missing."), lambda f, b, k, s: rows(f, b, k, 1)),
        (
            say("you counted a multiply-add as one operation. It is two."),
            lambda f, b, k, s: rows(2 * f, b, k, s),
        ),
        (
            say("rounded. Leave the number as it comes out of the formula."),
            lambda f, b, k, s: math.ceil(rows(f, b, k, s)) if rows(f, b, k, s) < math.inf else math.inf,
        ),
        (
            say("right where the ridge is reached; for a layer that never reaches it return math.inf."),
            lambda f, b, k, s: 0 if rows(f, b, k, s) == math.inf else rows(f, b, k, s),
        ),
    ),
)

# -------------------------------------------------------------------------------------- the knee


def knee(points: list[tuple[float, float]], middle=statistics.median) -> float:
    """Where the flat time of few rows meets the rising time of many: in rows.

    Flat: the median time of the three fewest rows. Rising: the median time per row of the three most.
    """
    ordered = sorted(points)
    return middle([t for _, t in ordered[:3]]) / middle([t / m for m, t in ordered[-3:]])


def _timings(draw: Draw, i: int) -> tuple[list[list[float]]]:
    """Times of a machine that others use as well: one of three is far too slow, and none are in order.

    Slow at the few-rows end and at the other in turn; the first two calls at the very ends.
    """
    wait, at = 10 ** draw.rng.uniform(-5, -2), 10 ** draw.rng.uniform(1.5, 2.3)
    sizes = [2**e for e in range(13)]
    times = [wait * (1 + (m / at) ** 6) ** (1 / 6) * draw.rng.uniform(0.985, 1.015) for m in sizes]
    slow = int(draw.rng.integers(0, 3)) if i > 1 else 0
    times[slow if i % 2 else -1 - slow] *= draw.rng.uniform(1.7, 2.5)
    order = draw.rng.permutation(len(sizes))
    return ([[sizes[j], float(times[j])] for j in order],)


def _unsorted(points: list) -> float:
    flat, rising = points[:3], points[-3:]
    return statistics.median(t for _, t in flat) / statistics.median(t / m for m, t in rising)


def _ends(points: list) -> float:
    (_, flat), *_, (most, rising) = sorted(points)
    return flat / (rising / most)


KNEE = Formula(
    "knee",
    ("points",),
    knee,
    _timings,
    (
        (
            say("a mean lets one slow run move the knee; take the median of the three."),
            lambda points: knee(points, statistics.mean),
        ),
        (say("the points come in no order; sort them by rows first."), _unsorted),
        (say("one point at each end is at the mercy of one slow run; use three, and their median."), _ends),
        (say("upside down: waiting time over time per row gives rows."), lambda points: 1 / knee(points)),
        (
            say("that is the time of many rows; divide it by the rows to get the time per row."),
            lambda points: knee([(1, t) for _, t in sorted(points)]),
        ),
    ),
    tolerance=0.12,  # of the definition in the lab; others that are as robust come as near
)

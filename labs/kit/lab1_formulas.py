"""Lab 1: the functions that students write, and the mistakes that people make in them."""

from __future__ import annotations

import math
import statistics

from book import cost, roofline
from labs.kit.lab1_calls import Formula
from labs.kit.question import Draw

GIB = 2**30 / 1e9  # a GiB in GB


def _machine(draw: Draw) -> tuple[float, float]:
    """A peak (FLOP/s) and a bandwidth (bytes/s) of some machine, laptop or data centre."""
    bandwidth = 10 ** draw.rng.uniform(10.3, 12.9)
    return bandwidth * draw.rng.uniform(5, 600), bandwidth


def _any_machine(draw: Draw, i: int) -> tuple[float, float]:
    return _machine(draw)


def _intensity(draw: Draw, i: int) -> tuple[float, float, float]:
    """Left of the ridge, right of it, and so on."""
    peak, bandwidth = _machine(draw)
    side = draw.rng.uniform(1.5, 20)
    return peak / bandwidth * (side if i % 2 else 1 / side), peak, bandwidth


def _layer(draw: Draw, i: int) -> tuple[int, int, int, int]:
    m, k, n = (int(draw.rng.integers(low, high)) for low, high in ((1, 5000), (512, 9000), (512, 9000)))
    return m, k, n, (2, 4, 1, 2)[i % 4]


def _vector(draw: Draw, i: int) -> tuple[int, int, float]:
    n = int(draw.rng.integers(2**22, 2**29))
    return n, (4, 2, 1, 4)[i % 4], n / 10 ** draw.rng.uniform(9, 12)


def _product(draw: Draw, i: int) -> tuple[int, int, int, float]:
    m, k, n, _ = _layer(draw, i)
    return m, k, n, m * k * n / 10 ** draw.rng.uniform(10, 14)


def _square(draw: Draw, i: int) -> tuple[float, float, int, int]:
    """Most layers reach the ridge; every third one never does."""
    k, itemsize = int(draw.rng.integers(8, 130)) * 128, (2, 4, 2, 1)[i % 4]
    share = draw.rng.uniform(1.05, 3) if i % 3 == 2 else draw.rng.uniform(0.02, 0.45)
    bandwidth = 10 ** draw.rng.uniform(10.3, 12.9)
    return bandwidth * share * k / itemsize, bandwidth, k, itemsize


# ------------------------------------------------------------------------------------ the roof

RIDGE = Formula(
    "ridge",
    ("peak", "bandwidth"),
    roofline.ridge,
    _any_machine,
    (
        ("upside down: the ridge is FLOP/s over bytes/s, in FLOP/byte.", lambda f, b: b / f),
        ("that is a product; FLOP/byte is FLOP/s divided by bytes/s.", lambda f, b: f * b),
        ("you turned GB into GiB; bandwidth is in bytes/s already.", lambda f, b: f / b * GIB),
        ("you turned GiB into GB; bandwidth is in bytes/s already.", lambda f, b: f / b / GIB),
        ("a multiply-add counts as two operations in peaks too; don't halve it.", lambda f, b: f / b / 2),
        ("the peak is dense as given; don't double it.", lambda f, b: 2 * f / b),
    ),
)

ATTAINABLE = Formula(
    "attainable",
    ("intensity", "peak", "bandwidth"),
    roofline.attainable,
    _intensity,
    (
        ("the larger of the two walls; the lower one is what stops you.", lambda i, f, b: max(f, i * b)),
        ("that is the slope only; right of the ridge the peak is lower.", lambda i, f, b: i * b),
        ("that is the flat roof only; left of the ridge the slope is lower.", lambda i, f, b: f),
        (
            "the slope is intensity times bandwidth: FLOP/byte times bytes/s is FLOP/s.",
            lambda i, f, b: min(f, b / i),
        ),
        (
            "the slope is intensity times bandwidth, not bandwidth alone.",
            lambda i, f, b: min(f, b),
        ),
        (
            "you added the two times up; the roof is what full overlap allows.",
            lambda i, f, b: 1 / (1 / f + 1 / (i * b)),
        ),
        ("that is a share of the peak; give FLOP/s.", lambda i, f, b: min(1, i * b / f)),
    ),
)


def _elements(m: int, k: int, n: int, x: float = 1, w: float = 1, y: float = 1) -> float:
    return x * m * k + w * k * n + y * m * n


LINEAR = Formula(
    "linear_intensity",
    ("m", "k", "n", "itemsize"),
    lambda m, k, n, s: cost.linear(m, k, n, s).intensity,
    _layer,
    (
        (
            "you counted a multiply-add as one operation. It is two.",
            lambda m, k, n, s: m * k * n / (s * _elements(m, k, n)),
        ),
        (
            "you forgot the activations: x is read and y is written, m·k and m·n numbers.",
            lambda m, k, n, s: 2 * m / s,
        ),
        ("that is the limit I = m; the question asks for the exact formula.", lambda m, k, n, s: m),
        (
            "you forgot y: m·n numbers are written.",
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, y=0)),
        ),
        (
            "you forgot x: m·k numbers are read.",
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, x=0)),
        ),
        (
            "you forgot the weight: k·n numbers are read.",
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, w=0)),
        ),
        (
            "y is written once and not read; count it once.",
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, y=2)),
        ),
        (
            "that is per number, not per byte: divide by itemsize too.",
            lambda m, k, n, s: 2 * m * k * n / _elements(m, k, n),
        ),
        (
            "you used two bytes a number; itemsize says how many there are.",
            lambda m, k, n, s: m * k * n / _elements(m, k, n),
        ),
        (
            "multiplied by itemsize: more bytes a number make fewer FLOP/byte, so divide.",
            lambda m, k, n, s: 2 * m * k * n * s / _elements(m, k, n),
        ),
        (
            "upside down: intensity is operations over bytes.",
            lambda m, k, n, s: s * _elements(m, k, n) / (2 * m * k * n),
        ),
    ),
)

# ------------------------------------------------------------------------------------- the rates


def _stream(tensors: int, less: str) -> tuple:
    def rate(count: float):
        return lambda n, s, t: count * n * s / t

    def scaled(unit: float):
        return lambda n, s, t: tensors * n * s / t / unit

    return (
        (less, rate(tensors - 1)),
        ("you counted one tensor too many; nothing is read that the code doesn't name.", rate(tensors + 1)),
        ("only one tensor is counted; count every one that is read or written.", rate(1)),
        ("those are numbers a second; each has itemsize bytes.", lambda n, s, t: tensors * n / t),
        ("those are GB/s; keep SI base units, bytes/s.", scaled(1e9)),
        ("those are GiB/s; keep SI base units, bytes/s.", scaled(2**30)),
        ("you multiplied by the seconds; a rate divides by them.", lambda n, s, t: tensors * n * s * t),
        ("upside down: those are seconds a byte.", lambda n, s, t: t / (tensors * n * s)),
    )


COPY = Formula(
    "copy_rate",
    ("n", "itemsize", "seconds"),
    lambda n, s, t: cost.copy(n, s).bytes / t,
    _vector,
    _stream(2, "you counted the read. A copy writes as many bytes again."),
)
TRIAD = Formula(
    "triad_rate",
    ("n", "itemsize", "seconds"),
    lambda n, s, t: cost.triad(n, s).bytes / t,
    _vector,
    _stream(3, "y = a + 3 b touches three tensors: two are read and one is written."),
)
MATMUL = Formula(
    "linear_rate",
    ("m", "k", "n", "seconds"),
    lambda m, k, n, t: cost.linear(m, k, n).flops / t,
    _product,
    (
        ("you counted a multiply-add as one operation. It is two.", lambda m, k, n, t: m * k * n / t),
        ("those are GFLOP/s; keep SI base units, FLOP/s.", lambda m, k, n, t: 2 * m * k * n / t / 1e9),
        ("those are TFLOP/s; keep SI base units, FLOP/s.", lambda m, k, n, t: 2 * m * k * n / t / 1e12),
        ("you multiplied by the seconds; a rate divides by them.", lambda m, k, n, t: 2 * m * k * n * t),
        ("upside down: those are seconds an operation.", lambda m, k, n, t: t / (2 * m * k * n)),
        (
            "k products need k - 1 adds, that is true; but peaks count whole multiply-adds: 2k.",
            lambda m, k, n, t: m * n * (2 * k - 1) / t,
        ),
        ("those are the numbers that move, not the operations.", lambda m, k, n, t: _elements(m, k, n) / t),
    ),
)

# -------------------------------------------------------------------------------- rows to the ridge


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
            "that is the limit for wide layers. The activations are bytes too: solve the exact formula.",
            lambda f, b, k, s: s * f / b / 2,
        ),
        (
            "that is the ridge. It is a row count only at two bytes and in the limit.",
            lambda f, b, k, s: f / b,
        ),
        ("you counted one of the two activations. x is read, and y is written.", _activations(1)),
        (
            "right where the ridge is reached. If k is too small no row count reaches it: return math.inf.",
            lambda f, b, k, s: s * f / b * k / (2 * (k - s * f / b)),
        ),
        (
            "you used two bytes a number; itemsize says how many there are.",
            lambda f, b, k, s: rows(f, b, k, 2),
        ),
        ("that is per number, not per byte: itemsize is missing.", lambda f, b, k, s: rows(f, b, k, 1)),
        (
            "you counted a multiply-add as one operation. It is two.",
            lambda f, b, k, s: rows(2 * f, b, k, s),
        ),
        (
            "rounded. Leave the number as it comes out of the formula.",
            lambda f, b, k, s: math.ceil(rows(f, b, k, s)) if rows(f, b, k, s) < math.inf else math.inf,
        ),
        (
            "right where the ridge is reached; for a layer that never reaches it return math.inf.",
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
    """Times of a machine that others use as well: two points are far too slow, and none are in order."""
    wait, at = 10 ** draw.rng.uniform(-5, -2), 10 ** draw.rng.uniform(1.5, 2.3)
    sizes = [2**e for e in range(13)]
    times = [wait * (1 + (m / at) ** 6) ** (1 / 6) * draw.rng.uniform(0.985, 1.015) for m in sizes]
    for slow in (int(draw.rng.integers(0, 3)), int(draw.rng.integers(10, 13))):
        times[slow] *= draw.rng.uniform(1.7, 2.5)
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
            "a mean lets one slow run move the knee; take the median of the three.",
            lambda points: knee(points, statistics.mean),
        ),
        ("the points come in no order; sort them by rows first.", _unsorted),
        ("one point at each end is at the mercy of one slow run; use three, and their median.", _ends),
        ("upside down: waiting time over time per row gives rows.", lambda points: 1 / knee(points)),
        (
            "that is the time of many rows; divide it by the rows to get the time per row.",
            lambda points: knee([(1, t) for _, t in sorted(points)]),
        ),
    ),
    tolerance=0.12,  # of the definition in the lab; others that are as robust come as near
)

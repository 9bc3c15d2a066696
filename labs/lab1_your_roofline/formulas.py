"""Lab 1: the roof, the intensity and the rates as functions, and the mistakes that people make in them."""

from __future__ import annotations

from book import cost, roofline
from book.say import say
from labs.kit.question import Draw
from labs.lab1_your_roofline.judges import Formula

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


# ------------------------------------------------------------------------------------ the roof

RIDGE = Formula(
    "ridge",
    ("peak", "bandwidth"),
    roofline.ridge,
    _any_machine,
    (
        (say("upside down: the ridge is FLOP/s over bytes/s, in FLOP/byte."), lambda f, b: b / f),
        (say("that is a product; FLOP/byte is FLOP/s divided by bytes/s."), lambda f, b: f * b),
        (say("you turned GB into GiB; bandwidth is in bytes/s already."), lambda f, b: f / b * GIB),
        (say("you turned GiB into GB; bandwidth is in bytes/s already."), lambda f, b: f / b / GIB),
        (
            say("a multiply-add counts as two operations in peaks too; don't halve it."),
            lambda f, b: f / b / 2,
        ),
        (say("the peak is dense as given; don't double it."), lambda f, b: 2 * f / b),
    ),
)

ATTAINABLE = Formula(
    "attainable",
    ("intensity", "peak", "bandwidth"),
    roofline.attainable,
    _intensity,
    (
        (say("the larger of the two walls; the lower one is what stops you."), lambda i, f, b: max(f, i * b)),
        (say("that is the slope only; right of the ridge the peak is lower."), lambda i, f, b: i * b),
        (say("that is the flat roof only; left of the ridge the slope is lower."), lambda i, f, b: f),
        (
            say("the slope is intensity times bandwidth: FLOP/byte times bytes/s is FLOP/s."),
            lambda i, f, b: min(f, b / i),
        ),
        (
            say("the slope is intensity times bandwidth, not bandwidth alone."),
            lambda i, f, b: min(f, b),
        ),
        (
            say("you added the two times up; the roof is what full overlap allows."),
            lambda i, f, b: 1 / (1 / f + 1 / (i * b)),
        ),
        (say("that is a share of the peak; give FLOP/s."), lambda i, f, b: min(1, i * b / f)),
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
            say("you counted a multiply-add as one operation. It is two."),
            lambda m, k, n, s: m * k * n / (s * _elements(m, k, n)),
        ),
        (
            say("you forgot the activations: x is read and y is written, m·k and m·n numbers."),
            lambda m, k, n, s: 2 * m / s,
        ),
        (say("that is the limit I = m; the question asks for the exact formula."), lambda m, k, n, s: m),
        (
            say("you forgot y: m·n numbers are written."),
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, y=0)),
        ),
        (
            say("you forgot x: m·k numbers are read."),
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, x=0)),
        ),
        (
            say("you forgot the weight: k·n numbers are read."),
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, w=0)),
        ),
        (
            say("y is written once and not read; count it once."),
            lambda m, k, n, s: 2 * m * k * n / (s * _elements(m, k, n, y=2)),
        ),
        (
            say("that is per number, not per byte: divide by itemsize too."),
            lambda m, k, n, s: 2 * m * k * n / _elements(m, k, n),
        ),
        (
            say("you used two bytes a number; itemsize says how many there are."),
            lambda m, k, n, s: m * k * n / _elements(m, k, n),
        ),
        (
            say("multiplied by itemsize: more bytes a number make fewer FLOP/byte, so divide."),
            lambda m, k, n, s: 2 * m * k * n * s / _elements(m, k, n),
        ),
        (
            say("upside down: intensity is operations over bytes."),
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

    one = (say("only one tensor is counted; count every one that is read or written."), rate(1))
    return (
        (less, rate(tensors - 1)),
        *([one] if tensors > 2 else []),
        (
            say("you counted one tensor too many; nothing is read that the code doesn't name."),
            rate(tensors + 1),
        ),
        (say("those are numbers a second; each has itemsize bytes."), lambda n, s, t: tensors * n / t),
        (say("those are GB/s; keep SI base units, bytes/s."), scaled(1e9)),
        (say("those are GiB/s; keep SI base units, bytes/s."), scaled(2**30)),
        (say("you multiplied by the seconds; a rate divides by them."), lambda n, s, t: tensors * n * s * t),
        (say("upside down: those are seconds a byte."), lambda n, s, t: t / (tensors * n * s)),
    )


COPY = Formula(
    "copy_rate",
    ("n", "itemsize", "seconds"),
    lambda n, s, t: cost.copy(n, s).bytes / t,
    _vector,
    _stream(2, say("you counted the read. A copy writes as many bytes again.")),
)
TRIAD = Formula(
    "triad_rate",
    ("n", "itemsize", "seconds"),
    lambda n, s, t: cost.triad(n, s).bytes / t,
    _vector,
    _stream(3, say("y = a + 3 b touches three tensors: two are read and one is written.")),
)
MATMUL = Formula(
    "linear_rate",
    ("m", "k", "n", "seconds"),
    lambda m, k, n, t: cost.linear(m, k, n).flops / t,
    _product,
    (
        (say("you counted a multiply-add as one operation. It is two."), lambda m, k, n, t: m * k * n / t),
        (say("those are GFLOP/s; keep SI base units, FLOP/s."), lambda m, k, n, t: 2 * m * k * n / t / 1e9),
        (say("those are TFLOP/s; keep SI base units, FLOP/s."), lambda m, k, n, t: 2 * m * k * n / t / 1e12),
        (say("you multiplied by the seconds; a rate divides by them."), lambda m, k, n, t: 2 * m * k * n * t),
        (say("upside down: those are seconds an operation."), lambda m, k, n, t: t / (2 * m * k * n)),
        (
            say("k products need k - 1 adds, that is true; but peaks count whole multiply-adds: 2k."),
            lambda m, k, n, t: m * n * (2 * k - 1) / t,
        ),
        (
            say("those are the numbers that move, not the operations."),
            lambda m, k, n, t: _elements(m, k, n) / t,
        ),
    ),
)

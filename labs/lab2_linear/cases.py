"""What lab 2 asks: the matrices that a kernel runs on, stored in every way that a launcher may meet.

`Cases` has a field for each question whose cases differ between what students see (`questions.py`)
and what is hidden (`key.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from book.say import say
from labs.kit.ask_and_answer import Case, Kernel
from labs.kit.question import Draw

DTYPE = np.float16
ITEMSIZE = np.dtype(DTYPE).itemsize
TARGETS = ("sm_80", "sm_90")
ROWS, TRANSPOSED, GAPS = say("by rows"), say("transposed"), say("with gaps")

Sizes = tuple[int, int, int]  # m, k, n
# m, k, n, peak (FLOP/s), bandwidth (bytes/s), itemsize (bytes)
Problem = tuple[int, int, int, float, float, float]


@dataclass(frozen=True)
class Cases:
    """What each question asks, as a function of the draw.

    All but the last two give the launches of a kernel. traffic: the sizes that both the kernel and
    the student's formula for its bytes are asked for. time: what `predicted_seconds` is called with.
    """

    aligned: Callable[[Draw], list[Case]]
    ragged: Callable[[Draw], list[Case]]
    bounds: Callable[[Draw], list[Case]]
    once: Callable[[Draw], list[Case]]
    distinct: Callable[[Draw], list[Case]]
    compiles: Callable[[Draw], list[Case]]
    traffic: Callable[[Draw], list[Sizes]]
    time: Callable[[Draw], list[Problem]]


def matrix(rng: np.random.Generator, rows: int, columns: int, stored: str) -> np.ndarray:
    """Random numbers of variance 1. stored: by rows, transposed, or every other column."""
    if stored == TRANSPOSED:
        return rng.standard_normal((columns, rows)).astype(DTYPE).T
    if stored == GAPS:
        return rng.standard_normal((rows, 2 * columns)).astype(DTYPE)[:, ::2]
    return rng.standard_normal((rows, columns)).astype(DTYPE)


def case(rng: np.random.Generator, m: int, k: int, n: int, x: str = ROWS, w: str = ROWS) -> Case:
    """x[m, k] and w[k, n]."""
    return Case({"m": m, "k": k, "n": n}, {"x": matrix(rng, m, k, x), "w": matrix(rng, k, n, w)})


def cancelling(rng: np.random.Generator, m: int, k: int, n: int) -> Case:
    """A product whose two halves along k nearly cancel, so that a sum in fp16 has no digits left.

    The second half of x is minus the first, and the second half of w is near the first: partial
    sums are some sixty times larger than what is left of them. In fp32 that loses nothing. k is even.
    """
    half = rng.standard_normal((m, k // 2)).astype(DTYPE)
    large = (64 * rng.standard_normal((k // 2, n))).astype(DTYPE)
    near = (large + rng.standard_normal((k // 2, n))).astype(DTYPE)
    inputs = {"x": np.concatenate([half, -half], axis=1), "w": np.concatenate([large, near])}
    return Case({"m": m, "k": 2 * (k // 2), "n": n}, inputs)


def kernel(cases: Iterable[Case], targets: Sequence[str] = ()) -> dict[str, Kernel]:
    """What every question about the kernel asks: `linear`, in these cases."""
    return {"linear": Kernel("linear", tuple(cases), targets=tuple(targets))}


def stored(array: np.ndarray) -> str:
    """How an input lies in memory, in the words above."""
    if array.flags.c_contiguous:
        return ROWS
    return TRANSPOSED if array.flags.f_contiguous else GAPS

"""Lab 2 with hidden cases: the same questions, judged alike, at sizes that are drawn anew.

Sizes are kept small enough that the smallest tiles, 16 by 16 by 16, finish in seconds too.
"""

from __future__ import annotations

from dataclasses import replace

from labs.kit.ask_and_answer import Case
from labs.kit.question import Draw
from labs.lab2_linear import questions
from labs.lab2_linear.cases import GAPS, TRANSPOSED, Cases, Problem, Sizes, cancelling, case
from labs.lab2_linear.predicted_times import floor


def _between(draw: Draw, *ranges: tuple[int, int]) -> tuple[int, ...]:
    """One whole number from each range, both ends included."""
    return tuple(int(draw.rng.integers(low, high + 1)) for low, high in ranges)


def _aligned(draw: Draw) -> list[Case]:
    """None of the visible sizes, so that a kernel for just those gets nothing."""
    k, wide, n = (64 * int(draw.rng.choice(sizes)) for sizes in ((1, 3), (2, 3), (1, 2, 3)))
    return [case(draw.rng, 64, k, wide), case(draw.rng, 32, 128, n)]


def _ragged(draw: Draw) -> list[Case]:
    rng = draw.rng
    return [
        case(rng, *_between(draw, (17, 47), (65, 110), (65, 140))),
        case(rng, *_between(draw, (1, 15), (33, 63), (33, 90)), w=TRANSPOSED),
        case(rng, *_between(draw, (33, 63), (40, 90), (33, 63)), x=TRANSPOSED, w=GAPS),
        cancelling(rng, *_between(draw, (2, 31), (260, 300), (17, 40))),
        case(rng, *_between(draw, (4081, 4096), (17, 31), (3, 15))),
    ]


def _bounds(draw: Draw) -> list[Case]:
    """Just under and just over what tiles are made of."""
    edges = [(a + d) for a in (16, 32, 64) for d in (-1, 1)]
    sizes = [tuple(int(s) for s in draw.rng.choice(edges, 3)) for _ in range(3)]
    tall = (128 + int(draw.rng.choice((-1, 1))), *(int(s) for s in draw.rng.choice((15, 17, 31, 33), 2)))
    return [case(draw.rng, 1, 1, 1), *(case(draw.rng, *size, GAPS, GAPS) for size in (*sizes, tall))]


def _once(draw: Draw) -> list[Case]:
    rows = (1, *_between(draw, (2, 16), (17, 32), (33, 64)))
    k, n = _between(draw, (20, 44), (65, 130))
    return [case(draw.rng, m, 2 * k + 1, n) for m in rows]


def _distinct(draw: Draw) -> list[Case]:
    small = case(draw.rng, *_between(draw, (1, 16), (60, 130), (60, 130)))
    return [small, case(draw.rng, *_between(draw, (65, 130), (65, 100), (65, 100)), w=TRANSPOSED)]


def _compiles(draw: Draw) -> list[Case]:
    return [case(draw.rng, *(16 * size for size in _between(draw, (3, 4), (5, 6), (5, 6))))]


def _traffic(draw: Draw) -> list[Sizes]:
    small = _between(draw, (1, 64), (33, 60), (65, 140))
    return [small, _between(draw, (65, 200), (33, 60), (65, 140))]


def _time(draw: Draw) -> list[Problem]:
    problems = []
    for rows in ((1, 8), (100, 400), (2000, 4096)):
        m, k, n = _between(draw, rows, (1000, 9000), (1000, 9000))
        peak, bandwidth = draw.rng.uniform(5e13, 2e15), draw.rng.uniform(2e11, 6e12)
        problems.append((m, k, n, float(peak), float(bandwidth), int(draw.rng.choice((1, 2, 4)))))
    # and one on each side of the ridge, whatever was drawn
    return [*problems, (4096, 4096, 4096, 1e14, 1e12, 2), (2, 4096, 4096, 1e14, 1e12, 2)]


def answers(variant: int) -> dict[str, float]:
    """The last question's answers in one copy: seconds by accelerator."""
    mine = questions.numbers(variant)
    sizes = (mine["m"], mine["k"], mine["n"])
    return {name: floor(*sizes, one["peak"], one["bandwidth"]) for name, one in mine["cards"].items()}


HIDDEN = Cases(_aligned, _ragged, _bounds, _once, _distinct, _compiles, _traffic, _time)

_QUESTIONS = questions.questions(HIDDEN)
LAB = replace(questions.LAB, questions=_QUESTIONS, together=(questions.about_the_kernel(_QUESTIONS),))

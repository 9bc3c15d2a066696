"""Lab 2, a linear layer in Triton: its questions, the cases that students see, and the numbers of a copy.

`questions(cases)` is the one way in which a lab's questions are made: here with the visible cases,
whose sizes are fixed so that a student can think about them, in `key.py` with hidden ones at sizes
drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from book import catalog, cost
from book.say import say
from labs.kit.ask_and_answer import Ask, Calls, Case, Values
from labs.kit.lab import Lab
from labs.kit.question import Draw, Question
from labs.lab2_linear import judges, predicted_times
from labs.lab2_linear.cases import GAPS, TARGETS, TRANSPOSED, Cases, Problem, Sizes, cancelling, case, kernel

# The files of kernels/ that do what this lab asks for. Students' copies lack them, and what imports them.
SOLVED_BY = ("linear", "matmul")

# ---------------------------------------------------------------------------- numbers of a copy

ROWS, WIDTHS = (128, 192, 256), (8192, 16384)  # where published times exist
MEASURED = ("h100_sxm", "h200_sxm")
OTHERS = ("t4", "l4", "a10g", "rtx4090", "l40s", "a100_80gb_sxm", "b200", "mi300x")


def numbers(variant: int) -> dict[str, Any]:
    """m, k, n and the five accelerators of the last question, {id: {"name", "peak", "bandwidth"}}.

    At those sizes some of the five wait for memory and some compute. Variant 0 is the book's own.
    """
    m, width, chosen = 256, 8192, ("l4", "a100_80gb_sxm", *MEASURED, "b200")
    rng = np.random.default_rng(variant)
    while variant:
        m, width = int(rng.choice(ROWS)), int(rng.choice(WIDTHS))
        picked = {*MEASURED, *rng.choice(OTHERS, 3, replace=False).tolist()}
        chosen = [name for name in (*MEASURED, *OTHERS) if name in picked]
        ridges = [_facts(name)["peak"] / _facts(name)["bandwidth"] for name in chosen]
        if min(ridges) < cost.linear(m, width, width).intensity < max(ridges):
            break
    return {"m": m, "k": width, "n": width, "cards": {name: _facts(name) for name in chosen}}


def _facts(name: str) -> dict[str, Any]:
    """What a prediction needs: FLOP/s in 16 bits, dense, and bytes/s."""
    card = catalog.accelerator(name)
    peak = card.peaks.get("bf16") or card.peak("fp16")
    return {"name": card.short_name, "peak": peak, "bandwidth": card.bandwidth}


# ---------------------------------------------------------------------------- the visible cases


def _aligned(draw: Draw) -> list[Case]:
    return [case(draw.rng, 64, 128, 128), case(draw.rng, 16, 64, 192)]


def _ragged(draw: Draw) -> list[Case]:
    return [
        case(draw.rng, 17, 100, 130),
        case(draw.rng, 1, 37, 70, w=TRANSPOSED),
        case(draw.rng, 40, 72, 50, x=TRANSPOSED, w=GAPS),
        cancelling(draw.rng, 20, 270, 33),
        case(draw.rng, 4093, 29, 13),
    ]


def _bounds(draw: Draw) -> list[Case]:
    sizes = [(15, 17, 31), (65, 63, 33), (31, 33, 65), (129, 15, 17)]
    return [case(draw.rng, 1, 1, 1), *(case(draw.rng, *s, GAPS, GAPS) for s in sizes)]


def _once(draw: Draw) -> list[Case]:
    return [case(draw.rng, m, 72, 100) for m in (1, 16, 17, 64)]


def _distinct(draw: Draw) -> list[Case]:
    return [case(draw.rng, 16, 96, 128), case(draw.rng, 100, 90, 70, w=TRANSPOSED)]


def _compiles(draw: Draw) -> list[Case]:
    return [case(draw.rng, 64, 64, 64)]


def _traffic(draw: Draw) -> list[Sizes]:
    return [(16, 64, 192), (64, 50, 130), (150, 40, 100)]


def _time(draw: Draw) -> list[Problem]:
    h100 = (_facts("h100_sxm")["peak"], _facts("h100_sxm")["bandwidth"])
    a100 = (_facts("a100_80gb_sxm")["peak"], _facts("a100_80gb_sxm")["bandwidth"])
    return [
        (1, 4096, 14336, *h100, 2),
        (4096, 4096, 14336, *h100, 2),
        (300, 8192, 8192, *a100, 2),
        (16, 8192, 8192, *a100, 1),
    ]


VISIBLE = Cases(_aligned, _ragged, _bounds, _once, _distinct, _compiles, _traffic, _time)

# ------------------------------------------------------------------------------- the questions

_KERNEL = ("lab2-kernel", "lab2-launcher")


def questions(cases: Cases) -> tuple[Question, ...]:
    """All questions with these cases, in the notebook's order."""

    def traffic(draw: Draw) -> Mapping[str, Ask]:
        sizes = cases.traffic(draw)
        return {
            **kernel(case(draw.rng, *size) for size in sizes),
            "traffic": Calls("traffic", tuple(sizes)),
        }

    def time(draw: Draw) -> Mapping[str, Ask]:
        return {"predicted_seconds": Calls("predicted_seconds", tuple(cases.time(draw)))}

    def predictions(draw: Draw) -> Mapping[str, Ask]:
        return {"predictions": Values(("predictions",))}

    def launched(made: Callable[[Draw], list[Case]], targets: tuple[str, ...] = ()) -> Callable:
        return lambda draw: kernel(made(draw), targets)

    return (
        Question(
            "lab2-aligned",
            say("Right where tiles divide the sizes"),
            _KERNEL,
            launched(cases.aligned),
            judges.product,
        ),
        Question(
            "lab2-ragged",
            say("Right at any sizes and strides"),
            _KERNEL,
            launched(cases.ragged),
            judges.product,
        ),
        Question(
            "lab2-bounds",
            say("Touches nothing outside the tensors"),
            _KERNEL,
            launched(cases.bounds),
            judges.bounds,
        ),
        Question("lab2-once", say("Up to 64 rows"), _KERNEL, launched(cases.once), judges.once),
        Question("lab2-bytes", say("Distinct bytes"), _KERNEL, launched(cases.distinct), judges.distinct),
        Question(
            "lab2-traffic",
            say("Bytes asked for"),
            (*_KERNEL, "lab2-traffic-code"),
            traffic,
            judges.own_traffic,
        ),
        Question(
            "lab2-compiles",
            say("Compiles for real chips"),
            _KERNEL,
            launched(cases.compiles, TARGETS),
            judges.compiles,
        ),
        Question(
            "lab2-time", say("The floor of the time"), ("lab2-time-code",), time, predicted_times.function
        ),
        Question(
            "lab2-predictions",
            say("Five accelerators"),
            ("lab2-time-code", "lab2-predictions-code"),
            predictions,
            predicted_times.predictions,
        ),
    )


def about_the_kernel(made: tuple[Question, ...]) -> tuple[str, ...]:
    """The ids of those that look at the kernel."""
    return tuple(q.id for q in made if "lab2-kernel" in q.needs)


_QUESTIONS = questions(VISIBLE)
# Starting processes takes longer than running these; compiling takes longer still, so it waits for its turn.
_TOGETHER = tuple(id for id in about_the_kernel(_QUESTIONS) if id != "lab2-compiles")

LAB = Lab("lab2-linear", _QUESTIONS, numbers, together=(_TOGETHER,))

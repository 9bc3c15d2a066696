"""Lab 2, a linear layer in Triton: its questions, its numbers, and what its notebook calls.

The questions here have fixed sizes, so that a student can think about them. The grader asks the same
at sizes drawn anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from book import catalog, cost
from labs.kit import lab2_judges as judges
from labs.kit import lab2_times as times
from labs.kit.asks import Ask, Calls, Values
from labs.kit.lab import Lab
from labs.kit.lab2_cases import GAPS, TARGETS, TRANSPOSED, cancelling, case, kernel
from labs.kit.lab2_here import cards, count, reveal, roofs, timed
from labs.kit.question import Draw, Question

__all__ = ["LAB", "cards", "count", "numbers", "reveal", "roofs", "timed"]

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


# ------------------------------------------------------------------------------- the questions


def _aligned(draw: Draw) -> Mapping[str, Ask]:
    return kernel([case(draw.rng, 64, 128, 128), case(draw.rng, 16, 64, 192)])


def _ragged(draw: Draw) -> Mapping[str, Ask]:
    return kernel(
        [
            case(draw.rng, 17, 100, 130),
            case(draw.rng, 1, 37, 70, w=TRANSPOSED),
            case(draw.rng, 40, 72, 50, x=TRANSPOSED, w=GAPS),
            cancelling(draw.rng, 20, 270, 33),
            case(draw.rng, 4093, 29, 13),
        ]
    )


def _bounds(draw: Draw) -> Mapping[str, Ask]:
    sizes = [(15, 17, 31), (65, 63, 33), (31, 33, 65), (129, 15, 17)]
    return kernel([case(draw.rng, 1, 1, 1), *(case(draw.rng, *s, GAPS, GAPS) for s in sizes)])


def _once(draw: Draw) -> Mapping[str, Ask]:
    return kernel(case(draw.rng, m, 72, 100) for m in (1, 16, 17, 64))


def _distinct(draw: Draw) -> Mapping[str, Ask]:
    return kernel([case(draw.rng, 16, 96, 128), case(draw.rng, 100, 90, 70, w=TRANSPOSED)])


def _traffic(draw: Draw) -> Mapping[str, Ask]:
    return own_traffic(draw, [(16, 64, 192), (64, 50, 130), (150, 40, 100)])


def own_traffic(draw: Draw, sizes: list[tuple[int, int, int]]) -> Mapping[str, Ask]:
    """Asks the kernel and the formula `traffic` for the same sizes."""
    return {
        **kernel(case(draw.rng, *size) for size in sizes),
        "traffic": Calls("traffic", tuple(sizes)),
    }


def _compiles(draw: Draw) -> Mapping[str, Ask]:
    return kernel([case(draw.rng, 64, 64, 64)], TARGETS)


def _time(draw: Draw) -> Mapping[str, Ask]:
    h100 = (_facts("h100_sxm")["peak"], _facts("h100_sxm")["bandwidth"])
    a100 = (_facts("a100_80gb_sxm")["peak"], _facts("a100_80gb_sxm")["bandwidth"])
    return predicted(
        [(1, 4096, 14336, *h100, 2), (4096, 4096, 14336, *h100, 2), (300, 8192, 8192, *a100, 2)]
        + [(16, 8192, 8192, *a100, 1)]
    )


def predicted(problems: list[times.Problem]) -> Mapping[str, Ask]:
    """Asks `predicted_seconds` for these problems."""
    return {"predicted_seconds": Calls("predicted_seconds", tuple(problems))}


def _predictions(draw: Draw) -> Mapping[str, Ask]:
    return {"predictions": Values(("predictions",))}


_KERNEL = ("lab2-kernel", "lab2-launcher")

QUESTIONS = (
    Question("lab2-aligned", "Right where tiles divide the sizes", _KERNEL, _aligned, judges.product),
    Question("lab2-ragged", "Right at any sizes and strides", _KERNEL, _ragged, judges.product),
    Question("lab2-bounds", "Touches nothing outside the tensors", _KERNEL, _bounds, judges.bounds),
    Question("lab2-once", "Up to 64 rows", _KERNEL, _once, judges.once),
    Question("lab2-bytes", "Distinct bytes", _KERNEL, _distinct, judges.distinct),
    Question(
        "lab2-traffic",
        "Bytes asked for",
        (*_KERNEL, "lab2-traffic-code"),
        _traffic,
        judges.own_traffic,
    ),
    Question("lab2-compiles", "Compiles for real chips", _KERNEL, _compiles, judges.compiles),
    Question("lab2-time", "The floor of the time", ("lab2-time-code",), _time, times.function),
    Question(
        "lab2-predictions",
        "Five accelerators",
        ("lab2-time-code", "lab2-predictions-code"),
        _predictions,
        times.predictions,
    ),
)

# Starting processes takes longer than running these; compiling takes longer still, so it waits for its turn.
_TOGETHER = tuple(q.id for q in QUESTIONS if "lab2-kernel" in q.needs and q.id != "lab2-compiles")

LAB = Lab("lab2-linear", QUESTIONS, numbers, (_TOGETHER,))

"""Lab 1, "Your roofline": its questions with the cases that students see, and the numbers of a copy."""

from __future__ import annotations

from labs.kit import bench, lab1_calls, lab1_dial, lab1_formulas, lab1_ridge, lab1_values
from labs.kit.lab import Lab
from labs.kit.lab1_values import cards_table, numbers
from labs.kit.question import Question

__all__ = ["LAB", "bench", "cards_table", "numbers", "questions"]

# (id, title, solution cells, functions)
_FUNCTIONS = (
    ("lab1-roof", "The roof", ("lab1-roof-code",), (lab1_formulas.RIDGE, lab1_formulas.ATTAINABLE)),
    ("lab1-intensity", "The intensity of a linear layer", ("lab1-intensity-code",), (lab1_formulas.LINEAR,)),
    (
        "lab1-rates",
        "From seconds to rates",
        ("lab1-rates-code",),
        (lab1_formulas.COPY, lab1_formulas.TRIAD, lab1_formulas.MATMUL),
    ),
    ("lab1-rows", "Rows to the ridge", ("lab1-rows-code",), (lab1_ridge.ROWS,)),
    ("lab1-knee", "The knee in a list of times", ("lab1-knee-code",), (lab1_ridge.KNEE,)),
)


def questions(
    calls: int, sizes: tuple[tuple[int, int], ...], links: tuple[int, ...], targets: tuple[str, ...] = ()
) -> tuple[Question, ...]:
    """All questions, in the notebook's order.

    calls: of each function. sizes, links: of the dial's cases; a size is drawn from a range.
    targets: chips that the dial is compiled for.
    """
    functions = {
        id: Question(id, title, needs, lab1_calls.asks(formulas, calls), lab1_calls.judge(formulas))
        for id, title, needs, formulas in _FUNCTIONS
    }
    dial = Question(
        "lab1-dial",
        "The intensity dial",
        ("lab1-dial-code",),
        lab1_dial.asks(sizes, links, targets),
        lab1_dial.judge,
    )
    own = Question(
        "lab1-own",
        "Your machine in six numbers",
        ("lab1-roof-code", "lab1-rows-code", "lab1-own-code"),
        lab1_values.ask_own,
        lab1_values.judge_own,
    )
    cards = Question(
        "lab1-cards",
        "One layer on four cards",
        ("lab1-roof-code", "lab1-intensity-code", "lab1-cards-code"),
        lab1_values.ask_floors,
        lab1_values.judge_floors,
    )
    first = [functions[id] for id in ("lab1-roof", "lab1-intensity", "lab1-rates")]
    return (*first, dial, functions["lab1-rows"], functions["lab1-knee"], own, cards)


LAB = Lab("lab1-your-roofline", questions(6, ((4096, 4096), (900, 1100)), (1, 6)), numbers)

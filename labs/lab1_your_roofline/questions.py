"""Lab 1, "Your roofline": its questions, and the cases that students see.

`questions(cases)` is the one way in which a lab's questions are made: here with the visible cases,
in `key.py` with the hidden ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from book.say import say
from labs.kit.lab import Lab
from labs.kit.question import Question
from labs.lab1_your_roofline import dial, formulas, judges, rows_and_knee, typed_numbers

# The files of kernels/ that do what this lab asks for. Students' copies lack them, and what imports them.
SOLVED_BY = ("fma_chain",)

# (id, title, solution cells, functions)
_FUNCTIONS = (
    ("lab1-roof", say("The roof"), ("lab1-roof-code",), (formulas.RIDGE, formulas.ATTAINABLE)),
    ("lab1-intensity", say("The intensity of a linear layer"), ("lab1-intensity-code",), (formulas.LINEAR,)),
    (
        "lab1-rates",
        say("From seconds to rates"),
        ("lab1-rates-code",),
        (formulas.COPY, formulas.TRIAD, formulas.MATMUL),
    ),
    ("lab1-rows", say("Rows to the ridge"), ("lab1-rows-code",), (rows_and_knee.ROWS,)),
    ("lab1-knee", say("The knee in a list of times"), ("lab1-knee-code",), (rows_and_knee.KNEE,)),
)


@dataclass(frozen=True)
class Cases:
    """What is asked. calls: of each function. sizes, links: of the dial; a size is drawn from a range.

    targets: chips that the dial is compiled for.
    """

    calls: int
    sizes: tuple[tuple[int, int], ...]
    links: tuple[int, ...]
    targets: tuple[str, ...] = ()


def questions(cases: Cases) -> tuple[Question, ...]:
    """All questions with these cases, in the notebook's order."""
    functions = {
        id: Question(id, title, needs, judges.asks(asked, cases.calls), judges.judge(asked))
        for id, title, needs, asked in _FUNCTIONS
    }
    turned = Question(
        "lab1-dial",
        say("The intensity dial"),
        ("lab1-dial-code",),
        dial.asks(cases.sizes, cases.links, cases.targets),
        dial.judge,
    )
    own = Question(
        "lab1-own",
        say("Your machine in six numbers"),
        ("lab1-roof-code", "lab1-rows-code", "lab1-own-code"),
        typed_numbers.ask_own,
        typed_numbers.judge_own,
    )
    cards = Question(
        "lab1-cards",
        say("One layer on four cards"),
        ("lab1-roof-code", "lab1-intensity-code", "lab1-cards-code"),
        typed_numbers.ask_floors,
        typed_numbers.judge_floors,
    )
    first = [functions[id] for id in ("lab1-roof", "lab1-intensity", "lab1-rates")]
    return (*first, turned, functions["lab1-rows"], functions["lab1-knee"], own, cards)


VISIBLE = Cases(calls=6, sizes=((4096, 4096), (900, 1100)), links=(1, 6))

LAB = Lab("lab1-your-roofline", questions(VISIBLE), typed_numbers.numbers)

"""One number in circulation: what is printed, what it is, and the verdict that follows."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

from book.claims.printed import last_digit, quantity
from book.drawing import number_text
from book.say import say

# Kinds of places where a number was seen. No row names a person.
PLACES = {
    "blog": say("a blog"),
    "calculator": say("a calculator"),
    "column": say("a column"),
    "course": say("a course"),
    "documentation": say("documentation"),
    "draft": say("a draft of a standard"),
    "forum": say("a forum"),
    "issue": say("a thread on GitHub"),
    "paper": say("a paper"),
    "vendor": say("a seller's page"),
}


@dataclass(frozen=True)
class Claim:
    """One row of the ledger.

    printed: the number as people print it, in their words ("42.1 ms", "more than 1", "8 times").
    exact: computes it, in SI units; shares are fractions. why: the reason for the verdict.
    slip: a known mistake, made on purpose, that gives the printed number.
    number, unit: what `printed` means, where its words don't say, or not exactly enough for the slip.
    above: the claim is that something exceeds the printed number ("more than" says so, too).
    tolerance: relative difference up to which a printed number counts as right; half of its last digit
    always does.
    seen: the kind of place where it was seen, a key of PLACES; link: its address, "" if it has none.
    chapter: set by the ledger, which takes no claim that was seen nowhere.
    """

    verdict: Literal["right", "wrong"]
    id: str
    statement: str
    printed: str
    exact: Callable[[], float]
    why: str
    slip: Callable[[], float] | None = None
    number: float | None = None
    unit: str | None = None
    above: bool = False
    tolerance: float = 0.01
    seen: str = ""
    link: str = ""
    chapter: str = ""

    def __post_init__(self) -> None:
        said = quantity(self.printed)
        if self.number is None and said.number is None:
            raise ValueError(
                f"claim {self.id!r}: printed = {self.printed!r}: holds no number; give number=, in SI units."
            )
        if self.seen and self.seen not in PLACES:
            raise ValueError(
                f"claim {self.id!r}: seen = {self.seen!r}: no kind of place; use one of {', '.join(PLACES)}."
            )
        if self.link and not self.link.startswith("https://"):
            raise ValueError(f"claim {self.id!r}: link = {self.link!r}: give a whole address, https://...")
        for name, value in (("number", said.number), ("unit", said.unit)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "above", self.above or said.above)

    def judged(self) -> str:
        """The verdict that the numbers give now."""
        exact = self.exact()
        if self.above:
            return "right" if exact > self.number else "wrong"
        allowed = max(self.tolerance * abs(exact), last_digit(self.printed) / 2 * abs(self.number))
        return "right" if abs(self.number - exact) <= allowed * (1 + 1e-9) else "wrong"

    def exact_text(self) -> str:
        """The exact value, computed now, for people."""
        value = float(self.exact())
        if self.unit == "%":
            return f"{number_text.number(100 * value)} %"
        if self.unit == "byte":  # to the last one
            return f"{number_text.number(int(value))} B"
        return number_text.si(int(value) if value == int(value) and value < 1e6 else value, self.unit, 4)

    def expression(self) -> str:
        """What `exact` computes, as it is written in the ledger: 'card("t4").ridge("fp16")'."""
        code = self.exact.__code__
        start = min((line, column) for line, _, column, _ in code.co_positions() if column)
        return _lambdas(Path(code.co_filename))[start]


right, wrong = partial(Claim, "right"), partial(Claim, "wrong")


@lru_cache(maxsize=64)
def _lambdas(path: Path) -> dict[tuple[int, int], str]:
    """(line, column) where the body of a lambda starts -> its text, on one line."""
    source = path.read_text(encoding="utf-8")
    found = [node.body for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Lambda)]
    return {(n.lineno, n.col_offset): " ".join(ast.get_source_segment(source, n).split()) for n in found}

"""Reading claims.yaml, recomputing its rows, and showing them."""

from __future__ import annotations

import html
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from book.catalog.names import nearest
from book.catalog.rows import Row, read, rows
from book.claims.registry import EXPRESSIONS
from book.drawing import number_text
from book.drawing.sortable import Cell, Heading, Html, sortable

PATH = Path(__file__).parents[1] / "catalog" / "claims.yaml"
VERDICTS = ("right", "wrong")
RELATIONS = ("equals", "above")


@dataclass(frozen=True)
class Expression:
    """A registered function and its arguments."""

    name: str
    inputs: Mapping[str, Any]

    def __call__(self) -> float:
        """The value, computed now, in SI units."""
        return float(EXPRESSIONS[self.name](**self.inputs))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k} = {v}' for k, v in self.inputs.items())})"


@dataclass(frozen=True)
class Claim:
    """One number in circulation, checked.

    printed, printed_text: the number as people print it, in SI units and in their words.
    exact: what `expression` gave when the row was written; a test computes it again.
    relation: "equals", or "above" for claims that something exceeds the printed number.
    tolerance: relative difference up to which a printed number counts as right.
    slip: a known mistake that gives the printed number. why: the verdict's reason.
    """

    id: str
    chapter: str
    statement: str
    expression: Expression
    unit: str
    printed: float
    printed_text: str
    exact: float
    relation: str
    tolerance: float
    verdict: Literal["right", "wrong"]
    why: str
    slip: Expression | None

    def judged(self) -> str:
        """The verdict that the numbers give now."""
        exact = self.expression()
        if self.relation == "above":
            return "right" if exact > self.printed else "wrong"
        return "right" if abs(self.printed - exact) <= self.tolerance * abs(exact) else "wrong"

    def exact_text(self) -> str:
        """The exact value, computed now, for people."""
        value = self.expression()
        if self.unit == "%":
            return f"{number_text.number(100 * value)} %"
        if self.unit == "byte":  # to the last one
            return f"{number_text.number(int(value))} B"
        return number_text.si(int(value) if value == int(value) and value < 1e6 else value, self.unit, 4)


@lru_cache(maxsize=4)
def claims(path: Path = PATH) -> tuple[Claim, ...]:
    """All claims in the order of the file. Raises CatalogError for a row that can't be right."""
    return tuple(_claim(row) for row in rows(read(path), "claims", path))


def _claim(row: Row) -> Claim:
    slip = row.row("slip", optional=True)
    made = Claim(
        id=row.text("id"),
        chapter=row.text("chapter"),
        statement=row.text("statement"),
        expression=_expression(row),
        unit=row.text("unit", optional=True),
        printed=row.number("printed", zero=True),
        printed_text=row.text("printed_text"),
        exact=row.number("exact"),
        relation=row.choice("relation", RELATIONS, optional=True) or "equals",
        tolerance=row.number("tolerance", optional=True) or 0.005,
        verdict=row.choice("verdict", VERDICTS),
        why=row.text("why"),
        slip=None if slip is None else _expression(slip),
    )
    row.finish()
    if slip is not None:
        slip.finish()
    return made


def _expression(row: Row) -> Expression:
    name, inputs = row.text("expression"), row.row("inputs")
    if name not in EXPRESSIONS:
        close = nearest(name, list(EXPRESSIONS))
        row.refuse("expression", name, f"no such expression; the nearest: {', '.join(close)}.")
    signature = inspect.signature(EXPRESSIONS[name])
    try:
        signature.bind(**inputs.data)
    except TypeError as error:
        row.refuse("inputs", dict(inputs.data), f"{error}; {name} takes {', '.join(signature.parameters)}.")
    return Expression(name, MappingProxyType(dict(inputs.data)))


def table(chapter: str = "") -> Html:
    """Numbers in circulation, checked: all, or those of one chapter ("05"). Exact values computed now.

    Raises ValueError for a chapter that has none.
    """
    chosen = [c for c in claims() if chapter in ("", c.chapter)]
    if not chosen:
        there = ", ".join(sorted({c.chapter for c in claims()}))
        raise ValueError(f"chapter = {chapter!r}: no claims; there are some for {there}.")
    headings = (
        Heading("claim", numeric=False),
        Heading("chapter", numeric=False),
        Heading("as printed", numeric=False),
        Heading("exact", numeric=False, title="computed when this page was built"),
        Heading("verdict", numeric=False),
        Heading("why", numeric=False),
    )
    return sortable(headings, map(_row, chosen), "Numbers in circulation, checked")


def _row(claim: Claim) -> tuple[Cell, ...]:
    def wrapped(text: str) -> str:
        style = "white-space:normal;min-width:min(14em,36vw);max-width:26em"
        return f'<div style="{style}">{html.escape(text)}</div>'

    verdict = claim.judged()
    shown = f'<span class="trap">{verdict}</span>' if verdict == "wrong" else verdict
    return (
        Cell(wrapped(claim.statement), claim.statement),
        Cell(claim.chapter, claim.chapter),
        Cell(html.escape(claim.printed_text), claim.printed_text),
        Cell(f'<span title="{html.escape(str(claim.expression))}">{html.escape(claim.exact_text())}</span>'),
        Cell(shown, verdict),
        Cell(wrapped(claim.why), claim.why),
    )

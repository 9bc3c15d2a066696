"""The ledger: every chapter's claims, found by looking, and the table of them."""

from __future__ import annotations

import html
import importlib
import pkgutil
import re
from dataclasses import replace
from functools import lru_cache

import book.claims
from book.claims.claim import PLACES, Claim
from book.drawing.tables import Cell, Heading, Html, sortable
from book.say import say

_CHAPTER = re.compile(r"ch(\d\d)_\w+\Z")  # as in book/formulas


@lru_cache(maxsize=1)
def claims() -> tuple[Claim, ...]:
    """All claims in the order of the chapters. Raises ValueError for an id that is used twice."""
    found: dict[str, Claim] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(book.claims.__path__)):
        if chapter := _CHAPTER.match(module):
            for claim in importlib.import_module(f"book.claims.{module}").CLAIMS:
                if not claim.seen:
                    raise ValueError(
                        f"claim {claim.id!r}: {module} doesn't say where it was seen; give seen=, and link= "
                        "if there is one. The book's own numbers are held by tests."
                    )
                if claim.id in found:
                    raise ValueError(f"claim {claim.id!r}: {module} has it again; give it another id.")
                found[claim.id] = replace(claim, chapter=chapter[1])
    return tuple(found.values())


def table(chapter: str = "") -> Html:
    """Numbers in circulation, checked: all, or those of one chapter ("05"). Exact values computed now.

    Raises ValueError for a chapter that has none.
    """
    chosen = [c for c in claims() if chapter in ("", c.chapter)]
    if not chosen:
        there = ", ".join(sorted({c.chapter for c in claims()}))
        raise ValueError(f"chapter = {chapter!r}: no claims; there are some for {there}.")
    headings = (
        Heading(say("verdict"), numeric=False),
        Heading(say("claim"), numeric=False),
        Heading(say("as printed"), numeric=False),
        Heading(say("exact"), numeric=False, title=say("computed when this page was built")),
        Heading(say("why"), numeric=False),
        Heading(say("seen in"), numeric=False),
    )
    # Those that hold come after those that don't: nobody needs to be warned of them.
    chosen.sort(key=lambda c: (c.judged() == "right", c.chapter))
    caption = say("Numbers in circulation, checked")
    ids = [f"claim-{c.id}" for c in chosen]
    keys = [say("wrong"), say("right")]
    return sortable(headings, map(row, chosen), caption, ids=ids, filtered=True, kinds=keys)


def row(claim: Claim) -> tuple[Cell, ...]:
    """The cells of one claim."""
    verdict = claim.judged()
    # Both words stand here whole, so that a second language finds them.
    shown = f'<span class="trap">{say("wrong")}</span>' if verdict == "wrong" else say("right")
    here = f'<a href="#claim-{claim.id}" title="{say("a link to this row")}">{shown}</a>'
    here += f"<small>{say('chapter {number}', number=claim.chapter)}</small>"
    exact = f"{html.escape(claim.exact_text())}<code>{html.escape(claim.expression())}</code>"
    seen = html.escape(PLACES[claim.seen])
    if claim.link:
        seen = f'<a href="{html.escape(claim.link)}">{seen}</a>'
    return (
        Cell(here, verdict),
        Cell(_wrapped(claim.statement), claim.statement),
        Cell(html.escape(claim.printed), claim.printed),
        Cell(exact),
        Cell(_wrapped(claim.why), claim.why),
        Cell(seen, PLACES[claim.seen]),
    )


def _wrapped(text: str) -> str:
    style = "white-space:normal;min-width:min(14em,36vw);max-width:26em"
    return f'<div style="{style}">{html.escape(text)}</div>'

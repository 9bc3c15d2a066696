"""The book's contents, read from its chapters: title, question and minutes stand in each one's card."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from book.drawing.tables import Html
from book.say import say

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = "_toc.yml"
FOLDER = "chapters"


@dataclass(frozen=True)
class Chapter:
    """One chapter, as its first cell introduces it. part: caption of its part in `_toc.yml`."""

    part: str
    number: int
    path: str  # from the root, without suffix: chapters/01-roofline
    title: str
    question: str
    minutes: int


def chapters(root: Path = ROOT) -> tuple[Chapter, ...]:
    """All chapters in reading order. Raises ValueError for one whose first cell has no card."""
    toc = yaml.safe_load((root / CONTENTS).read_text(encoding="utf-8"))
    found: list[Chapter] = []
    for part in toc["parts"]:
        for entry in part["chapters"]:
            if entry["file"].startswith(f"{FOLDER}/"):
                found.append(_chapter(root, part["caption"], len(found) + 1, entry["file"]))
    return tuple(found)


def _chapter(root: Path, part: str, number: int, path: str) -> Chapter:
    notebook = json.loads((root / f"{path}.ipynb").read_text(encoding="utf-8"))
    card = "".join(notebook["cells"][0]["source"])
    title = re.search(r"^# (.+)$", card, re.M)
    question = re.search(r"^:::\{admonition\} (.+)$", card, re.M)
    minutes = re.search(r"\*\*Time\*\* (\d+) minutes", card)
    if not (title and question and minutes):
        raise ValueError(
            f"{path}.ipynb: its first cell lacks the title, the question or the minutes; see STYLE.md."
        )
    return Chapter(part, number, path, title[1], question[1], int(minutes[1]))


def table(root: Path = ROOT) -> Html:
    """The chapters with their questions, a table for the front page; links are those of the site."""
    rows, part = [], ""
    for c in chapters(root):
        if c.part != part:
            part = c.part
            rows.append(f'<tr><th scope="colgroup" colspan="4">{part}</th></tr>')
        link = f'<a href="{c.path}.html">{c.title}</a>'
        time = say("{minutes}\u00a0min", minutes=c.minutes)
        rows.append(f"<tr><td>{c.number}</td><td>{link}</td><td>{c.question}</td><td>{time}</td></tr>")
    heads = "".join(
        f'<th scope="col">{h}</th>'
        for h in (say("No."), say("Chapter"), say("The question it answers"), say("Time"))
    )
    return Html(f'<table class="table"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>')

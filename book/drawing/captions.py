"""A figure's number and caption, and where prose that names the number leads.

Numbers are written, "2.1" for the first figure of chapter 2, so that a sentence can say "Figure 2.1" in
a notebook as on the page; the site makes a link of it (`book/site/extensions/figure_links.py`), and a
test holds that they follow the order of the chapter.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Protocol, TypeVar

from book.say import say, translated

NUMBER = re.compile(r"\d{1,2}\.\d{1,2}")


class Captioned(Protocol):
    """Anything that keeps its caption and its number until it is shown."""

    caption: str
    number: str


Drawn = TypeVar("Drawn", bound=Captioned)


@dataclass(frozen=True)
class Below:
    """What stands below a figure. attribute: the figure element's id, with a space before it, or ""."""

    attribute: str
    html: str
    text: str


def anchor(number: str) -> str:
    """The id of the figure with this number: "figure-2-1"."""
    return f"figure-{number.replace('.', '-')}"


def title(number: str) -> str:
    """What the figure is called: "Figure 2.1"."""
    return say("Figure {number}", number=number)


def below(caption: str, number: str) -> Below:
    """A caption (already translated) under a figure, with its number if it has one.

    Raises ValueError for a number that is none, or that has no caption.
    """
    if number and not NUMBER.fullmatch(number):
        raise ValueError(f"number = {number!r}: a figure's number is chapter and place; write it as '2.1'.")
    if number and not caption:
        raise ValueError(f"number = {number!r}: a figure with a number needs a caption; say what it shows.")
    if not caption:
        return Below("", "", "")
    if not number:
        return Below("", f"<figcaption>{html.escape(caption)}</figcaption>", caption)
    named = f"<b>{html.escape(title(number))}.</b> {html.escape(caption)}"
    return Below(
        f' id="{anchor(number)}"', f"<figcaption>{named}</figcaption>", f"{title(number)}. {caption}"
    )


def put(figure: Drawn, caption: str, number: str) -> Drawn:
    """`figure`, with what stands below it wherever it is shown. Raises as `below` does."""
    below(caption, number)
    figure.caption, figure.number = translated(caption), number
    return figure

"""Explanatory pictures, drawn to scale from the catalog and the costs: `picture("machine")`.

Each finds the quantity that is the finding and makes it a length, an area or a volume. A picture is
a function in a file of its own, beside the helpers in `canvas`; lengths and labels come from the
same value, so a drawing can't disagree with the numbers in it.
"""

from __future__ import annotations

import importlib
from typing import Any

from book.drawing.pictures.canvas import Picture
from book.say import translated

# What a notebook asks for, and the module that draws it: the function has the name of the picture.
# Whole names, so that what travels with a notebook is found by reading them.
PICTURES = {
    "machine": "book.drawing.pictures.machine",
    "layer": "book.drawing.pictures.layer",
    "phases": "book.drawing.pictures.phases",
    "cache": "book.drawing.pictures.cache",
    "heads": "book.drawing.pictures.heads",
    "tiles": "book.drawing.pictures.tiles",
    "roof": "book.drawing.pictures.roof",
    "batch": "book.drawing.pictures.batch",
    "causal": "book.drawing.pictures.causal",
    "step": "book.drawing.pictures.step",
    "rows": "book.drawing.pictures.rows",
    "bytes": "book.drawing.pictures.bytes_read",
    "terms": "book.drawing.pictures.terms",
}


def picture(name: str, *, caption: str = "", number: str = "", **what: Any) -> Picture:
    """The picture of that name, which shows itself in a notebook and on a page.

    caption: a line of text below it; number: the figure's, "2.1" for the first of chapter 2. what: of
    which card, model or sizes, as the picture's own function takes them.
    Raises ValueError for a name that there is none of, and for what a picture can't show.
    """
    if name not in PICTURES:
        raise ValueError(f"picture {name!r}: there is none; there are {', '.join(PICTURES)}.")
    draw = getattr(importlib.import_module(PICTURES[name]), name)
    drawn: Picture = draw(**what)
    return drawn.captioned(translated(caption), number)

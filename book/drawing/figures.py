"""The book's figures: the roofline, a formula's curve, and curves in general, in one style for every screen.

A colour always means the same thing (`book.drawing.palette`). Figures are plain matplotlib `Figure`s made
without pyplot, so nothing global changes and nothing is left open.
"""

from __future__ import annotations

from book.drawing.axes import new
from book.drawing.curves import curves, formula
from book.drawing.roofline_figure import roofline
from book.drawing.svg import colour, show, style

__all__ = ["colour", "curves", "formula", "new", "roofline", "show", "style"]

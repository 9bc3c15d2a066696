"""Prefill and decode: one weight, many rows or one, as solids. Faces are bytes, the volume is FLOPs."""

from __future__ import annotations

from book import catalog, cost
from book.cost import Cost
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, finished, line, path, text
from book.drawing.pictures.canvas import number as at
from book.say import say

_SIDE = 176  # units along an edge of the weight, drawn in isometric projection
_RIGHT, _DOWN = 0.866 * _SIDE, 0.5 * _SIDE


def _solid(middle: float, height: float) -> str:
    """A slab seen from above: the weight on top, x in and y out at its sides."""
    left, right, top, side, front = middle - _RIGHT, middle + _RIGHT, 44, 44 + _DOWN, 44 + 2 * _DOWN
    ink = 'style="stroke:var(--i)"'
    lid = f"M{at(middle)} {top}L{at(right)} {at(side)}L{at(middle)} {at(front)}L{at(left)} {at(side)}z"
    faces = (
        path(lid, "fw"),
        path(
            f"M{at(left)} {at(side)}L{at(middle)} {at(front)}v{at(height)}L{at(left)} {at(side + height)}z",
            "fd half",
        ),
        path(
            f"M{at(right)} {at(side)}L{at(middle)} {at(front)}v{at(height)}L{at(right)} {at(side + height)}z",
            "fd",
            'opacity=".75"',
        ),
    )
    if height < 1:  # thinner than a line can be drawn
        faces = (
            faces[0],
            path(f"M{at(left)} {at(side)}L{at(middle)} {at(front)}L{at(right)} {at(side)}", "si"),
        )
    x, y = 0.58 * _RIGHT / 1.38, side + 0.88 * _DOWN + height / 2 - 26
    pointers = path(
        line(middle - x, y, middle - x - 22, y + 36) + line(middle + x, y, middle + x + 22, y + 36), "s", ink
    )
    return (
        "".join(faces)
        + pointers
        + text(middle - x - 28, y + 40, say("x in"), "b e")
        + text(middle + x + 28, y + 40, say("y out"), "b")
    )


def phases(rows: int = 1024, width: int = 4096, card: str = "h100_sxm") -> Picture:
    """A weight of `width` by `width` in bf16 with `rows` rows (prefill) and with one (decode).

    Raises ValueError for more rows than the weight has.
    """
    if not 1 < rows <= width:
        raise ValueError(f"picture 'phases': rows = {rows}: use 2 to {width}, the weight's own size.")
    a = catalog.accelerator(card)
    many, one = (cost.linear(m, width, width) for m in (rows, 1))
    ridge = number(a.ridge("bf16"))
    square = f"{width}×{width}"

    def facts(c: Cost) -> tuple[str, str, str]:
        return si(c.bytes, "B"), si(c.flops, "FLOP"), number(c.intensity, 2 if c.intensity < 10 else 3)

    left, right = facts(many), facts(one)
    labels = say("the faces: bytes"), say("the volume: FLOPs"), say("FLOPs per byte")
    table = [
        text(218, y, left[i], "b e") + text(352, y, labels[i], "q m") + text(486, y, right[i], "b")
        for i, y in enumerate((310, 346, 382))
    ]
    return finished(
        "phases",
        474,
        say(
            "Prefill and decode read the same weights; prefill of {rows} rows does {rows} times the "
            "arithmetic with them",
            rows=number(rows),
        ),
        say(
            "Two matrix products drawn to scale as solids. The top face is the weight, {width} by {width} "
            "in bf16; the side faces are the input x and the output y; the height is the number of rows, "
            "and the volume is the arithmetic. Prefill, {rows} rows: a slab, {bytes} on its faces, {flops} "
            "inside, {intensity} FLOPs for each byte. Decode, one row: a sheet thinner than the line that "
            "draws its edge, {one_bytes} and {one_flops}, {one_intensity} for each byte. The {card} balances "
            "at {ridge}: of these two, prefill has arithmetic for its limit and decode has memory.",
            rows=number(rows),
            width=number(width),
            bytes=left[0],
            flops=left[1],
            intensity=left[2],
            one_bytes=right[0],
            one_flops=right[1],
            one_intensity=right[2],
            card=a.short_name,
            ridge=ridge,
        )
        if many.intensity > a.ridge("bf16")
        else say(
            "Two matrix products drawn to scale as solids. The top face is the weight, {width} by {width} "
            "in bf16; the side faces are the input x and the output y; the height is the number of rows, "
            "and the volume is the arithmetic. {rows} rows: {bytes} on the faces, {flops} inside, "
            "{intensity} FLOPs for each byte. One row: {one_bytes} and {one_flops}, {one_intensity} for "
            "each byte. The {card} balances at {ridge}: memory is the limit of both.",
            rows=number(rows),
            width=number(width),
            bytes=left[0],
            flops=left[1],
            intensity=left[2],
            one_bytes=right[0],
            one_flops=right[1],
            one_intensity=right[2],
            card=a.short_name,
            ridge=ridge,
        ),
        text(176, 20, say("Prefill: {rows} rows", rows=number(rows)), "b m"),
        text(528, 20, say("Decode: 1 row"), "b m"),
        _solid(176, _SIDE * rows / width),
        _solid(528, _SIDE / width),
        text(176, 132, say("weight\n{square}", square=square), "on m"),
        text(528, 132, say("weight\n{square}", square=square), "on m"),
        *table,
        path("M20 328H684M20 364H684", "s", 'style="stroke:var(--l);stroke-width:1"'),
        text(
            352,
            412,
            say(
                "The same weights are read for {rows} rows and for one.\n"
                "The {card} balances at {ridge} FLOPs for each byte.",
                rows=number(rows),
                card=a.short_name,
                ridge=ridge,
            ),
            "m",
            "top",
        ),
    )

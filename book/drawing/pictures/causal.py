"""Causal attention in tiles: which are computed, and what never leaves the chip."""

from __future__ import annotations

from book import cost
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, box, finished, line, path, rect, text
from book.drawing.pictures.canvas import number as at
from book.say import say

_X, _Y, _SIDE = 132, 122, 384


def causal(length: int = 4096, head_dim: int = 128, tile: int = 128) -> Picture:
    """One head of causal attention over a prompt of `length` tokens, in tiles of `tile` by `tile`, bf16.

    The square of scores and the strips q, k, v, o are drawn to one scale. Raises ValueError for a
    prompt of other than 8 to 64 whole tiles.
    """
    if length % tile or not 8 <= length // tile <= 64:
        raise ValueError(f"picture 'causal': a prompt of {length} tokens isn't 8 to 64 tiles of {tile}.")
    side = length // tile
    seen = side * (side + 1) // 2
    unit = _SIDE / length
    strip, step = head_dim * unit, _SIDE / side
    fused = cost.flash_attention(1, length, 1, 1, head_dim)
    square = cost.unfused_attention(1, length, 1, 1, head_dim).writes["scores"]
    stairs = f"M{_X} {_Y}" + "".join(f"h{at(step)}v{at(step)}" for _ in range(side)) + f"H{_X}z"
    grid = [line(_X, _Y + i * step, _X + i * step, _Y + i * step) for i in range(1, side)]
    grid += [line(_X + i * step, _Y + (i - 1) * step, _X + i * step, _Y + _SIDE) for i in range(1, side)]
    row = side * 5 // 8
    ry = _Y + row * step
    facts = {
        "length": number(length),
        "tile": number(tile),
        "head_dim": number(head_dim),
        "seen": number(seen),
        "skipped": number(side * side - seen),
        "square": si(square, "B"),
        "strips": si(fused.bytes, "B"),
        "times": number(square / fused.bytes, 2),
    }
    right = _X + _SIDE + 14
    return finished(
        "causal",
        _Y + _SIDE + 84,
        say("Attention in tiles reads and writes four strips; the square of scores is never written"),
        say(
            "One head over a prompt of {length} tokens in bf16. The square has a row for each query and a "
            "column for each key; its lower left half is cut into tiles of {tile} by {tile}, {seen} of "
            "them, which are computed; the {skipped} above the diagonal are skipped. Beside the square, on "
            "the same scale, lie the strips that memory holds: queries on the left, keys and values on "
            "top, the output on the right, {head_dim} numbers wide, {strips} in all. One row of tiles is "
            "marked: its queries stay on the chip while keys and values pass from left to right. The "
            "square would be {square}, {times} times the strips, and would be written and read again.",
            length=facts["length"],
            tile=facts["tile"],
            seen=facts["seen"],
            skipped=facts["skipped"],
            head_dim=facts["head_dim"],
            strips=facts["strips"],
            square=facts["square"],
            times=facts["times"],
        ),
        text(
            352,
            8,
            say(
                "One head, {length} tokens. To scale:\nstrips are in memory, the square never is.",
                length=facts["length"],
            ),
            "m",
            "top",
        ),
        rect(_X - 14 - strip, _Y, strip, _SIDE, "fd", measures="strip"),
        rect(_X, _Y - 14 - strip, _SIDE, strip, "fk", measures="strip"),
        rect(_X, _Y - 20 - 2 * strip, _SIDE, strip, "fk", measures="strip"),
        rect(right, _Y, strip, _SIDE, "fd", measures="strip"),
        rect(_X, _Y, _SIDE, _SIDE, "fb s1", measures="square"),
        path(stairs, "fr"),
        path(grid, "sb", 'style="stroke-width:.6"'),
        rect(_X, ry, (row + 1) * step, step, "fb"),
        path([box(_X + i * step + 1.5, ry + 2, step - 3, step - 4) for i in range(row + 1)], "fr"),
        path(box(_X, ry, (row + 1) * step, step), "si"),
        path(box(_X - 14 - strip, ry, strip, step), "si"),
        path(box(right, ry, strip, step), "si"),
        text(_X - 26 - strip, _Y + _SIDE / 2, say("q in"), "b e"),
        text(_X + _SIDE + 10, _Y - 16 - strip, say("k, v in"), "b tk"),
        text(right + strip + 12, _Y + _SIDE / 2, say("o out"), "b"),
        text(
            _X + _SIDE * 0.68,
            _Y + _SIDE * 0.24,
            say("{skipped} tiles\nskipped", skipped=facts["skipped"]),
            "q m",
        ),
        text(
            _X + _SIDE * 0.34,
            _Y + _SIDE * 0.84,
            say("{seen} tiles,\non the chip", seen=facts["seen"]),
            "on b m",
            halo="r",
        ),
        text(
            352,
            _Y + _SIDE + 18,
            say(
                "Strips: {strips}. The square would be {square},\n"
                "written and read again: {times} times as much each time.",
                strips=facts["strips"],
                square=facts["square"],
                times=facts["times"],
            ),
            "m",
            "top",
        ),
    )

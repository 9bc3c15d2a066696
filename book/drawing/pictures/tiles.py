"""A weight cut into tiles: who walks where, and what split-K costs."""

from __future__ import annotations

from book import catalog, cost
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, arrow, box, finished, line, path, rect, text
from book.say import say

_X, _Y, _SIDE = 148, 78, 352
_SUM, _SUM_PITCH = 13, 17


def tiles(
    m: int = 16,
    k: int = 4096,
    n: int = 4096,
    block_n: int = 256,
    block_k: int = 64,
    splits: int = 4,
    card: str = "h100_sxm",
) -> Picture:
    """The walk of a decode-sized product y[m, n] = x[m, k] @ w[k, n] over its weight, with split-K.

    One block of rows, columns in strips of `block_n`, each strip in `splits` pieces that one program
    each walks down in tiles of `block_k` rows. Raises ValueError for sizes that aren't whole tiles,
    and for more of them than can be seen.
    """
    a = catalog.accelerator(card)
    if k % (splits * block_k) or n % block_n:
        raise ValueError(
            f"picture 'tiles': {k} by {n} isn't {splits} pieces of whole {block_k} by {block_n} tiles."
        )
    strips, steps = n // block_n, k // splits // block_k
    if not (2 <= splits <= 4 and strips <= 22 and steps <= 20) or a.sm_count is None:
        raise ValueError(
            "picture 'tiles': it shows 2 to 4 pieces, 22 strips and 20 tiles, on a card with multiprocessors."
        )
    issued = cost.linear_issued(m, k, n, block_m=16, block_n=block_n, block_k=block_k, splits=splits)
    wide, high = _SIDE / strips, _SIDE / splits
    marked = (splits - 1) // 2  # the piece whose walk is shown
    px, py, thin = _X + _SIDE - wide, _Y + marked * high, high / steps
    walks = [
        arrow((_X + (s + 0.5) * wide, _Y + p * high + 10), (_X + (s + 0.5) * wide, _Y + (p + 1) * high - 10))
        for s in range(strips)
        for p in range(splits)
        if (s, p) != (strips - 1, marked)
    ]
    sums = 464
    bottom = sums + _SUM_PITCH * splits
    facts = {
        "strips": number(strips),
        "sms": number(a.sm_count),
        "splits": number(splits),
        "programs": number(strips * splits),
        "m": number(m),
    }
    moved = si(issued.writes["partials"], "B")
    ink = 'style="stroke:var(--i)"'
    return finished(
        "tiles",
        bottom + 60,
        say(
            "Split-K: {programs} programs read a weight once between them, and pay with partial sums",
            programs=facts["programs"],
        ),
        say(
            "A weight of {k} by {n} is cut into {strips} strips of {block_n} columns, and each strip into "
            "{splits} pieces of {piece} rows: {programs} programs. Each walks down its own piece, tile by "
            "tile ({steps} tiles of {block_k} by {block_n}), so every weight is read once. Without the cut "
            "there would be {strips} programs for the {sms} multiprocessors of the {card}. The price, for "
            "{m} rows: {splits} partial sums of the output in fp32, {moved} written and as much read back, "
            "beside {weight} of weights.",
            k=number(k),
            n=number(n),
            block_n=number(block_n),
            piece=number(k // splits),
            steps=number(steps),
            block_k=number(block_k),
            card=a.short_name,
            moved=moved,
            weight=si(issued.reads["w"], "B"),
            strips=facts["strips"],
            splits=facts["splits"],
            programs=facts["programs"],
            sms=facts["sms"],
            m=facts["m"],
        ),
        text(
            352,
            8,
            say(
                "{strips} strips alone: {strips} programs on {sms} multiprocessors.\n"
                "In {splits} pieces: {programs} programs; each weight is read once.",
                strips=facts["strips"],
                sms=facts["sms"],
                splits=facts["splits"],
                programs=facts["programs"],
            ),
            "m",
            "top",
        ),
        rect(_X, _Y, _SIDE, _SIDE, "fw", measures="weight"),
        path(walks, "sb", 'data-is="walk"'),
        path([line(_X + s * wide, _Y, _X + s * wide, _Y + _SIDE) for s in range(1, strips)], "sb"),
        path(
            [line(_X, _Y + p * high, _X + _SIDE, _Y + p * high) for p in range(1, splits)],
            "s",
            'style="stroke:var(--b);stroke-width:3"',
        ),
        rect(px, py, wide, high, "fb"),
        path([box(px + 2, py + 1 + i * thin, wide - 4, thin - 1.25) for i in range(steps)], "fw"),
        path(box(px, py, wide, high), "si"),
        *(
            text(136, _Y + (p + 0.5) * high, say("piece {number}", number=p + 1), "q e")
            for p in range(splits)
        ),
        text(
            530,
            py + high / 2,
            say("one program:\n{steps} tiles of\n{tile}", steps=number(steps), tile=f"{block_k}×{block_n}"),
        ),
        path(line(px + wide + 1, py + high / 2, 523, py + high / 2), "s", ink),
        text(530, _Y + 0.75 * _SIDE, say("the weight,\n{shape}", shape=f"{k}×{n}"), "tw"),
        path(arrow((324, 434), (324, 458))),
        path([box(_X, sums + _SUM_PITCH * p, _SIDE, _SUM) for p in range(splits)], "fd half"),
        path([line(_X + s * wide, sums, _X + s * wide, bottom - 4) for s in range(1, strips)], "sb"),
        path(box(px, sums + marked * _SUM_PITCH, wide, _SUM), "si"),
        text(136, (sums + bottom) / 2 - 2, say("{splits} partial\nsums, fp32", splits=facts["splits"]), "e"),
        text(530, (sums + bottom) / 2 - 2, say("{moved} out,\n{moved} back", moved=moved)),
        path(arrow((324, bottom + 1), (324, bottom + 27))),
        text(338, bottom + 13, say("added up"), "q"),
        rect(_X, bottom + 32, _SIDE, _SUM, "fd"),
        text(136, bottom + 39, say("y, {m} rows", m=facts["m"]), "e"),
    )

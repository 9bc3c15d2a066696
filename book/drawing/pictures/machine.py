"""The machine: how little comes in from memory, and how much can be done with it, on one scale."""

from __future__ import annotations

from book import catalog
from book.catalog import Accelerator
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, finished, line, path, rect, text
from book.drawing.pictures.canvas import number as number_
from book.say import say

_LEFT, _WIDE = 20, 664
_SM_ROWS, _SM_HEIGHT = 4, 27


def _mebibytes(size: int) -> str:
    return f"{number(size / 2**20, 2)} MiB"


def _multiprocessors(count: int, top: float) -> str:
    """`count` equal squares in four rows, the last of which may be shorter: a row is two dashed lines."""
    columns = -(-count // _SM_ROWS)
    wide = _WIDE / columns
    cell = min(wide, _SM_HEIGHT) - 3
    drawn = []
    for row in range(-(-count // columns)):
        end = _LEFT + wide * min(columns, count - row * columns)
        for y, thick, classes in ((0.36 * cell, 0.72 * cell, "sm"), (0.86 * cell, 0.2 * cell, "sm half")):
            dashes = (
                f'stroke-dasharray="{number_(cell)} {number_(wide - cell)}" stroke-width="{number_(thick)}"'
            )
            height = top + row * _SM_HEIGHT + y
            drawn.append(path(line(_LEFT + (wide - cell) / 2, height, end, height), classes, dashes))
    return "".join(drawn)


def machine(card: str | Accelerator = "h100_sxm", dtype: str = "bf16") -> Picture:
    """An accelerator to scale: the path out of memory, the vector units and the tensor cores as widths.

    dtype: what the tensor cores multiply. Raises ValueError for a card of which multiprocessors,
    L2 or the fp32 rate aren't known, UnsupportedDtype for a dtype that it hasn't.
    """
    a = catalog.accelerator(card) if isinstance(card, str) else card
    if not a.sm_count or not a.l2_bytes or "fp32" not in a.peaks:
        raise ValueError(
            f"picture 'machine': the catalog has no multiprocessors, L2 or fp32 rate of {a.name}; "
            "try 'h100_sxm'."
        )
    tensor, vector = a.peak(dtype), a.peak(dtype, unit="vector")
    unit = _WIDE / tensor  # units of width for one FLOP, or one byte, a second
    stream = a.bandwidth * unit
    inside = vector * unit > 200  # room for its name in the bar of the vector units
    middle = _LEFT + _WIDE / 2 - stream / 2
    ridge, vector_ridge = number(tensor / a.bandwidth), number(vector / a.bandwidth, 2)
    memory = si(a.capacity, "B", 2)
    rates = {
        "bandwidth": si(a.bandwidth, "B/s"),
        "vector": si(vector, "FLOP/s"),
        "tensor": si(tensor, "FLOP/s"),
        "dtype": dtype,
    }
    sms = number(a.sm_count)
    return finished(
        "machine",
        576,
        say("{card} to scale: a thin line of bytes feeds a wide row of arithmetic", card=a.short_name),
        say(
            "From top to bottom: {memory} of {kind}; the path out of it, {bandwidth}; an L2 cache of {l2}; "
            "{sms} multiprocessors, each with tensor cores and vector units. On one linear scale, a byte "
            "and a FLOP a second alike, the path is a line; the vector units ({vector} in fp32) are "
            "{vector_ridge} times as wide, and the tensor cores ({tensor} in {dtype}) {ridge} times. So the "
            "tensor cores are the limit only where each byte that arrives is used in {ridge} FLOPs or more. "
            "Left out: registers and shared memory.",
            memory=memory,
            kind=a.memory_type,
            l2=_mebibytes(a.l2_bytes),
            sms=sms,
            vector_ridge=vector_ridge,
            ridge=ridge,
            bandwidth=rates["bandwidth"],
            vector=rates["vector"],
            tensor=rates["tensor"],
            dtype=rates["dtype"],
        ),
        rect(_LEFT, 4, _WIDE, 70, "fm s1"),
        text(36, 39, a.memory_type, "b"),
        text(668, 39, say("{memory}: all weights, all caches", memory=memory), "e"),
        text(336, 112, say("every byte passes\nthrough this line"), "q e"),
        text(368, 100, rates["bandwidth"], "b"),
        text(368, 126, say("to scale with the bars"), "q"),
        rect(4, 150, 696, 356, "fc s1", round=6),
        rect(middle, 74, stream, 98, "fr", measures="bandwidth"),
        rect(_LEFT, 172, _WIDE, 42, "fb s1"),
        text(36, 193, say("L2 cache"), "b"),
        text(668, 193, _mebibytes(a.l2_bytes), "e"),
        _multiprocessors(a.sm_count, 228),
        text(_LEFT, 346, say("{sms} multiprocessors. All together, in one second:", sms=sms), at="top"),
        rect(_LEFT, 388, vector * unit, 40, "fd", measures="vector"),
        text(
            36 if inside else _LEFT + vector * unit + 14, 408, say("vector units"), "b on" if inside else "b"
        ),
        text(668, 408, say("{vector} in fp32", vector=rates["vector"]), "e"),
        rect(_LEFT, 440, tensor * unit, 50, "fr", measures="tensor"),
        text(36, 465, say("tensor cores"), "b on"),
        text(668, 465, say("{tensor} in {dtype}", tensor=rates["tensor"], dtype=dtype), "on e"),
        text(
            352,
            518,
            say(
                "While one byte comes down the line, the vector\n"
                "units can do {vector_ridge} FLOPs and the tensor cores {ridge}.",
                vector_ridge=vector_ridge,
                ridge=ridge,
            ),
            "m",
            "top",
        ),
    )

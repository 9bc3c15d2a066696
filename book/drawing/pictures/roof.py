"""The roofline on linear axes: what memory brings, and what the tensor cores can do."""

from __future__ import annotations

from book import catalog, roofline
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, arrow, finished, line, path, rect, text
from book.drawing.pictures.canvas import number as at
from book.say import say

_LEFT, _WIDE, _TOP, _HIGH = 76, 588, 84, 296
_BAR = 24


def roof(card: str = "h100_sxm", dtype: str = "bf16") -> Picture:
    """Attainable FLOP/s against intensity, to twice the ridge, with four pieces of work as columns."""
    a = catalog.accelerator(card)
    peak, ridge = a.peak(dtype), a.ridge(dtype)
    reach = 2 * ridge
    floor = _TOP + _HIGH
    half = round(ridge / 2)
    stations = (1, half, ridge, round(1.7 * ridge))

    def x(intensity: float) -> float:
        return _LEFT + _WIDE * intensity / reach

    def height(intensity: float) -> float:
        return _HIGH * roofline.attainable(intensity, peak, a.bandwidth) / peak

    def left(intensity: float) -> float:
        """Of a column; the first stands beside the axis."""
        return x(intensity) - (_BAR / 2 if intensity > 1 else 0)

    facts = {
        "card": a.short_name,
        "peak": si(peak, "FLOP/s"),
        "bandwidth": si(a.bandwidth, "B/s"),
        "ridge": number(ridge),
        "dtype": dtype,
    }
    columns = [
        rect(left(i), floor - height(i), _BAR, height(i), "fr", measures=f"at {number(i)}") for i in stations
    ]
    idle = [rect(left(i), _TOP, _BAR, _HIGH, "fb half") for i in stations]
    shares = [100 * roofline.attainable(i, peak, a.bandwidth) / peak for i in stations]
    told = "; ".join(
        say("{intensity} FLOP/byte: {share} %", intensity=number(i), share=number(s, 2 if s < 10 else 3))
        for i, s in zip(stations, shares, strict=True)
    )
    return finished(
        "roof",
        floor + 136,
        say(
            "The roofline of the {card}: the path from memory is a slope, and its peak a roof",
            card=facts["card"],
        ),
        say(
            "Both axes are linear. To the right goes intensity, the FLOPs that are done with each byte, "
            "upwards the FLOPs a second. A byte brings as many FLOPs as the intensity says, so {bandwidth} "
            "of memory are a slope; no slope is higher than the peak, {peak} in {dtype}. They meet at the "
            "ridge, {ridge} FLOP/byte. Four columns show which share of the peak can be kept busy: {told}. "
            "Left of the ridge memory is the limit, right of it arithmetic.",
            told=told,
            bandwidth=facts["bandwidth"],
            peak=facts["peak"],
            dtype=facts["dtype"],
            ridge=facts["ridge"],
        ),
        rect(_LEFT, _TOP, x(ridge) - _LEFT, _HIGH, "fm"),
        rect(x(ridge), _TOP, x(reach) - x(ridge), _HIGH, "fc"),
        *idle,
        *columns,
        path(
            line(_LEFT, floor, x(ridge), _TOP) + f"H{at(x(reach))}",
            "s",
            'style="stroke:var(--p);stroke-width:3"',
        ),
        path(arrow((_LEFT, floor), (_LEFT, _TOP - 24)) + arrow((_LEFT, floor), (x(reach) + 20, floor))),
        text(20, 8, say("FLOP/s, and {peak} is the most", peak=facts["peak"]), "b", "top"),
        text(_LEFT - 10, _TOP, say("peak"), "e"),
        text(
            _LEFT + 16,
            _TOP + 54,
            say("memory is\nthe limit:\n{bandwidth}", bandwidth=facts["bandwidth"]),
            "q",
        ),
        text(
            x(1.36 * ridge),
            _TOP + 110,
            say("arithmetic\nis the limit:\n{peak}", peak=facts["peak"]),
            "q m",
        ),
        text(x(ridge), _TOP - 18, say("the ridge"), "b m"),
        *(
            text(
                left(i) + _BAR / 2,
                floor + 10,
                number(i),
                "b m" if i == ridge else "m",
                "top",
            )
            for i in stations
        ),
        text(x(reach), floor + 40, say("FLOPs for each byte"), "q e", "top"),
        text(
            352,
            floor + 74,
            say(
                "Columns: what of the machine can be busy.\nFrom {ridge} FLOPs a byte on, all of it.",
                ridge=facts["ridge"],
            ),
            "m",
            "top",
        ),
    )

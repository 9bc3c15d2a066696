"""What the dial of `kernels.evidence.cpu` shows: a slope, a roof, or neither, said from the times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from book.say import say
from kernels.evidence.timed.ceilings import Ceilings

STEEP = 0.25  # how far the exponent of a slope may be from 1, that of a bandwidth
LEVEL = 1.25  # times the rate, at most, from the last point but one to the last, if that is a roof
Points = Sequence[Mapping[str, Any]]


class Turned(Protocol):
    """What was measured: the dial's points, rising in intensity, and the ceilings of the same run."""

    @property
    def dial(self) -> Points: ...

    @property
    def ceilings(self) -> Ceilings: ...


def finding(measured: Turned) -> str:
    """How the rate goes with the intensity left of the measured ridge, and whether it levels off."""
    tops = measured.ceilings
    ridge = tops.peak / tops.bandwidth
    below = [p for p in measured.dial if p["intensity"] <= ridge]
    first = [_slope(below), _share(below[0], tops)] if len(below) > 1 else [_no_slope(ridge)]
    return " ".join([*first, _level(measured.dial)])


def _rate(point: Mapping[str, Any]) -> float:
    """FLOP/s of the quiet runs."""
    return point["flops_per_s"] * point["seconds"] / point["low"]


def _no_slope(ridge: float) -> str:
    return say(
        "The ridge of this run is at {ridge:.2g} FLOP/byte, and fewer than two points lie left of it: this "
        "run shows no slope.",
        ridge=ridge,
    )


def _slope(below: Points) -> str:
    first, last = below[0], below[-1]
    turned, grown = last["intensity"] / first["intensity"], _rate(last) / _rate(first)
    exponent = math.log(grown) / math.log(turned)
    noise = sum(math.log(p["high"] / p["low"]) for p in (first, last)) / math.log(turned)
    went = say(
        "From {low:.2g} to {high:.2g} FLOP/byte, {turned:.3g} times the intensity, the rate grew {grown:.3g} "
        "times.",
        low=first["intensity"],
        high=last["intensity"],
        turned=turned,
        grown=grown,
    )
    return f"{went} {_verdict(exponent, noise)}"


def _verdict(exponent: float, noise: float) -> str:
    """noise: how much of the exponent the scatter of the times leaves open."""
    if abs(exponent - 1) <= STEEP:
        return say("That is a slope, as a bandwidth gives.")
    if abs(exponent - 1) <= STEEP + noise:
        return say(
            "The times scatter too much to tell whether that is the slope of a bandwidth: this machine was "
            "too busy to show it."
        )
    if exponent > 1:
        return say(
            "That is no slope of a bandwidth: something else than memory holds torch up at the narrow "
            "matrices, so this run does not show the left side of the roofline."
        )
    return say(
        "That is less than a bandwidth gives: something else binds before memory does, so this run does not "
        "show the left side of the roofline."
    )


def _share(point: Mapping[str, Any], tops: Ceilings) -> str:
    return say(
        "At {low:.2g} FLOP/byte it reached {share:.0%} of what the measured bandwidth allows.",
        low=point["intensity"],
        share=point["flops_per_s"] / (tops.bandwidth * point["intensity"]),
    )


def levels_off(points: Points) -> bool:
    """Whether the last step of the dial shows a roof: the rate neither grew nor fell."""
    before, last = points[-2:]
    return 1 / LEVEL <= _rate(last) / _rate(before) <= LEVEL


def _level(points: Points) -> str:
    before, last = points[-2:]
    turned, grown = last["intensity"] / before["intensity"], _rate(last) / _rate(before)
    if grown < 1 / LEVEL:
        return say(
            "At the last point the rate was {grown:.2f} times that of the point before: it fell, which "
            "no roof explains.",
            grown=grown,
        )
    if grown <= LEVEL:
        return say(
            "The last {turned:.2g} times the intensity changed the rate by a factor of {grown:.2f}: a roof.",
            turned=turned,
            grown=grown,
        )
    return say(
        "At the last point the rate still grew {grown:.2f} times for {turned:.2g} times the intensity: this "
        "run does not reach a roof.",
        turned=turned,
        grown=grown,
    )

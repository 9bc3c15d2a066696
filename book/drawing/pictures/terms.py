"""A measured step taken apart: terms as lengths, and what they leave over."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import accumulate

from book.drawing.number_text import si
from book.drawing.pictures.canvas import Picture, finished, line, path, rect, text
from book.say import say, translated

_LEFT, _RIGHT, _TOP, _PITCH = 20, 684, 96, 62
_BAR_LEFT, _LETTERS = 372, 17


def terms(parts: Mapping[str, float], measured: float, subject: str = "") -> Picture:
    """Seconds of a step by their causes, one below the other like stairs, and the measured step on top.

    parts: {what: seconds}, in the order of drawing; a negative one leads back. measured: seconds of the
    whole; what their sum leaves of it is drawn, whatever its sign. subject: whose step it is, for the
    title. Raises ValueError for no terms or more than ten, and where they lead back past zero.
    """
    reached = list(accumulate(parts.values()))
    if not 1 <= len(parts) <= 10 or min(reached) < 0 or measured <= 0:
        raise ValueError(
            "picture 'terms': give 1 to 10 terms whose sums are not negative, and a positive time."
        )
    names = {label: "\n".join(textwrap.wrap(translated(label), _LETTERS)) for label in parts}
    if long := [label for label, words in names.items() if words.count("\n") > 1]:
        raise ValueError(
            f"picture 'terms': {long[0]!r} takes more than two lines of {_LETTERS} letters; shorten it."
        )
    total = reached[-1]
    rest = measured - total
    unit = (_RIGHT - _BAR_LEFT) / max(measured, *reached)
    y, x = float(_TOP), float(_BAR_LEFT)
    drawn: list[str] = []
    for label, seconds in parts.items():
        wide = seconds * unit
        drawn += [
            text(_LEFT, y + 14, names[label]),
            text(_BAR_LEFT - 14, y + 14, si(seconds, "s"), "q e"),
            rect(min(x, x + wide), y, max(abs(wide), 0.5), 28, "fp", measures="term"),
            path(line(x + wide, y, x + wide, y + _PITCH), "s", 'style="stroke-width:1"'),
        ]
        x, y = x + wide, y + _PITCH
    edge = _BAR_LEFT + measured * unit
    drawn += [
        text(_LEFT, y + 14, say("left over") if rest >= 0 else say("too much"), "b"),
        text(_BAR_LEFT - 14, y + 14, si(rest, "s"), "b e"),
        rect(min(x, edge), y, max(abs(rest) * unit, 0.5), 28, "fd half", measures="rest"),
        path(line(edge, 74, edge, y + 36), "si"),
    ]
    each = "; ".join(
        say("{what}: {seconds}", what=translated(label), seconds=si(s, "s")) for label, s in parts.items()
    )
    said = {"measured": si(measured, "s"), "total": si(total, "s"), "rest": si(abs(rest), "s"), "each": each}
    title = (
        say(
            "Of a step of {measured} the terms explain {total}",
            measured=said["measured"],
            total=said["total"],
        )
        if rest >= 0
        else say(
            "For a step of {measured} the terms foretell {total}",
            measured=said["measured"],
            total=said["total"],
        )
    )
    return finished(
        "terms",
        y + 92,
        f"{translated(subject)}: {title}" if subject else title,
        say(
            "A measured step of {measured} as a bar, and below it its terms on the same scale, each "
            "beginning where the one before it ends. {each}. Together {total}; {rest} are left over.",
            measured=said["measured"],
            each=said["each"],
            total=said["total"],
            rest=said["rest"],
        )
        if rest >= 0
        else say(
            "A measured step of {measured} as a bar, and below it its terms on the same scale, each "
            "beginning where the one before it ends. {each}. Together {total}, which is {rest} more than "
            "was measured.",
            measured=said["measured"],
            each=said["each"],
            total=said["total"],
            rest=said["rest"],
        ),
        text(_LEFT, 56, say("measured"), "b"),
        text(_BAR_LEFT - 14, 56, said["measured"], "b e"),
        rect(_BAR_LEFT, 42, measured * unit, 28, "fu", measures="measured"),
        text(_RIGHT, 6, say("Lengths are seconds."), "q e", "top"),
        path(line(_BAR_LEFT, 38, _BAR_LEFT, y + 36), "s", 'style="stroke-width:1"'),
        *drawn,
        text(
            352,
            y + 52,
            say("The rest has no name yet: {rest}.", rest=said["rest"])
            if rest >= 0
            else say("The terms are too long by {rest}.", rest=said["rest"]),
            "m",
            "top",
        ),
    )

"""A step with M rows: the weights take as long to read whatever M is, the arithmetic grows with it."""

from __future__ import annotations

from collections.abc import Sequence

from book import catalog, cost, serving
from book.catalog import Model
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, finished, line, path, rect, text
from book.say import say

_LEFT, _WIDE, _TOP, _PITCH = 172, 516, 104, 74


def rows(
    model: str | Model = "llama3.1-8b", card: str = "h100_sxm", counts: Sequence[int] = (1, 32, 128, 512)
) -> Picture:
    """The two floors of a step with 1, 32, ... rows as lengths: reading all weights, and multiplying them.

    bf16, weights only: no cache, no attention, no activations. Raises ValueError for a mixture of
    experts, of which a step reads what its rows ask for, and for counts that don't grow.
    """
    m = catalog.model(model) if isinstance(model, str) else model
    a = catalog.accelerator(card)
    if m.experts is not None:
        raise ValueError(
            f"picture 'rows': a step of {m.name} reads the experts that its rows ask for; try 'llama3.1-8b'."
        )
    if not 2 <= len(counts) <= 5 or sorted(set(counts)) != list(counts):
        raise ValueError(f"picture 'rows': counts = {tuple(counts)}: give 2 to 5 that grow.")
    parameters = serving.parameters_read(m)
    reading = cost.weights(parameters, 1).bytes / a.bandwidth
    multiplying = [cost.weight_flops(parameters, c) / a.peak("bf16") for c in counts]
    unit = _WIDE / max(reading, *multiplying)
    critical = serving.critical_rows(a.peak("bf16"), a.bandwidth)
    labels = [say("1 row") if c == 1 else say("{rows} rows", rows=number(c)) for c in counts]
    bottom = _TOP + _PITCH * len(counts)
    bars = []
    for i, (label, seconds) in enumerate(zip(labels, multiplying, strict=True)):
        y = _TOP + _PITCH * i
        longest = max(seconds, reading) * unit
        own = seconds * unit
        beside = own + 10 if own < 0.5 * _WIDE else own - 10
        inside = own >= 0.5 * _WIDE
        bars += [
            text(_LEFT - 14, y + 27, label, "b e"),
            rect(_LEFT, y, reading * unit, 26, "fw", measures="reading"),
            rect(_LEFT, y + 28, own, 26, "fr", measures="multiplying"),
            text(_LEFT + beside, y + 41, si(seconds, "s"), "on e" if inside else "q"),
            text(_LEFT + 10, y + 13, si(reading, "s"), "on") if reading * unit > 140 else "",
            path(line(_LEFT + longest, y - 4, _LEFT + longest, y + 58), "si"),
        ]
    edge = _LEFT + reading * unit
    facts = {"critical": number(critical), "reading": si(reading, "s"), "card": a.short_name}
    each = "; ".join(
        say("{rows}: {multiplying}", rows=label, multiplying=si(seconds, "s"))
        for label, seconds in zip(labels, multiplying, strict=True)
    )
    return finished(
        "rows",
        bottom + 68,
        say(
            "Until a step has {critical} rows, reading the weights takes longer than multiplying them",
            critical=facts["critical"],
        ),
        say(
            "Steps of {model} on the {card} in bf16 that differ in their rows only. For each two bars to "
            "one scale: reading the weights, {reading} however many rows there are, and multiplying them. "
            "The longer of the two is the least that the step can take, if they overlap. Multiplying "
            "takes: {each}. Both are equal at {critical} rows. The cache, attention and activations are "
            "left out.",
            model=m.name,
            each=each,
            card=facts["card"],
            reading=facts["reading"],
            critical=facts["critical"],
        ),
        rect(_LEFT, 12, 22, 22, "fw"),
        text(_LEFT + 32, 23, say("reading the weights: the same for all")),
        rect(_LEFT, 46, 22, 22, "fr"),
        text(_LEFT + 32, 57, say("multiplying them: as many times as rows")),
        path(line(edge, _TOP - 12, edge, bottom - 4), "s", 'style="stroke-dasharray:4 4"'),
        *bars,
        text(
            352,
            bottom + 4,
            say(
                "The step ends with the longer of the two (black).\nThey are equal at {critical} rows.",
                critical=facts["critical"],
            ),
            "m",
            "top",
        ),
    )

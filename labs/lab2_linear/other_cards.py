"""Lab 2: five accelerators' data sheets, and the times that others published or recorded on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from book import cost, roofline
from book.drawing import figures
from book.drawing.number_text import si
from book.drawing.tables import Table, table
from book.say import say
from kernels.evidence import published, recorded
from labs.lab2_linear.cases import ITEMSIZE
from labs.lab2_linear.timings import experiment

NEAR = (20.0, 8000.0)  # FLOP/byte: where the five ridges lie


def cards(numbers: Mapping[str, Any]) -> Table:
    """The five accelerators of this copy: what their data sheets promise."""
    rows = [
        [name, facts["name"], si(facts["peak"], "FLOP/s", 4), si(facts["bandwidth"], "B/s", 4)]
        for name, facts in numbers["cards"].items()
    ]
    words = say(
        "m = {m:,}, k = {k:,}, n = {n:,}, two bytes a number",
        m=numbers["m"],
        k=numbers["k"],
        n=numbers["n"],
    )
    return table(rows, ["", say("accelerator"), say("peak, 16 bits, dense"), say("bandwidth")], words)


def reveal(predictions: Mapping[str, float], numbers: Mapping[str, Any]) -> Table:
    """Predictions beside the recorded and the published times of the same sizes, where there are any."""
    sizes = {name: numbers[name] for name in ("m", "k", "n")}
    rows = []
    for card, facts in numbers["cards"].items():
        yours, row = predictions.get(card), {"accelerator": facts["name"]}
        row["predicted"] = si(yours, "s") if yours else "nothing"
        for rung, series in (
            ("recorded", recorded.points("linear", accelerator=card)),
            ("published", published.points(experiment(), accelerator=card)),
        ):
            points = [p for one in series for p in one["points"]]
            found = [p["seconds"] for p in points if sizes.items() <= p.items()]
            times = say(" ({times:.2f} times yours)", times=found[0] / yours) if found and yours else ""
            row[rung] = f"{si(found[0], 's')}{times}" if found else recorded.NOT_MEASURED
        rows.append(row)
    return table(rows, [say("accelerator"), say("predicted"), say("recorded"), say("published")])


def roofs(numbers: Mapping[str, Any]) -> Any:
    """The five roofs, where your layer lies on them, and what was published about this width."""
    intensity = cost.linear(numbers["m"], numbers["k"], numbers["n"], ITEMSIZE).intensity
    five = [roofline.Roof(f["name"], f["peak"], f["bandwidth"]) for f in numbers["cards"].values()]
    width = {"k": numbers["k"], "n": numbers["n"]}
    points = {
        numbers["cards"][card]["name"]: [
            p for p in one["points"] if width.items() <= p.items() and p["intensity"] > NEAR[0]
        ]
        for card in numbers["cards"]
        for one in published.points(experiment(), accelerator=card)
        if any(width.items() <= p.items() for p in one["points"])
    }
    label = say("published, {points}", points=say(" and ").join(points))
    every = [p for its in points.values() for p in its]
    strong = next(f["name"] for card, f in numbers["cards"].items() if card == "h100_sxm")
    return figures.roofline(
        five,
        [{"rung": "published", "label": label, "points": every}],
        highlight=strong,
        operating=(intensity, say("your layer")),
        xlim=NEAR,
        alt=(
            say(
                "Five rooflines. The layer of {m:,} rows lies at {intensity:.0f} FLOP/byte: left of "
                "some ridges, right of others. Published times of two cards follow their roofs.",
                m=numbers["m"],
                intensity=intensity,
            )
        ),
    )

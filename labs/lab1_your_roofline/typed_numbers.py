"""Lab 1: the numbers that students type in, of four cards and of their own machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from book import catalog, cost, roofline
from book.say import say
from labs.kit.ask_and_answer import Ask, Values, ValuesAnswer
from labs.kit.question import Draw, Verdict
from labs.lab1_your_roofline.judges import close, is_number, row, sentence, shown
from labs.lab1_your_roofline.rows_and_knee import rows

CARDS = ("l4", "a10g", "l40s", "a100_80gb_sxm", "h100_sxm", "h200_sxm", "b200", "mi300x")
DTYPE = "bf16"
WITHIN = 0.01  # relative, of a number that was typed in
ABOVE = 0.1  # how far a card may run above its data sheet: boost clocks
LEAST = 1e8  # bytes/s and FLOP/s that every machine beats; less is GB/s or GFLOP/s


def numbers(variant: int) -> Mapping[str, Any]:
    """What differs between copies. width: k = n of the layer that is timed. m, k, n, cards: of the last part.

    At least one of the four cards waits for memory and one computes, each clear of its ridge.
    """
    rng = np.random.default_rng(variant)
    width = 512 * int(rng.integers(9, 13))
    while True:
        m, k, n = int(rng.integers(150, 420)), 1024 * int(rng.integers(3, 9)), 1024 * int(rng.integers(8, 29))
        cards = tuple(sorted(str(c) for c in rng.choice(CARDS, 4, replace=False)))
        layer = cost.linear(m, k, n, catalog.itemsize(DTYPE))
        sides = [layer.intensity / catalog.accelerator(card).ridge(DTYPE) for card in cards]
        if min(sides) < 1 < max(sides) and all(abs(np.log(side)) > 0.1 for side in sides):
            return {"width": width, "m": m, "k": k, "n": n, "cards": cards}


def cards_table(numbers: Mapping[str, Any]) -> Any:
    """The four cards of this copy, for its reader."""
    from book.drawing.number_text import si
    from book.drawing.tables import Column, table

    made = [catalog.accelerator(name) for name in numbers["cards"]]
    cells = [
        {
            "key": card.id,
            "card": card.name,
            "peak": si(card.peak(DTYPE), "FLOP/s", digits=4),
            "bandwidth": si(card.bandwidth, "byte/s", digits=4),
        }
        for card in made
    ]
    columns = [
        Column("key", say("key")),
        Column("card", say("card")),
        Column("peak", say("peak, {dtype}", dtype=DTYPE), align="right"),
        Column("bandwidth", say("bandwidth"), align="right"),
    ]
    return table(cells, columns, say("Four cards of the catalogue; peaks are dense"))


# ----------------------------------------------------------------------------------- four cards


def ask_floors(draw: Draw) -> Mapping[str, Ask]:
    """The dict `floors`."""
    return {"floors": Values(("floors",))}


def judge_floors(answers: Mapping[str, ValuesAnswer], asked: Mapping[str, Ask], draw: Draw) -> Verdict:
    """Seconds by card, each within one percent."""
    answer, mine = answers["floors"], draw.numbers
    problem = answer.error or answer.errors.get("floors")
    if problem:
        return Verdict(False, sentence(problem))
    floors = answer.values.get("floors")
    if not isinstance(floors, dict):
        return Verdict(
            False,
            say(
                "floors is no dict; write {example} with the keys of the table.",
                example="{'l4': seconds, ...}",
            ),
        )
    right = {name: _floor(mine, name) for name in mine["cards"]}
    table = tuple(
        row(say("{name}, seconds", name=name), floors.get(name), right[name]) for name in mine["cards"]
    )
    missing = [name for name in mine["cards"] if name not in floors]
    if missing:
        return Verdict(False, say("floors has no entry for {missing}.", missing=", ".join(missing)), table)
    wrong = [name for name in mine["cards"] if not close(floors[name], right[name], WITHIN)]
    return Verdict(not wrong, _why(mine, floors, wrong) if wrong else "", table)


def _times(mine: Mapping[str, Any], name: str, **changed: float) -> tuple[float, float]:
    """(seconds of arithmetic, seconds of traffic) of this copy's layer on a card."""
    card, made = catalog.accelerator(name), cost.linear(mine["m"], mine["k"], mine["n"], changed.get("s", 2))
    moved = made.reads["w"] if changed.get("weight_only") else made.bytes
    return made.flops * changed.get("flops", 1) / card.peak(DTYPE), moved / card.bandwidth


def _floor(mine: Mapping[str, Any], name: str) -> float:
    return max(_times(mine, name))


FLOOR_MISTAKES: tuple[tuple[str, Callable[[Mapping[str, Any], str], float]], ...] = (
    (
        say("you took the shorter time; both walls stand, and the longer time counts."),
        lambda x, c: min(_times(x, c)),
    ),
    (
        say("you added the two times; the floor is what full overlap allows, the longer one."),
        lambda x, c: sum(_times(x, c)),
    ),
    (
        say("that is the memory time; right of a card's ridge the arithmetic takes longer."),
        lambda x, c: _times(x, c)[1],
    ),
    (
        say("that is the compute time; left of a card's ridge the memory takes longer."),
        lambda x, c: _times(x, c)[0],
    ),
    (say("right numbers, in microseconds; give seconds."), lambda x, c: 1e6 * _floor(x, c)),
    (say("right numbers, in milliseconds; give seconds."), lambda x, c: 1e3 * _floor(x, c)),
    (
        say("you counted a multiply-add as one operation. It is two."),
        lambda x, c: max(_times(x, c, flops=0.5)),
    ),
    (
        say("you doubled the peak: that is the sparse one. These are dense."),
        lambda x, c: max(_times(x, c, flops=0.5)),
    ),
    (
        say("you forgot the activations: x is read and y is written."),
        lambda x, c: max(_times(x, c, weight_only=1)),
    ),
    (say("you used four bytes a number; bf16 has two."), lambda x, c: max(_times(x, c, s=4))),
    (say("you used one byte a number; bf16 has two."), lambda x, c: max(_times(x, c, s=1))),
)


def _why(mine: Mapping[str, Any], floors: Mapping[str, Any], wrong: list[str]) -> str:
    for words, mistaken in FLOOR_MISTAKES:
        if all(close(floors[name], mistaken(mine, name), WITHIN) for name in mine["cards"]):
            return words
    name = wrong[0]
    compute, memory = _times(mine, name)
    wall = "arithmetic" if compute > memory else "memory"
    return say("On {name} the longer time is that of the {wall}; yours is another.", name=name, wall=wall)


# ---------------------------------------------------------------------------------- one's own

OWN = ("my_device", "my_itemsize", "my_bandwidth", "my_peak", "my_ridge", "my_rows")


def ask_own(draw: Draw) -> Mapping[str, Ask]:
    """What the student measured."""
    return {"own": Values(OWN)}


def judge_own(answers: Mapping[str, ValuesAnswer], asked: Mapping[str, Ask], draw: Draw) -> Verdict:
    """Consistent with each other and possible: nobody can see from a number whether it was measured."""
    answer = answers["own"]
    problem = answer.error or next(iter(answer.errors.values()), "")
    if problem:
        return Verdict(False, sentence(problem))
    own = answer.values
    for name in OWN[1:]:
        if not is_number(own.get(name)) or not own[name] > 0:
            return Verdict(
                False,
                say(
                    "{name} = {value}: give a positive number.",
                    name=name,
                    value=shown(own.get(name)),
                ),
            )
    if own["my_itemsize"] not in (2, 4):
        return Verdict(
            False,
            say(
                "my_itemsize = {value}: 4 on a CPU (fp32), 2 on a GPU (fp16, bf16).",
                value=own["my_itemsize"],
            ),
        )
    impossible = _impossible(own)
    if impossible:
        return Verdict(False, impossible)
    ridge = roofline.ridge(own["my_peak"], own["my_bandwidth"])
    reached = rows(own["my_peak"], own["my_bandwidth"], draw.numbers["width"], own["my_itemsize"])
    table = (row("my_ridge", own["my_ridge"], ridge), row("my_rows", own["my_rows"], reached))
    if not close(own["my_ridge"], ridge, WITHIN):
        words = say("my_ridge is not my_peak / my_bandwidth.")
        if close(own["my_ridge"], 1 / ridge, WITHIN):
            words = say("my_ridge is upside down: it is my_peak / my_bandwidth.")
        return Verdict(False, words, table)
    if not close(own["my_rows"], reached, WITHIN):
        words = say(
            "my_rows is not what the formula says for k = n = {width:,} and this ridge.",
            width=draw.numbers["width"],
        )
        if close(own["my_rows"], own["my_itemsize"] * ridge / 2, WITHIN):
            words = say("my_rows is the limit for wide layers; use your exact rows_to_ridge.")
        return Verdict(False, words, table)
    note = say("consistent and possible; only you know whether they were measured.")
    return Verdict(True, note, table)


def _impossible(own: Mapping[str, Any]) -> str:
    for name, unit in (("my_bandwidth", "bytes/s"), ("my_peak", "FLOP/s")):
        if own[name] < LEAST:
            return say(
                "{name} = {value:.4g}: give {unit}, with no prefix; 20 G{unit} are 20e9.",
                name=name,
                value=own[name],
                unit=unit,
            )
    dtypes = ("bf16", "fp16") if own["my_itemsize"] == 2 else ("fp32", "tf32")
    cards = catalog.accelerators()
    known = [card for card in cards if own.get("my_device") in (card.id, card.short_name)]
    for name, limits, words in (
        ("my_bandwidth", [c.bandwidth for c in known or cards], "bandwidth"),
        (
            "my_peak",
            [max((c.peaks.get(d, 0) for d in dtypes), default=0) for c in known or cards],
            "dense peak",
        ),
    ):
        if own[name] > max(limits) * (1 + ABOVE):
            whose = f"{known[0].short_name}'s" if known else say("the fastest catalogued accelerator's")
            return say(
                "{name} = {value:.3g} is more than {whose} {words} of {limit:.3g}. Was a tensor in "
                "a cache, a byte counted twice, or the clock stopped too early?",
                name=name,
                value=own[name],
                whose=whose,
                words=words,
                limit=max(limits),
            )
    return ""

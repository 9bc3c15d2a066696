"""Records as tables: which there are, and every time of them against the floor and the vendor's kernel.

Rehearsals don't pass (`recorded.measured`), and neither do points with an alarm. Where there is nothing,
one line says so, with the command that changes it. Who rehearses may ask for rehearsals; then each line of
one says that it is.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from book.drawing.number_text import number, si
from book.drawing.tables import EMPTY, Cell, Column, Heading, Html, Table, sortable, table
from book.say import say
from kernels.contract.experiment import Experiment
from kernels.evidence import alarm, recorded
from kernels.evidence.experiments import all_experiments
from kernels.evidence.recorded import goals, limits, schema, write
from kernels.evidence.sweeps import described

COMMAND = "python -m kernels.measure --minutes 8 --out my-card.json"


@dataclass(frozen=True)
class Kept:
    """One time of a record. seconds, low, high: s; sizes: of the kernel.

    floor: seconds of the datasheet's floor, or None for a card or a rate that the catalog lacks.
    of_roof: share of what the ceilings of its own run allow. vendor, vendor_seconds: the baseline of
    the same run, "" and None without one. by: who measured it, "" if they aren't named.
    """

    kernel: str
    card: str
    dtype: str
    sizes: Mapping[str, int]
    seconds: float
    floor: float | None
    of_roof: float | None
    vendor: str
    vendor_seconds: float | None
    date: str
    by: str

    @property
    def of_floor(self) -> float | None:
        """The floor over the time: 1 is as fast as the datasheet allows."""
        return self.floor / self.seconds if self.floor else None

    @property
    def of_vendor(self) -> float | None:
        """The vendor's time over ours: above 1 ours is faster."""
        return self.vendor_seconds / self.seconds if self.vendor_seconds else None


def times(records: Iterable[recorded.Record] | None = None, *, rehearsals: bool = False) -> tuple[Kept, ...]:
    """Every time of this book's kernels in these records (by default the book's), kernel by kernel.

    rehearsals: see `recorded.measured`.
    """
    known = all_experiments()
    found = [
        _kept(record, known[sweep["experiment"]], sweep, point)
        for record in recorded.measured(
            recorded.load_all() if records is None else records, rehearsals=rehearsals
        )
        for sweep in record["sweeps"]
        if sweep["experiment"] in known
        for point in sweep["points"]
        if not point["alarms"] and not _impossible(record, known[sweep["experiment"]], sweep["dtype"], point)
    ]
    order = list(known)
    return tuple(sorted(found, key=lambda one: (order.index(one.kernel), one.card)))


def _impossible(
    record: recorded.Record, experiment: Experiment, dtype: str, point: Mapping[str, Any]
) -> bool:
    """Whether it beats its floor; of a card that the catalog lacks, that of the best rates of all rows."""
    floor = limits.of(record).floor(experiment, dtype, point["sizes"])
    return floor is not None and bool(alarm.against_floor(point["seconds"], floor))


def _kept(
    record: recorded.Record, experiment: Experiment, sweep: Mapping[str, Any], point: Mapping[str, Any]
) -> Kept:
    most, dtype = limits.of(record), sweep["dtype"]
    tops = record["ceilings"].get(sweep.get("arithmetic", dtype))
    cost = experiment.formula(dtype, **point["sizes"])
    vendor = point.get("baseline") or {}
    return Kept(
        experiment.key,
        recorded.device_of(record, most.rows[0].short_name if most.known else ""),
        dtype,
        point["sizes"],
        point["seconds"],
        most.floor(experiment, dtype, point["sizes"]) if most.known else None,
        write.of_roof(cost, point["seconds"], tops) if tops else None,
        vendor.get("name", ""),
        vendor.get("seconds"),
        record["date"][:10],
        record.get("by") or "",
    )


def none_yet() -> str:
    """The line of a page that has no record to show."""
    return say("No card has been measured yet. On a machine with a GPU: {command}", command=COMMAND)


# ----------------------------------------------------------------------------------------- shown


def runs(records: Iterable[recorded.Record] | None = None, *, rehearsals: bool = False) -> Table:
    """One row a record: its card, how much was timed, when, with what; one row saying so if there is none."""
    rows = [
        {
            "card": recorded.device_of(record),
            "kernels": str(len({sweep["experiment"] for sweep in record["sweeps"]})),
            "times": str(sum(len(sweep["points"]) for sweep in record["sweeps"])),
            "date": record["date"][:10],
            "by": record.get("by") or "",
            "run": record["status"],
            "commit": record["commit"][:7],
            "versions": ", ".join(
                f"{name} {record['software'][name]}"
                for name in ("torch", "triton")
                if record["software"].get(name)
            ),
        }
        for record in recorded.measured(
            recorded.load_all() if records is None else records, rehearsals=rehearsals
        )
    ]
    columns = [
        Column("card", say("card")),
        Column("kernels", say("kernels")),
        Column("times", say("times")),
        Column("date", say("date"), align="left"),
        Column("by", say("measured by"), align="left"),
        Column("run", say("run")),
        Column("commit", say("commit"), align="left"),
        Column("versions", say("versions"), align="left"),
    ]
    nothing = dict.fromkeys((column.key for column in columns), "") | {"card": recorded.NOT_MEASURED}
    return table(rows or [nothing], columns)


def goals_reached(
    records: Iterable[recorded.Record], caption: str = "", *, rehearsals: bool = False
) -> Table:
    """Each goal against what each record reached, at the worst of how many sizes: a row a goal and card."""
    rows = [
        _goal(record, outcome) for record in records for outcome in goals.judge(record, rehearsals=rehearsals)
    ]
    columns = [
        Column("kernel", say("kernel")),
        Column("where", say("where"), align="left"),
        Column("ratio", say("what"), align="left"),
        Column("bound", say("at least")),
        Column("reached", say("reached")),
        Column("sizes", say("sizes")),
        Column("outcome", say("goal"), align="left"),
        Column("card", say("card"), align="left"),
    ]
    return table(rows, columns, caption)


def _goal(record: recorded.Record, outcome: goals.Outcome) -> dict[str, str]:
    goal = outcome.goal
    ratios = {
        "torch": say("torch's time over ours"),
        "bandwidth": say("share of the measured bandwidth"),
        "flat": say("shortest time over longest"),
    }
    return {
        "kernel": f"{goal.kernel} {outcome.dtype}".strip(),
        "where": goal.where,
        "ratio": ratios[goal.ratio],
        "bound": f"{goal.bound:.2f}",
        "reached": "" if outcome.reached is None else f"{outcome.reached:.3f}",
        "sizes": str(len(outcome.ratios) or ""),
        "outcome": outcome.words,
        "card": recorded.device_of(record),
    }


def against_floor(rows: Sequence[Kept]) -> Html:
    """One row a time of one kernel: its floor by the datasheet, what share was reached, and the vendor's.

    Sizes that are the same in all rows stand in the caption.
    """
    same = {
        name: value
        for name, value in rows[0].sizes.items()
        if len(rows) > 1 and all(one.sizes.get(name) == value for one in rows)
    }
    headings = (
        Heading(say("card"), numeric=False),
        Heading(say("stored in"), numeric=False),
        Heading(say("size")),
        Heading(say("time"), title=say("median, cold cache")),
        Heading(say("floor"), title=say("by the card's datasheet, dense")),
        Heading(say("of floor"), "%", title=say("100 is as fast as the datasheet allows")),
        Heading(say("of roof"), "%", title=say("of what the ceilings of the same run allow")),
        Heading(say("vendor"), title=say("on the same tensors, by the same clock")),
        Heading(say("speed"), say("× vendor"), title=say("above 1 ours is faster")),
        Heading(say("measured"), numeric=False),
    )
    caption = ", ".join(filter(None, [rows[0].kernel, described(same)]))
    return sortable(headings, [_row(one, same) for one in rows], caption)


def _row(one: Kept, same: Mapping[str, int]) -> tuple[Cell, ...]:
    sizes = {name: value for name, value in one.sizes.items() if name not in same}
    vendor = html.escape(one.vendor)
    return (
        _word(one.card),
        _word(one.dtype),
        Cell(html.escape(described(sizes)), math.prod(sizes.values())),
        _seconds(one.seconds),
        _seconds(one.floor),
        _share(one.of_floor, 100),
        _share(one.of_roof, 100),
        _seconds(one.vendor_seconds, f" <small>({vendor})</small>"),
        _share(one.of_vendor, 1),
        _word(", ".join(filter(None, [one.date, one.by]))),
    )


def _word(text: str) -> Cell:
    return Cell(html.escape(text), text)


def _seconds(value: float | None, note: str = "") -> Cell:
    return Cell(EMPTY) if value is None else Cell(si(value, "s") + note, value)


def _share(value: float | None, scale: float) -> Cell:
    return Cell(EMPTY) if value is None else Cell(number(scale * value, 2 if scale > 1 else 3), value)


@dataclass(frozen=True)
class Shelf:
    """What the page "Records" shows: the runs, the goals, and a table a kernel; or one line."""

    records: tuple[recorded.Record, ...]
    rehearsals: bool = False

    def blocks(self) -> Iterator[Table | Html]:
        """The runs, the goals against what each reached, then one table for each kernel that was timed."""
        yield runs(self.records, rehearsals=self.rehearsals)
        words = say("Goals: ratios of two numbers of one run")
        yield goals_reached(self.records, words, rehearsals=self.rehearsals)
        rows = times(self.records, rehearsals=self.rehearsals)
        for kernel in dict.fromkeys(one.kernel for one in rows):
            yield against_floor([one for one in rows if one.kernel == kernel])

    def _repr_html_(self) -> str:
        if self.records:
            return "".join(block._repr_html_() for block in self.blocks())
        command = html.escape(COMMAND)
        return f"<p>{html.escape(none_yet()).replace(command, f'<code>{command}</code>')}</p>"

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.blocks())) if self.records else none_yet()


def shelf(records: Iterable[recorded.Record] | None = None, *, rehearsals: bool = False) -> Shelf:
    """Every record (by default the book's) against floor and vendor, by kernel and card."""
    every = recorded.load_all() if records is None else records
    return Shelf(recorded.measured(every, rehearsals=rehearsals), rehearsals)


def fields(name: str) -> Table:
    """What is in one part of a record, by its name in `schema.TABLES`: a row a field."""
    rows = [
        {
            "field": field.name,
            "type": " / ".join(field.choices) if field.choices else field.json,
            "unit": field.unit,
            "says": field.says,
            "optional": say("may be absent") if field.optional else "",
        }
        for field in schema.TABLES[name]
    ]
    columns = [
        Column("field", say("field")),
        Column("type", say("type"), align="left"),
        Column("unit", say("unit"), align="left"),
        Column("says", say("what it says"), align="left"),
        Column("optional", "", align="left"),
    ]
    return table(rows, columns)


def form() -> Html:
    """All that is in a record: a fold a part."""
    folds = "".join(
        f"<details><summary><code>{html.escape(part)}</code></summary>{fields(part)._repr_html_()}</details>"
        for part in schema.TABLES
    )
    return Html(f"<div>{folds}</div>", alt="\n\n".join(repr(fields(part)) for part in schema.TABLES))

"""What `launch_overhead` found on one machine, in tables and a figure; and what was kept of such runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from book.drawing.number_text import si
from book.drawing.tables import Column, table
from book.say import say
from kernels.evidence import tables
from kernels.evidence.recorded import NOT_MEASURED, REHEARSED, device_of, load_all, measured
from kernels.evidence.timed.launch_fit import Law, Line
from kernels.evidence.timed.machine import gpu_here, why_not_timed

UNTRUSTED = say("not trusted")


def _shown(seconds: float, doubts: Sequence[str]) -> str:
    """A slope or an intercept for people: nothing where it is doubted, and no time below nought."""
    if doubts:
        return UNTRUSTED
    return si(seconds, "s") if seconds > 0 else say("about 0")


@dataclass(frozen=True)
class Overhead:
    """One machine's launches. bandwidth: bytes/s that the floors were made with, and by what.

    status: rung or machine -> how it stands, among them "not measured yet" for the GPU if this is a CPU.
    """

    where: str
    bandwidth: float
    bandwidth_by: str
    lines: tuple[Line, ...]
    laws: tuple[Law, ...]
    rung: str = "timed"

    @property
    def status(self) -> dict[str, str]:
        """How each rung stands, in words, and what is not trusted, with the reasons."""
        fits = [(f"{one.work}, {one.way}", one.doubts) for one in self.lines]
        fits += [
            (say("{launches} layers, {way}", launches=one.launches, way=one.way), one.doubts)
            for one in self.laws
        ]
        doubted = "; ".join(f"{name}: {say(' and ').join(why)}" for name, why in fits if why)
        doubts = {UNTRUSTED: doubted} if doubted else {}
        if self.rung in ("recorded", REHEARSED):
            return {self.rung: self.where, **doubts}
        gpu = why_not_timed(gpu_here())
        return {
            "timed": self.where,
            **doubts,
            **({say("timed, on a GPU"): f"{NOT_MEASURED}: {gpu}"} if gpu else {}),
            "recorded": "; ".join(o.where for o in recorded()) or NOT_MEASURED,
        }

    def as_record(self) -> dict[str, Any]:
        """As a record keeps it, under "overhead"."""
        return asdict(self)

    def tables(self) -> list[Any]:
        """Slopes and intercepts of both sweeps, and how each rung stands. Doubted numbers are not shown."""
        right = {"align": "right"}
        lines = [
            {
                "work": one.work,
                "way": one.way,
                "most": say(
                    "{launches} in {seconds}",
                    launches=one.counts[-1],
                    seconds=si(one.seconds[-1], "s"),
                ),
                "launch": _shown(one.per_launch, one.doubts),
                "step": _shown(one.per_step, one.doubts),
            }
            for one in self.lines
        ]
        columns = [
            Column("work", say("work")),
            Column("way", say("way")),
            Column("most", say("largest step"), **right),
        ]
        columns += [
            Column("launch", say("slope, a launch"), **right),
            Column("step", say("intercept, a step"), **right),
        ]
        laws = [
            {
                "way": say("{launches} layers, {way}", launches=one.launches, way=one.way),
                "efficiency": UNTRUSTED if one.doubts else f"{one.fit.efficiency:.2f}",
                "overhead": _shown(one.fit.overhead, one.doubts),
                "each": _shown(one.fit.overhead / one.launches, one.doubts),
            }
            for one in self.laws
        ]
        wide = [Column("way", say("way")), Column("efficiency", say("efficiency"), **right)]
        wide += [
            Column("overhead", say("overhead, a step"), **right),
            Column("each", say("a launch"), **right),
        ]
        law = say(
            "the step law, floor at {bandwidth} ({bandwidth_by})",
            bandwidth=si(self.bandwidth, "B/s"),
            bandwidth_by=self.bandwidth_by,
        )
        return [
            table(
                lines,
                columns,
                say(
                    "{rung}, {where}: steps of {counts} launches",
                    rung=self._rung,
                    where=self.where,
                    counts=self._counts(),
                ),
            ),
            table(laws, wide, f"{self._rung}, {self.where}: {law}"),
            tables.rungs(self.status),
        ]

    @property
    def finding(self) -> str:
        """What a launch adds by either sweep, where both are believed; whatever it is."""
        line, law = self.lines[-1], self.laws[-1]
        if line.doubts or law.doubts:
            return say(
                "The times of one sweep or both make no line that can be believed (the last table says why): "
                "this machine was too busy, or too uneven, to show what a launch costs."
            )
        a_launch = law.fit.overhead / law.launches
        return say(
            "Of {work}, {way}, one more launch adds {slope}, its work included, and a step costs {step} "
            "once. By the step law each launch costs {launch}, its work taken off.",
            work=line.work,
            way=line.way,
            slope=_shown(line.per_launch, ()),
            step=_shown(line.per_step, ()),
            launch=_shown(a_launch, ()),
        )

    @property
    def _rung(self) -> str:
        """The rung in words; a rehearsal is on none."""
        return say("rehearsed") if self.rung == REHEARSED else tables.RUNGS[self.rung]

    def _counts(self) -> str:
        counts = self.lines[0].counts
        return say("{least} to {most}", least=counts[0], most=counts[-1])

    def _repr_html_(self) -> str:
        inner = "".join(block._repr_html_() for block in self.tables())
        inner += tables.finding(self.finding)
        return f'<div class="rl-evidence">{inner}</div>'

    def __repr__(self) -> str:
        return "\n\n".join([*(repr(block) for block in self.tables()), self.finding])

    def figure(self, caption: str = "", number: str = "") -> Any:
        """One matplotlib figure: time of a step against its launches, and the fitted lines.

        caption, number: as `book.drawing.svg.show` has them.
        """
        from book.drawing import (
            captions,
            figures,
        )  # need matplotlib: a machine that only measures may lack it
        from book.drawing.axes import draw_series

        figure, axes = figures.new()
        axes.set_xlabel(say("launches a step"))
        axes.set_title(
            say("time of a step (µs)"), loc="left", x=0, color=figures.colour("dim"), fontsize=10.5
        )
        words = []
        for one in self.lines:
            ends = (0, one.counts[-1])
            if not one.doubts:
                draw_series(axes, "predicted", ends, [1e6 * one.fit.law(n) for n in ends])
            draw_series(axes, self.rung, one.counts, [1e6 * s for s in one.seconds])
            found = (
                one.doubts[0]
                if one.doubts
                else say(
                    "adds {seconds} a launch",
                    seconds=si(one.per_launch, "s"),
                )
            )
            words.append(f"{one.work}, {one.way}: {found}")
        axes.set(xlim=(0, None), ylim=(0, None))
        self._name_lines(figure, axes)
        figure.set_label(
            say(
                "Time of a step against its launches, {where}: {words}.",
                where=self.where,
                words="; ".join(words),
            )
        )
        return captions.put(figure, caption, number)

    def _name_lines(self, figure: Any, axes: Any) -> None:
        """Names in the right margin, beside the largest steps and apart from each other."""
        from book.drawing.label_placement import spread  # matplotlib again
        from book.drawing.svg import colour

        figure.draw_without_rendering()
        rising = sorted(self.lines, key=lambda one: one.seconds[-1])
        ends = [axes.transData.transform((0, 1e6 * one.seconds[-1]))[1] for one in rising]
        points = 72 / figure.dpi
        for one, end, place in zip(rising, ends, spread(ends, 15), strict=True):
            axes.annotate(
                f"{one.work}, {one.way}",
                (one.counts[-1], 1e6 * one.seconds[-1]),
                (10, (place - end) * points),
                textcoords="offset points",
                va="center",
                fontsize=9.5,
                color=colour("text"),
            )


# -------------------------------------------------------------------------------- kept results


def recorded(
    records: Iterable[Mapping[str, Any]] | None = None, *, rehearsals: bool = False
) -> tuple[Overhead, ...]:
    """What `python -m kernels.measure` kept; () means "not measured yet".

    rehearsals: see `recorded.measured`.
    """
    found = []
    for record in measured(load_all() if records is None else records, rehearsals=rehearsals):
        kept = record.get("overhead")
        if kept:
            where = f"{device_of(record)}, {record['date'][:10]}"
            lines = tuple(Line(**_tuples(one)) for one in kept["lines"])
            laws = tuple(Law(**_tuples(one)) for one in kept["laws"])
            rung = "recorded" if measured([record]) else REHEARSED
            found.append(Overhead(where, kept["bandwidth"], kept["bandwidth_by"], lines, laws, rung))
    return tuple(found)


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}

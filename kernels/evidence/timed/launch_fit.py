"""What `launch_overhead` found: lines through the times of steps, and how far to trust them.

A fit always gives two numbers. They are worth something only if the points lie on a line and the
numbers can be: no kernel beats the bandwidth, and no step begins before it is asked for. `doubts`
says in words where that fails, and every table shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from book.serving import step_law
from kernels.evidence import alarm
from kernels.evidence.recorded import NOT_MEASURED, load_all
from kernels.evidence.timed.machine import gpu_here, why_not_timed

UNTRUSTED = "not trusted"
OFF_LINE = 0.25  # of its own time: a point that lies further from the line spoils the fit
BELOW_NOUGHT = 0.2  # of the shortest step: an intercept this negative is more than rounding


def _doubts(fit: step_law.Fit, seconds: Sequence[float]) -> list[str]:
    """Why a line through these times should not be believed, in words; [] if it may be."""
    found = []
    off = max(abs(missed) / time for missed, time in zip(fit.residuals, seconds, strict=True))
    if off > OFF_LINE:
        found.append(f"the points are no line (one is {100 * off:.0f} % off)")
    if fit.overhead < -BELOW_NOUGHT * min(seconds):
        found.append("the intercept is below nought")
    return found


def _shown(seconds: float, doubts: Sequence[str]) -> str:
    """A slope or an intercept for people: nothing where it is doubted, and no time below nought."""
    from book.drawing.number_text import si

    if doubts:
        return UNTRUSTED
    return si(seconds, "s") if seconds > 0 else "about 0"


@dataclass(frozen=True)
class Line:
    """Steps of n launches of one work. way: "eager" or "graph".

    seconds: the quiet runs' (20th percentile) at each count, since other programs only add time.
    """

    work: str
    way: str
    counts: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def fit(self) -> step_law.Fit:
        """The line through them; its "floor" is the number of launches, so slope is s a launch."""
        return step_law.fit(self.counts, self.seconds, relative=True)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the slope and the intercept should not be believed; () if they may be."""
        found = _doubts(self.fit, self.seconds)
        if self.fit.slope <= 0:
            found.append("more launches took no longer")
        return tuple(found)

    @property
    def per_launch(self) -> float:
        """Seconds that one more launch adds."""
        return self.fit.slope

    @property
    def per_step(self) -> float:
        """Seconds that a step costs once, however many launches it has."""
        return self.fit.overhead


@dataclass(frozen=True)
class Law:
    """Steps of `launches` linear layers, one row each, at several sizes k = n. floors, seconds: s."""

    way: str
    launches: int
    sizes: tuple[int, ...]
    floors: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def fit(self) -> step_law.Fit:
        """time = floor / efficiency + overhead."""
        return step_law.fit(self.floors, self.seconds, relative=True)

    def alarms(self, bandwidth: float) -> tuple[alarm.Alarm, ...]:
        """Every way in which this law is impossible on a machine of that bandwidth, bytes/s.

        A slope below one reads faster than the bandwidth; so does a step that ends before its floor.
        """
        slope = self.fit.slope
        if slope <= 0:
            return ()  # no rate at all: `doubts` says so
        fitted = alarm.inspect(bytes_per_s=bandwidth / slope, measured_bandwidth=bandwidth)
        steps = [
            a
            for floor, seconds in zip(self.floors, self.seconds, strict=True)
            for a in alarm.against_floor(seconds, floor)
        ]
        return (*fitted, *steps)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why efficiency and overhead should not be believed; () if they may be."""
        found = _doubts(self.fit, self.seconds)
        if self.fit.slope <= 0:
            found.append("larger layers took no longer")
        elif self.alarms(1.0):  # a matter of ratios: the bandwidth cancels
            found.append("impossible: it beats the bandwidth")
        return tuple(found)


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
        fits += [(f"{one.launches} layers, {one.way}", one.doubts) for one in self.laws]
        doubted = "; ".join(f"{name}: {' and '.join(why)}" for name, why in fits if why)
        doubts = {UNTRUSTED: doubted} if doubted else {}
        if self.rung == "recorded":
            return {"recorded": self.where, **doubts}
        gpu = why_not_timed(gpu_here())
        return {
            "timed": self.where,
            **doubts,
            **({"timed, on a GPU": f"{NOT_MEASURED}: {gpu}"} if gpu else {}),
            "recorded": "; ".join(o.where for o in recorded()) or NOT_MEASURED,
        }

    def as_record(self) -> dict[str, Any]:
        """As a record keeps it, under "overhead"."""
        return asdict(self)

    def tables(self) -> list[Any]:
        """Slopes and intercepts of both sweeps, and how each rung stands. Doubted numbers are not shown."""
        from book.drawing.number_text import Column, si, table
        from kernels.evidence import tables

        right = {"align": "right"}
        lines = [
            {
                "work": one.work,
                "way": one.way,
                "most": f"{one.counts[-1]} in {si(one.seconds[-1], 's')}",
                "launch": _shown(one.per_launch, one.doubts),
                "step": _shown(one.per_step, one.doubts),
            }
            for one in self.lines
        ]
        columns = ["work", "way", Column("most", "largest step", **right)]
        columns += [
            Column("launch", "slope, a launch", **right),
            Column("step", "intercept, a step", **right),
        ]
        laws = [
            {
                "way": f"{one.launches} layers, {one.way}",
                "efficiency": UNTRUSTED if one.doubts else f"{one.fit.efficiency:.2f}",
                "overhead": _shown(one.fit.overhead, one.doubts),
                "each": _shown(one.fit.overhead / one.launches, one.doubts),
            }
            for one in self.laws
        ]
        wide = ["way", Column("efficiency", "efficiency", **right)]
        wide += [Column("overhead", "overhead, a step", **right), Column("each", "a launch", **right)]
        law = f"the step law, floor at {si(self.bandwidth, 'B/s')} ({self.bandwidth_by})"
        return [
            table(lines, columns, f"{self.rung}, {self.where}: steps of {self._counts()} launches"),
            table(laws, wide, f"{self.rung}, {self.where}: {law}"),
            tables.rungs(self.status),
        ]

    def _counts(self) -> str:
        counts = self.lines[0].counts
        return f"{counts[0]} to {counts[-1]}"

    def _repr_html_(self) -> str:
        inner = "".join(block._repr_html_() for block in self.tables())
        return f'<div class="rl-evidence">{inner}</div>'

    def __repr__(self) -> str:
        return "\n\n".join(repr(block) for block in self.tables())

    def figure(self) -> Any:
        """One matplotlib figure: time of a step against its launches, and the fitted lines."""
        from book.drawing import figures
        from book.drawing.axes import draw_series
        from book.drawing.number_text import si

        figure, axes = figures.new()
        axes.set_xlabel("launches a step")
        axes.set_title("time of a step (µs)", loc="left", x=0, color=figures.colour("dim"), fontsize=10.5)
        words = []
        for one in self.lines:
            ends = (0, one.counts[-1])
            if not one.doubts:
                draw_series(axes, "predicted", ends, [1e6 * one.fit.law(n) for n in ends])
            draw_series(axes, self.rung, one.counts, [1e6 * s for s in one.seconds])
            found = one.doubts[0] if one.doubts else f"adds {si(one.per_launch, 's')} a launch"
            words.append(f"{one.work}, {one.way}: {found}")
        axes.set(xlim=(0, None), ylim=(0, None))
        self._name_lines(figure, axes)
        figure.set_label(f"Time of a step against its launches, {self.where}: {'; '.join(words)}.")
        return figure

    def _name_lines(self, figure: Any, axes: Any) -> None:
        """Names in the right margin, beside the largest steps and apart from each other."""
        from book.drawing.label_placement import spread
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


def recorded(records: Iterable[Mapping[str, Any]] | None = None) -> tuple[Overhead, ...]:
    """What `python -m kernels.measure` kept; () means "not measured yet"."""
    found = []
    for record in load_all() if records is None else records:
        kept = record.get("overhead")
        if kept:
            where = f"{record['device']['name']}, {record['date'][:10]}"
            lines = tuple(Line(**_tuples(one)) for one in kept["lines"])
            laws = tuple(Law(**_tuples(one)) for one in kept["laws"])
            found.append(Overhead(where, kept["bandwidth"], kept["bandwidth_by"], lines, laws, "recorded"))
    return tuple(found)


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}

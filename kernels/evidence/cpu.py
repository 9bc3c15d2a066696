"""The roofline of the CPU that is here, timed with torch: a real machine with a real ridge, in some seconds.

A CPU has the same two limits as a GPU. This is the rung "timed" on "this CPU, torch": torch's
kernels, not ours, which is said wherever it is shown. It is a call of its own, never part of a
GPU's evidence. Nothing here fails because a machine is slow or busy: `finding` says what its times show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from book import cost
from book.drawing.number_text import si
from book.drawing.tables import Column, Table, table
from book.say import say, translated
from kernels.evidence import cpu_dial, tables
from kernels.evidence.timed import cpu as timing
from kernels.evidence.timed.ceilings import Ceilings
from kernels.evidence.timed.clocks import Clock, Gain, Timing, WallClock, gain
from kernels.evidence.timed.cpu import ITEMSIZE, LABEL, ROWS, STREAM, WIDTHS
from kernels.evidence.timed.machine import cpu_here

SHARED = 0.65  # of the rows read the weights for nothing more, at the least, if few rows share the read
BEYOND = 1.1  # times the measured roof, at most, of a point that is held to lie under it
MANY = 6.0  # times the FLOP/s of one row, at the least, of the most rows


@dataclass(frozen=True)
class CpuRoofline:
    """What this CPU did. Seconds, bytes/s, FLOP/s, FLOP/byte; all in fp32 with torch.

    copy, triad, read: bytes/s. dial: a long run of numbers, each group of k of them times one k by k
    matrix, so each number read buys 2k FLOPs: intensity is near k / 4, a dial for the whole roof.
    linear: y[m, n] = x[m, k] @ w[k, n] with k = n fixed and large. Both cost `cost.linear`.
    product: FLOP/s of one square product, which is no point of either: the ceilings are made of it and
    of the streams, so that the points may reach them, miss them, or beat them.
    Each point: sizes m, k, n and what `timing.timed_point` gives; those of `linear` have their "form".
    """

    name: str
    threads: int
    copy: float
    triad: float
    read: float
    dial: tuple[dict[str, Any], ...]
    linear: tuple[dict[str, Any], ...]
    product: float

    @property
    def ceilings(self) -> Ceilings:
        """The CPU's measured roof: the best stream and a square product, and none of the points."""
        peaks = {"torch matmul": self.product}
        bandwidths = {"torch copy": self.copy, "torch triad": self.triad, "torch read": self.read}
        best = max(bandwidths, key=bandwidths.get)
        return Ceilings("fp32", bandwidths[best], best, self.product, "torch matmul", bandwidths, peaks)

    def above(self, which: str) -> float:
        """The highest point of "dial" or "linear", in multiples of the measured roof over it."""
        roof = self.ceilings.roof(LABEL)
        points = {"linear": self.linear, "dial": self.dial}[which]
        return max(p["flops_per_s"] / roof.attainable(p["intensity"]) for p in points)

    def has_roof(self, which: str) -> bool:
        """Whether a roof may be drawn over these points: none lies above it, and the dial levels off."""
        return self.above(which) <= BEYOND and (which == "linear" or cpu_dial.levels_off(self.dial))

    def rate(self, m: int) -> float:
        """FLOP/s of the linear layer at `m` rows. Raises ValueError for rows that were not timed."""
        point = self._at(m)
        return cost.linear(m, point["k"], point["n"], ITEMSIZE).flops / point["seconds"]

    def gain(self, m: int) -> Gain:
        """How many times the FLOP/s of one row `m` rows reached. Raises ValueError as `rate` does."""
        one, more = (Timing(p["seconds"], p["low"], p["high"], 1) for p in (self._at(1), self._at(m)))
        return gain(one, more, work=m)

    def _at(self, m: int) -> dict[str, Any]:
        for point in self.linear:
            if point["m"] == m:
                return point
        raise ValueError(f"m = {m}: not timed; choose one of {', '.join(str(p['m']) for p in self.linear)}.")

    @property
    def finding(self) -> str:
        """What the times of few rows and of many say of the shared read of the weights, whatever it is."""
        few, many = self.linear[1], self.linear[-1]
        return f"{_few(few, self.gain(few['m']))} {_many(many, self.gain(many['m']))}"

    def finding_of(self, which: str) -> str:
        """What the times of one series say, whatever it is. which: "linear" (as `finding`) or "dial"."""
        return {"linear": lambda: self.finding, "dial": lambda: cpu_dial.finding(self)}[which]()

    def points(self, which: str = "linear") -> list[dict[str, Any]]:
        """One series for the explorer. which: "linear" or "dial"."""
        series = {"linear": self.linear, "dial": self.dial}[which]
        return [{"rung": "timed", "label": f"{which}, {LABEL}", "accelerator": None, "points": list(series)}]

    def figure(self, *which: str, caption: str = "", number: str = "") -> Any:
        """One matplotlib figure: the points, and the measured roof if this run shows one.

        which: "dial", "linear" or both.
        caption, number: as `book.drawing.svg.show` has them. What the times show is added to both the
        alt text and, for the dial, the caption: a caption that is written beforehand can't know it.
        """
        from book.drawing import (
            captions,
            figures,
        )  # need matplotlib: a machine that only measures may lack it

        names = which or ("dial", "linear")
        tops = self.ceilings
        alt = say(
            "This CPU as torch measured it: a stream at {bandwidth:.0f} GB/s and a product at {peak:.0f} "
            "GFLOP/s.",
            bandwidth=tops.bandwidth / 1e9,
            peak=tops.peak / 1e9,
        )
        rises = [_rise(name, {"dial": self.dial, "linear": self.linear}[name], tops) for name in names]
        series = [s for name in names for s in self.points(name)]
        found = [self.finding_of(name) for name in names]
        drawn = all(self.has_roof(name) for name in names)
        about = self._about_the_roof(max(self.above(name) for name in names), drawn)
        made = figures.roofline(
            [tops.roof(LABEL)], series, alt=" ".join([alt, *rises, *found, about]), roofs_drawn=drawn
        )
        if caption:
            dial = [self.finding_of("dial")] if "dial" in names else []
            caption = " ".join([translated(caption), *dial, about])
        return captions.put(made, caption, number)

    def _about_the_roof(self, above: float, drawn: bool) -> str:
        """What the figure's roof is, or why it has none."""
        if drawn:
            return say("The roof is that of a stream and of a square product, timed in this run.")
        if above > BEYOND:
            return say(
                "No roof is drawn: a point lies at {above:.2f} times what a stream and a square product of "
                "this run allow, so those two are no ceiling.",
                above=above,
            )
        return say("No roof is drawn, since this run shows none.")

    def table(self) -> Table:
        """One row for each row count of the linear layer, with the form in which torch was quickest."""
        cells = [
            {
                "m": p["m"],
                "intensity": p["intensity"],
                "time": si(p["seconds"], "s"),
                "flops": si(p["flops_per_s"], "FLOP/s"),
                "bytes": si(p["bytes_per_s"], "B/s"),
                "form": p["form"],
            }
            for p in self.linear
        ]
        columns = [
            "m",
            Column("intensity", "FLOP/byte"),
            Column("time", say("time"), align="right"),
            Column("flops", say("arithmetic"), align="right"),
            Column("bytes", say("traffic"), align="right"),
            Column("form", say("quickest as")),
        ]
        caption = say(
            "timed, {label} ({name}, threads: {threads}, fp32): copy {copy}, triad {triad}, read {read}; "
            "linear, k = n = {size:,}",
            label=LABEL,
            name=self.name,
            threads=self.threads,
            copy=si(self.copy, "B/s"),
            triad=si(self.triad, "B/s"),
            read=si(self.read, "B/s"),
            size=self.linear[0]["k"],
        )
        return table(cells, columns, caption)

    def _repr_html_(self) -> str:
        return f'<div class="rl-evidence">{self.table()._repr_html_()}{tables.finding(self.finding)}</div>'

    def __repr__(self) -> str:
        return f"{self.table()!r}\n\n{self.finding}"


def _few(point: dict[str, Any], found: Gain) -> str:
    shown = found.above(SHARED * point["m"])
    if shown:
        return say(
            "{rows} rows ran at {gain:.1f} times the FLOP/s of one: the weights were read once for all.",
            rows=point["m"],
            gain=found.likely,
        )
    if shown is None:
        return say(
            "{rows} rows ran at {gain:.1f} times the FLOP/s of one, but the times scatter too much to tell "
            "whether they shared the read: this machine was too busy to show it.",
            rows=point["m"],
            gain=found.likely,
        )
    return say(
        "{rows} rows ran at only {gain:.1f} times the FLOP/s of one, although one read of the weights would "
        "do for all: in this run even the quickest form of torch's product, {form}, does not show it.",
        rows=point["m"],
        gain=found.likely,
        form=point["form"],
    )


def _many(point: dict[str, Any], found: Gain) -> str:
    rows, gain = point["m"], found.likely
    shown = found.above(MANY)
    if shown:
        return say("{rows} rows ran at {gain:.0f} times the FLOP/s of one.", rows=rows, gain=gain)
    if shown is None:
        return say("For {rows} rows it was {gain:.1f} times, which is no more certain.", rows=rows, gain=gain)
    return say("For {rows} rows it was {gain:.1f} times: here arithmetic binds early.", rows=rows, gain=gain)


def _rise(name: str, points: tuple[dict[str, Any], ...], tops: Ceilings) -> str:
    """What the points of one series do, for the alt text."""
    first, last = points[0], points[-1]
    return say(
        "{name}: from {low:.3g} to {high:.3g} FLOP/byte the rate goes from {slow} to {fast}, "
        "which is {share:.0%} of the peak.",
        name=name,
        low=first["intensity"],
        high=last["intensity"],
        slow=si(first["flops_per_s"], "FLOP/s"),
        fast=si(last["flops_per_s"], "FLOP/s"),
        share=last["flops_per_s"] / tops.peak,
    )


def cpu_roofline(
    *,
    size: int = 8192,
    rows: tuple[int, ...] = ROWS,
    widths: tuple[int, ...] = WIDTHS,
    clock: Clock | None = None,
    budget: float = 0.15,
) -> CpuRoofline:
    """Time copy, triad, the dial and a linear layer on this CPU; about 8 seconds.

    size: k = n of the linear layer; its weights must be larger than the last-level cache.
    rows: two row counts or more, rising, the first of them 1. budget: seconds of timing a point.
    Raises nothing about speed: `finding` says in words what the times show.
    """
    import torch

    clock = clock or WallClock()
    return CpuRoofline(
        cpu_here().name,
        torch.get_num_threads(),
        *_stream_rates(clock, budget),
        tuple(timing.dial(clock, width, budget) for width in widths),
        tuple(timing.linear(clock, size, rows, budget)),
        timing.product(clock, budget),
    )


def _stream_rates(clock: Clock, budget: float, n: int = STREAM) -> tuple[float, float, float]:
    took = timing.stream(clock, budget, n)
    copied, added = (work(n, ITEMSIZE).bytes for work in (cost.copy, cost.triad))
    return (
        copied / took["copy"].seconds,
        added / took["triad"].seconds,
        n * ITEMSIZE / took["read"].seconds,
    )

"""The roofline of the CPU that is here, timed with torch: a real machine with a real ridge, in a few seconds.

A CPU has the same two limits as a GPU. This is the rung "timed" on "this CPU, torch": torch's
kernels, not ours, which is said wherever it is shown. It is a call of its own, never part of a
GPU's evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from book import cost
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.timed.ceilings import Ceilings
from kernels.evidence.timed.clocks import Clock, Timing, WallClock
from kernels.evidence.timed.machine import cpu_here

LABEL = "this CPU, torch"
ROWS = (1, 2, 16, 64, 256)
WIDTHS = (4, 8, 16, 32, 64, 128, 256)  # of the dial: intensity is near width / 4
STREAM = 2**25  # numbers that copy and triad move: larger than any cache
ITEMSIZE = 4  # fp32: the one dtype whose speed is steady on CPUs


@dataclass(frozen=True)
class CpuRoofline:
    """What this CPU did. Seconds, bytes/s, FLOP/s, FLOP/byte; all in fp32 with torch.

    copy, triad, read: bytes/s. dial: a long run of numbers, each group of k of them times one k by k
    matrix, so each number read buys 2k FLOPs: intensity is near k / 4, a dial for the whole roof.
    linear: y[m, n] = x[m, k] @ w[k, n] with k = n fixed and large. Both cost `cost.linear`.
    Each point: sizes m, k, n, "seconds", "low" (the quiet runs'), "intensity", "flops_per_s", "bytes_per_s".
    """

    name: str
    threads: int
    copy: float
    triad: float
    read: float
    dial: tuple[dict[str, Any], ...]
    linear: tuple[dict[str, Any], ...]

    @property
    def ceilings(self) -> Ceilings:
        """The best of each: the CPU's measured roof."""
        timed = {f"torch linear, m = {p['m']}": p for p in self.linear}
        timed |= {f"torch dial, width {p['k']}": p for p in self.dial}
        peaks = {name: p["flops_per_s"] for name, p in timed.items()}
        # One row of a linear layer only reads, and often beats every stream.
        bandwidths = {"torch copy": self.copy, "torch triad": self.triad, "torch read": self.read}
        bandwidths |= {name: p["bytes_per_s"] for name, p in timed.items()}
        best, top = max(bandwidths, key=bandwidths.get), max(peaks, key=peaks.get)
        return Ceilings("fp32", bandwidths[best], best, peaks[top], top, bandwidths, peaks)

    def rate(self, m: int, seconds: str = "seconds") -> float:
        """FLOP/s of the linear layer at `m` rows. seconds: "seconds" (median) or "low" (quiet runs)."""
        for point in self.linear:
            if point["m"] == m:
                return cost.linear(point["m"], point["k"], point["n"], ITEMSIZE).flops / point[seconds]
        raise ValueError(f"m = {m}: not timed; choose one of {', '.join(str(p['m']) for p in self.linear)}.")

    def check(self) -> None:
        """Raise PhysicsDisagrees unless the two shapes that every CPU shows are there.

        Two rows must be clearly faster than one (the weights are read once for both), and 256 rows
        much faster. The quietest runs are compared, since other programs only add time; absolute
        rates are not checked: they move by a fifth between quiet runs.
        """
        for m, at_least in ((2, 1.3), (256, 6.0)):
            gain = self.rate(m, "low") / self.rate(1, "low")
            if not gain > at_least:
                raise PhysicsDisagrees(
                    f"{m} rows ran at {gain:.2f} times the FLOP/s of one row; more than {at_least} was "
                    "expected. The usual cause is a busy machine: close other programs and run it again."
                )

    def points(self, which: str = "linear") -> list[dict[str, Any]]:
        """One series for the explorer. which: "linear" or "dial"."""
        series = {"linear": self.linear, "dial": self.dial}[which]
        return [{"rung": "timed", "label": f"{which}, {LABEL}", "accelerator": None, "points": list(series)}]

    def figure(self, *which: str) -> Any:
        """One matplotlib figure: the measured roof and the points. which: "dial", "linear" or both."""
        from book.drawing import figures  # drawing needs matplotlib, timing does not

        tops = self.ceilings
        series = [s for name in which or ("dial", "linear") for s in self.points(name)]
        return figures.roofline(
            [tops.roof(LABEL)],
            series,
            alt=(
                f"The roofline of this CPU as torch measured it: {tops.bandwidth / 1e9:.0f} GB/s and "
                f"{tops.peak / 1e9:.0f} GFLOP/s. The timed points climb along the bandwidth and level off."
            ),
        )

    def _table(self) -> Any:
        from book.drawing.number_text import Column, si, table

        cells = [
            {
                "m": p["m"],
                "intensity": p["intensity"],
                "time": si(p["seconds"], "s"),
                "flops": si(p["flops_per_s"], "FLOP/s"),
                "bytes": si(p["bytes_per_s"], "B/s"),
            }
            for p in self.linear
        ]
        columns = [
            "m",
            Column("intensity", "FLOP/byte"),
            Column("time", "time", align="right"),
            Column("flops", "arithmetic", align="right"),
            Column("bytes", "traffic", align="right"),
        ]
        size, rates = self.linear[0]["k"], (self.copy, self.triad, self.read)
        words = ", ".join(
            f"{name} {si(rate, 'B/s')}" for name, rate in zip(("copy", "triad", "read"), rates, strict=True)
        )
        return table(
            cells,
            columns,
            f"timed, {LABEL} ({self.name}, {self.threads} threads, fp32): {words}; linear, k = n = {size:,}",
        )

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def __repr__(self) -> str:
        return repr(self._table())


def cpu_roofline(
    *,
    size: int = 8192,
    rows: tuple[int, ...] = ROWS,
    widths: tuple[int, ...] = WIDTHS,
    clock: Clock | None = None,
    budget: float = 0.15,
) -> CpuRoofline:
    """Time copy, triad, the dial and a linear layer on this CPU; about 6 seconds.

    size: k = n of the linear layer; its weights must be larger than the last-level cache.
    budget: seconds of timing a point. Raises nothing about speed: call `.check()` for that.
    """
    import torch

    clock = clock or WallClock()
    return CpuRoofline(
        cpu_here().name,
        torch.get_num_threads(),
        *_stream_rates(clock, budget),
        tuple(dial(clock, width, budget) for width in widths),
        tuple(linear(clock, size, rows, budget)),
    )


def _stream_rates(clock: Clock, budget: float, n: int = STREAM) -> tuple[float, float, float]:
    took = stream(clock, budget, n)
    moved = {
        "copy": cost.copy(n, ITEMSIZE).bytes,
        "triad": cost.triad(n, ITEMSIZE).bytes,
        "read": n * ITEMSIZE,
    }
    return tuple(moved[name] / took[name].seconds for name in ("copy", "triad", "read"))


def stream(clock: Clock, budget: float = 0.15, n: int = STREAM) -> dict[str, Timing]:
    """How long "copy" (y = a), "triad" (y = a + 3 b) and "read" (a sum) take on n fp32 numbers."""
    import torch

    a, b, y = torch.rand(n), torch.rand(n), torch.rand(n)
    return {
        "copy": clock.time(lambda: y.copy_(a), budget),
        "triad": clock.time(lambda: torch.add(a, b, alpha=3.0, out=y), budget),
        "read": clock.time(a.sum, budget),
    }


def dial(clock: Clock, width: int, budget: float = 0.15, n: int = 2**24) -> dict[str, Any]:
    """n numbers in groups of `width`, each group times one matrix: a point (see CpuRoofline)."""
    import torch

    m = n // width
    x, w, y = torch.rand(m, width), torch.rand(width, width), torch.empty(m, width)
    timing = clock.time(lambda: torch.mm(x, w, out=y), budget)
    return timed_point(cost.linear(m, width, width, ITEMSIZE), timing, m=m, k=width, n=width)


def linear(clock: Clock, size: int, rows: Sequence[int], budget: float = 0.15) -> list[dict[str, Any]]:
    """A linear layer with k = n = size at these row counts: points (see CpuRoofline)."""
    import torch

    weights, points = torch.rand(size, size), []
    for m in rows:
        x = torch.rand(m, size)
        timing = clock.time(lambda x=x: torch.nn.functional.linear(x, weights), budget)
        points.append(timed_point(cost.linear(m, size, size, ITEMSIZE), timing, m=m, k=size, n=size))
    return points


def timed_point(work: cost.Cost, timing: Timing, **sizes: int) -> dict[str, Any]:
    """Sizes, seconds and rates of one timed piece of work, in SI units."""
    return {
        **sizes,
        "seconds": timing.seconds,
        "low": timing.low,
        "intensity": work.intensity,
        "flops_per_s": work.flops / timing.seconds,
        "bytes_per_s": work.bytes / timing.seconds,
    }

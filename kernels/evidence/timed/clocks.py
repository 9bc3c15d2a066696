"""How long a piece of work takes: a graph's replay on a GPU with a cold cache, or this CPU's wall clock.

A clock is anything with `time(work, budget) -> Timing`, so the logic around it can be tested on a
machine that has nothing to time.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from book.say import say
from kernels.evidence.timed.gpu import Gpu, NotCaptured, Work

LAUNCHES_TIMED = 5  # of Python's own time of a work
FIRST, FEWEST, MOST = 5, 10, 200  # runs between events: to see how long they take, and then
ENOUGH = 1.0  # seconds: where the first runs took so long, they are the measurement
COVERED = 1.5  # times as long as Python takes, at least, an uncaptured work waits behind the flushing
MOST_FLUSHES = 32  # before one run
EMPTY_SHARE = 0.1  # of a time: what a kernel that does nothing reads is worth a note where it is more

Cold = Literal["overwritten", "clean"]


@dataclass(frozen=True)
class Timing:
    """Seconds of one run: the median, the 20th and 80th percentile, and how many runs.

    way: how the work was started: "graph", "eager", or "" where nobody asked. launch_seconds:
    Python's own time of starting the work. empty_seconds: what the same clock reads of a kernel that
    does nothing and is started the same way. notes: what a reader of the time should know.
    """

    seconds: float
    low: float
    high: float
    runs: int
    way: str = ""
    launch_seconds: float | None = None
    empty_seconds: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def spread(self) -> float:
        """(high - low) / median: how far apart quiet runs were."""
        return (self.high - self.low) / self.seconds


@dataclass(frozen=True)
class Gain:
    """How many times as fast one thing ran as another, and the two ends that the noise leaves open."""

    likely: float
    low: float
    high: float

    def above(self, least: float) -> bool | None:
        """Did it run more than `least` times as fast? None where the runs scatter too much to tell.

        Other programs only add time, so the quiet runs may say yes; they say no only if the noise
        could not have hidden a yes.
        """
        if self.likely > least:
            return True
        return None if self.high > least else False


def gain(slow: Timing, fast: Timing, work: float = 1.0) -> Gain:
    """How many times as fast `fast` ran as `slow`, by their quiet runs; it did `work` times as much."""
    likely = work * slow.low / fast.low
    noise = (1 + slow.spread) * (1 + fast.spread)
    return Gain(likely, likely / noise, likely * noise)


def quieter(one: Timing, other: Timing | None) -> Timing:
    """Of two timings of the same work the one whose quiet runs were shorter."""
    return one if other is None or one.low < other.low else other


class Clock(Protocol):
    """Times `work`, spending about `budget` seconds on it."""

    def time(self, work: Callable[[], Any], budget: float = 0.3) -> Timing: ...


def summarise(samples: Sequence[float]) -> Timing:
    """Median and percentiles of at least one sample, in seconds."""
    if not samples:
        raise ValueError("samples = []: nothing was timed; time at least one run.")
    if len(samples) < 3:
        return Timing(statistics.median(samples), min(samples), max(samples), len(samples))
    fifths, middle = statistics.quantiles(samples, n=5, method="inclusive"), statistics.median(samples)
    # Where a clock ticks coarsely most samples are the same, and rounding may put a fifth beyond the middle.
    return Timing(middle, min(fifths[0], middle), max(fifths[3], middle), len(samples))


def graph_or_eager(gpu: Gpu, work: Work) -> tuple[Work, str]:
    """The work as a graph's replay and "", or the work itself and why it can't be captured."""
    try:
        return gpu.captured(work), ""
    except NotCaptured as error:
        return work, str(error)


def emptying(gpu: Gpu, cold: Cold) -> Work:
    """What leaves nothing of earlier work in the cache of `gpu`, that way."""
    return gpu.clean if cold == "clean" else gpu.overwrite


class GraphClock:
    """A GPU's own time of a work that was captured in a graph, with a cold cache before each run.

    The graph matters: a step of ten launches takes Python 240 us, and the card that waits for it
    would have been timed waiting. The replay starts all of them at once, from behind the flushing
    that also keeps the card busy until they are there. A work that can't be captured is launched by
    Python; so many flushings go before it that it is queued by the time the card comes to it.

    cold: "clean" or "overwritten", see `cold_cache`; overwriting alone leaves lines that the card
    writes back while the work runs.

    A graph's start takes the card a few microseconds before its first kernel runs. So a graph of a
    kernel that does nothing (`kernels.noop`) is timed as well, once, and its time is kept beside the
    work's and not taken off it. What stands there overlaps with the work, so the difference may be
    shorter than the kernel was; a time that is never too short keeps "beats the floor" an alarm.
    """

    def __init__(self, gpu: Gpu, cold: Cold = "clean") -> None:
        self.gpu, self.cold = gpu, cold
        self._flush = emptying(gpu, cold)
        self._flush_seconds = 0.0
        self._empty: dict[bool, float] = {}  # by whether a graph starts it

    def time(self, work: Work, budget: float = 0.3) -> Timing:
        """Seconds of one run of `work`; it is run a few times first, which also compiles it."""
        gpu = self.gpu
        work()
        gpu.synchronize()
        launch = python_seconds(gpu, work, budget / 4)
        self._know_itself()
        step, reason = graph_or_eager(gpu, work)
        flushes = self._flushes(launch) if reason else 1
        empty = self._of_nothing(graph=not reason)
        step()  # a graph's first start carries it to the card
        gpu.synchronize()
        began = gpu.now()
        samples = between(gpu, step, self._flush, FIRST, flushes)
        taken = gpu.now() - began
        if taken < ENOUGH:
            runs = max(FEWEST, min(MOST, int(budget * FIRST / taken)))
            samples = between(gpu, step, self._flush, runs, flushes)
        timing = summarise(samples)
        return dataclasses.replace(
            timing,
            way="eager" if reason else "graph",
            launch_seconds=launch,
            empty_seconds=empty,
            notes=self._notes(timing.seconds, launch, empty, flushes, reason),
        )

    def _know_itself(self) -> None:
        """Once: how long the flushing takes."""
        if not self._flush_seconds:
            gpu = self.gpu
            self._flush()
            gpu.synchronize()
            self._flush_seconds = statistics.median(between(gpu, self._flush, lambda: None, FEWEST)) or 1e-9

    def _flushes(self, launch: float) -> int:
        """How many must go before a work that Python launches in so many seconds, to hide that."""
        return min(MOST_FLUSHES, math.ceil(COVERED * launch / self._flush_seconds))

    def _of_nothing(self, graph: bool) -> float:
        """Once for each way of starting: seconds that a kernel reads that does nothing."""
        if graph not in self._empty:
            gpu = self.gpu
            gpu.nothing()  # which compiles it
            gpu.synchronize()
            flushes = 1 if graph else self._flushes(python_seconds(gpu, gpu.nothing, 0.0))
            step = gpu.captured(gpu.nothing) if graph else gpu.nothing
            step()
            gpu.synchronize()
            self._empty[graph] = statistics.median(between(gpu, step, self._flush, FEWEST, flushes))
        return self._empty[graph]

    def _notes(
        self, seconds: float, launch: float, empty: float, flushes: int, reason: str
    ) -> tuple[str, ...]:
        said = []
        if reason:
            said.append(say("Launched by Python, not from a graph: {reason}", reason=reason))
        if reason and launch > flushes * self._flush_seconds:
            said.append(say("Python took longer to launch this than could be hidden: the time is Python's."))
        elif launch > self._flush_seconds + seconds:
            said.append(
                say(
                    "Python takes {launch:.0f} µs to launch this, and its kernels {kernels:.1f} µs to run: "
                    "without a graph the launches decide.",
                    launch=1e6 * launch,
                    kernels=1e6 * seconds,
                )
            )
        if empty > EMPTY_SHARE * seconds:
            said.append(
                say(
                    "A kernel that does nothing reads {empty:.1f} µs where it is started the same way: that "
                    "much of {seconds:.1f} µs may be the start's and the clock's own.",
                    empty=1e6 * empty,
                    seconds=1e6 * seconds,
                )
            )
        return tuple(said)


def between(gpu: Gpu, work: Work, before: Work, runs: int, befores: int = 1) -> list[float]:
    """Seconds between events around each of so many runs of `work`; `before` goes ahead of each, untimed."""
    pairs = [(gpu.event(), gpu.event()) for _ in range(runs)]
    for start, end in pairs:
        for _ in range(befores):
            before()
        gpu.record(start)
        work()
        gpu.record(end)
    gpu.synchronize()
    return [gpu.elapsed(start, end) for start, end in pairs]


def python_seconds(gpu: Gpu, work: Work, budget: float) -> float:
    """Python's own time of starting `work` on a card that waits for it: the median of a few runs."""
    samples: list[float] = []
    began = gpu.now()
    while not samples or (len(samples) < LAUNCHES_TIMED and gpu.now() - began < budget):
        start = gpu.now()
        work()
        samples.append(gpu.now() - start)
        gpu.synchronize()
    return statistics.median(samples)


class WallClock:
    """Wall-clock time of this CPU. Callers use tensors larger than its caches, so nothing needs flushing."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now

    def time(self, work: Callable[[], Any], budget: float = 0.3) -> Timing:
        """Seconds of one run; at least 3 runs after one to warm up, at most 50."""
        work()
        samples: list[float] = []
        began = self._now()
        while len(samples) < 3 or (self._now() - began < budget and len(samples) < 50):
            start = self._now()
            work()
            samples.append(self._now() - start)
        return summarise(samples)


class StepClock:
    """Wall-clock time of a whole step: from before its first launch until its last result is there.

    Launches are part of that time, unlike with `GraphClock`. before: run ahead of every sample and
    not timed (it overwrites the cache). wait: returns when the device has done all it was given.
    """

    def __init__(
        self,
        wait: Callable[[], Any] = lambda: None,
        before: Callable[[], Any] = lambda: None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._wait, self._before, self._now = wait, before, now

    def time(self, work: Callable[[], Any], budget: float = 0.3) -> Timing:
        """Seconds of one step; at least 5 after one to warm up, at most 200."""
        work()
        samples: list[float] = []
        began = self._now()
        while len(samples) < 5 or (self._now() - began < budget and len(samples) < 200):
            self._before()
            self._wait()
            start = self._now()
            work()
            self._wait()
            samples.append(self._now() - start)
        return summarise(samples)

"""How long a piece of work takes: GPU events with the cache flushed, or this CPU's wall clock.

A clock is anything with `time(work, budget) -> Timing`, so the logic around it can be tested on a
machine that has nothing to time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

FLUSH_AT_LEAST = 256 * 2**20  # larger than the last-level cache of every card but MI300X's


@dataclass(frozen=True)
class Timing:
    """Seconds of one run: the median, the 20th and 80th percentile, and how many runs."""

    seconds: float
    low: float
    high: float
    runs: int

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
    fifths = statistics.quantiles(samples, n=5, method="inclusive")
    return Timing(statistics.median(samples), fifths[0], fifths[3], len(samples))


def flush_bytes(l2_bytes: int | None) -> int:
    """Bytes to overwrite so that nothing of the last run is left in the last-level cache."""
    return max(FLUSH_AT_LEAST, 2 * (l2_bytes or 0))


class EventClock:
    """A GPU's own time between two events on its stream, the cache overwritten before each run.

    The overwriting lies before the first event, so it is not in the time. It also keeps the GPU
    busy while Python launches the work, so the time is the kernel's and not the launch's.
    """

    def __init__(self, device: str = "cuda", l2_bytes: int | None = None) -> None:
        import torch

        self._torch = torch
        self._buffer = torch.empty(flush_bytes(l2_bytes) // 4, dtype=torch.int32, device=device)

    def time(self, work: Callable[[], Any], budget: float = 0.3) -> Timing:
        """Seconds of one run of `work`; it is run a few times first, which also compiles it."""
        cuda = self._torch.cuda
        work()
        cuda.synchronize()
        began = time.perf_counter()
        self._samples(work, 5)
        each = (time.perf_counter() - began) / 5
        return summarise(self._samples(work, max(10, min(200, int(budget / each)))))

    def _samples(self, work: Callable[[], Any], runs: int) -> list[float]:
        event = self._torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(runs)]
        for start, end in pairs:
            self._buffer.zero_()
            start.record()
            work()
            end.record()
        self._torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairs]


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

    Launches are part of that time, unlike with `EventClock`. before: run ahead of every sample and
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

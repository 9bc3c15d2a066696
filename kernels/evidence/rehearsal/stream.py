"""A simulated GPU that knows the true time of each kernel: its stream, its host, its cache, its memory.

Clocks are tried on it (`kernels.evidence.timed.gpu.Gpu` is what they ask for), so what they read can be
held against what is true. No time of it is a measurement of anything.

    gpu = SimulatedGpu(lambda kernel: kernel)         # what is launched says its own seconds
    work = gpu.work(*[11.1e-6] * 10, launch=23.8e-6)  # ten launches, 23.8 us of Python each
    GraphClock(gpu).time(work).seconds                # 111e-6, give or take the noise

The host's clock is simulated as well and nothing sleeps: a run takes no time and comes out the same.
The card starts what it was given when it is free and goes on by itself while the host's clock moves.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernels.evidence.timed.gpu import NotCaptured, Work, flush_bytes

NOTHING = object()  # a kernel that does nothing, as the stream knows it
QUEUE = 1024  # launches that wait for the card; the host waits to give it more
DRIFT = 0.02  # s in which a card's clock swings up and down once


@dataclass(frozen=True)
class Kernel:
    """What is true of one kernel. seconds: alone, with a cold and clean cache.

    moves: bytes that it reads or writes. data: a name for them, if they may still be in the cache.
    start: s that it takes on top, however warm the cache is.
    """

    seconds: float
    moves: int = 0
    data: str = ""
    start: float = 0.0


@dataclass(frozen=True)
class Costs:
    """What the host's calls take, s, and what the card's own stream adds. resolution: of an event.

    noise: standard deviation of a kernel's time, as a share. drift: the share by which its clock, and so
    each kernel's time, swings up and down (in DRIFT seconds). event_gap: s of the card between the end
    of one command and the time that an event after it shows. head: s of the card before the first kernel
    of each replay of a graph; nothing: s of a kernel that does nothing.
    """

    launch: float = 8e-6
    replay: float = 6e-6
    event: float = 1e-6
    call: float = 3e-6
    wake: float = 5e-6
    resolution: float = 0.5e-6
    event_gap: float = 0.0
    noise: float = 0.005
    drift: float = 0.0
    head: float = 0.0
    nothing: float = 0.0


@dataclass(frozen=True)
class Faults:
    """What goes wrong, and when. allocation: the number, from 1, of the one that finds no memory.

    illegal(launched): whether it reads where it may not, which comes out at the next call and at every
    call after it. refused(launched): what the launcher raises in its place, or None.
    """

    allocation: int | None = None
    illegal: Callable[[Any], bool] = lambda launched: False
    refused: Callable[[Any], Exception | None] = lambda launched: None


@dataclass
class Event:
    """A mark on the simulated stream; at: the time when the card comes to it, or None."""

    at: float | None = None


@dataclass
class SimulatedGpu:
    """A card, its stream and its host. seconds(launched): the true time of what is launched, or a Kernel.

    bandwidth: bytes/s, of flushing, too. l2_bytes: of the cache. memory: bytes. captures: whether it
    can make graphs; it refuses works that synchronise in any case. seed: of the noise. host: the
    host's clock, s. launched: what the card was given to run, in order, but for what does nothing.
    """

    seconds: Callable[[Any], float | Kernel] = lambda launched: launched
    bandwidth: float = 4.8e12
    l2_bytes: int = 50 * 2**20
    memory: int = 80 * 10**9
    costs: Costs = field(default_factory=Costs)
    faults: Faults = field(default_factory=Faults)
    captures: bool = True
    seed: int = 0
    host: float = 0.0
    launched: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._free_at = 0.0  # when the card has done all that it was given
        self._waiting: deque[float] = deque()  # when each of the latest commands will be done
        self._graph: list[Any] | None = None  # what was launched while it is recorded
        self._broken = False  # by an illegal access: nothing works in this process any more
        self._cached: dict[str, int] = {}  # bytes of data in the cache, the oldest first
        self._dirty = 0  # bytes in the cache that must be written back before others take their place
        self._allocations = self._used = self._kept = 0  # how many; bytes in use; bytes kept for later

    # ------------------------------------------------------------------------ what programs do

    def launch(self, what: Any, seconds: float | None = None) -> None:
        """Python starts one kernel. seconds: of the host, by default as `costs` says."""
        self._check()
        if what is not NOTHING and (error := self.faults.refused(what)):
            raise error
        self.host += self.costs.launch if seconds is None else seconds
        if self._graph is not None:
            self._graph.append(what)
        else:
            self._run(what)

    def work(self, *kernels: Any, launch: float | None = None) -> Work:
        """A work that launches these in order; launch: seconds of Python for each."""

        def start() -> None:
            for kernel in kernels:
                self.launch(kernel, launch)

        return start

    def pause(self, seconds: float) -> None:
        """The host does something else."""
        self.host += seconds

    def allocate(self, size: int) -> None:
        """Take `size` bytes; raises torch.OutOfMemoryError where there are no more, or a fault says so."""
        self._check()
        self._allocations += 1
        fresh = max(0, size - self._kept)
        if self._allocations == self.faults.allocation or fresh > self.free_bytes():
            import torch

            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size / 2**30:.2f} GiB. GPU 0 has a total capacity "
                f"of {self.memory / 2**30:.2f} GiB of which {self.free_bytes() / 2**30:.2f} GiB is free."
            )
        self._kept -= size - fresh
        self._used += size

    def free(self, size: int) -> None:
        """Give `size` bytes back to the allocator, which keeps them for later."""
        self._used -= size
        self._kept += size

    # ------------------------------------------------------------------------ what a clock asks

    def now(self) -> float:
        return self.host

    def event(self) -> Event:
        return Event()

    def record(self, event: Event) -> None:
        self._check()
        self.host += self.costs.event
        event.at = self._queue(self.costs.event_gap)

    def elapsed(self, start: Event, end: Event) -> float:
        if start.at is None or end.at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        if max(start.at, end.at) > self.host:
            raise RuntimeError("CUDA error: device not ready")
        step = self.costs.resolution
        ticks = [at // step if step else at for at in (start.at, end.at)]
        return (ticks[1] - ticks[0]) * (step or 1.0)

    def synchronize(self) -> None:
        if self._graph is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        self.host = max(self.host, self._free_at) + self.costs.wake
        self._check()

    def nothing(self) -> None:
        self.launch(NOTHING)

    def captured(self, work: Work) -> Work:
        if not self.captures:
            raise NotCaptured("this card can't record graphs")
        work()
        self.synchronize()
        self._graph = []
        try:
            work()
        except RuntimeError as error:
            raise NotCaptured(str(error)) from error
        finally:
            recorded, self._graph = self._graph, None
        return lambda: self._replay(recorded)

    def overwrite(self) -> None:
        self._call()
        self._queue(flush_bytes(self.l2_bytes) / self.bandwidth)
        self._cached.clear()
        self._dirty = self.l2_bytes

    def clean(self) -> None:
        self.overwrite()
        self._call()
        self._queue((flush_bytes(self.l2_bytes) + self._dirty) / self.bandwidth)
        self._dirty = 0

    def free_bytes(self) -> int:
        return self.memory - self._used - self._kept

    def total_bytes(self) -> int:
        return self.memory

    def release(self) -> None:
        self._kept = 0

    # ------------------------------------------------------------------------ inside

    def _check(self) -> None:
        if self._broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def _call(self) -> None:
        self._check()
        if self._graph is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        self.host += self.costs.call

    def _queue(self, seconds: float) -> float:
        """Give the card a command of so many seconds; when it will be done. The host waits if it must."""
        if len(self._waiting) == QUEUE:
            self.host = max(self.host, self._waiting.popleft())
        self._free_at = max(self._free_at, self.host) + seconds
        self._waiting.append(self._free_at)
        return self._free_at

    def _replay(self, recorded: Sequence[Any]) -> None:
        self._check()
        self.host += self.costs.replay
        self._queue(self.costs.head)
        for what in recorded:
            self._run(what)

    def _run(self, what: Any) -> None:
        if what is NOTHING:
            self._queue(self.costs.nothing)
            return
        true = self.seconds(what)
        kernel = true if isinstance(true, Kernel) else Kernel(true)
        self.launched.append(what)
        swing = 1 + self.costs.drift * math.sin(2 * math.pi * self._free_at / DRIFT)
        self._queue(self._true(kernel) * swing * max(0.0, self._random.gauss(1.0, self.costs.noise)))
        self._broken = self._broken or self.faults.illegal(what)

    def _true(self, kernel: Kernel) -> float:
        """Its seconds with the cache as it is, which it leaves full of its own data."""
        if not kernel.moves:
            return kernel.start + kernel.seconds
        hit = self._cached.pop(kernel.data, 0) if kernel.data else 0
        fresh = min(kernel.moves - hit, self.l2_bytes)
        written_back = min(self._dirty, fresh)
        self._dirty -= written_back
        self._cached[kernel.data] = min(kernel.moves, self.l2_bytes)
        while sum(self._cached.values()) + self._dirty > self.l2_bytes:
            oldest = next(iter(self._cached))
            over = sum(self._cached.values()) + self._dirty - self.l2_bytes
            left = self._cached[oldest] - over
            if left > 0:
                self._cached[oldest] = left
            else:
                del self._cached[oldest]
        cold = kernel.seconds * (1 - hit / kernel.moves) + written_back / self.bandwidth
        return kernel.start + cold

"""What a cold cache is on the card that is here: decided by a measurement, before anything else is timed.

A kernel is to find nothing of its data in the last-level cache, and nothing else either that costs it
time. Overwriting a buffer sees to the first: but it leaves a cache full of lines that were written
and must go back to memory while the kernel reads (50 MB, 15 us at an H100's bandwidth). A read of
another buffer pushes those out and leaves lines that are dropped for nothing; it takes twice the time.

Which of them is right is not a matter of taste. The same bytes are read a third time with no
flushing at all, from buffers in turn: when the first comes round again, the others have been read
since, several caches full of them, so each read is cold, and the cache is clean. A way that reads
faster than that left data in the cache. Of those that don't, the shorter time is kept: the longer
one holds traffic that isn't the kernel's. Where both agree it is overwriting, which is what others
do (Triton's do_bench), and half as long.

A start of a graph takes a few microseconds: of one read a good part, of the reads in turn, which are one
graph, next to nothing. So from each time that of a graph goes off which starts as many kernels that do
nothing. What is left is not a time of a read (starts overlap with work), but the three can be compared.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kernels.evidence.timed.clocks import Cold, GraphClock
from kernels.evidence.timed.gpu import FLUSH_AT_LEAST, Gpu, TorchGpu, Work
from kernels.evidence.timed.machine import Device

BUFFERS = 8  # read in turn, each as large as the cache
ROUNDS = 4  # over all of them, in one graph
SAME = 0.02  # of a time: two ways that are nearer than this agree
WARM = 0.05  # of a time: a read that takes so much less than in turn found some of its data in the cache


@dataclass(frozen=True)
class ColdCache:
    """Seconds of one read of bytes_read bytes: after overwriting, after cleaning, from buffers in turn.

    Each without what a start takes, see above. kept: which of the first two the clock uses.
    """

    kept: Cold
    overwritten: float
    clean: float
    in_turn: float
    bytes_read: int

    def as_record(self) -> dict[str, Any]:
        """The decision and its numbers, as a record keeps them."""
        return asdict(self)


def decide(gpu: Gpu, reads: Sequence[Work], bytes_each: int, budget: float = 0.05) -> ColdCache:
    """Measure both ways of emptying the cache, and keep the right one. reads: each of a buffer of its own.

    bytes_each: of one read, about a cache full; all but one of `reads` must overflow the cache.
    """
    ways: tuple[Cold, ...] = ("overwritten", "clean")
    clocks = {way: GraphClock(gpu, way) for way in ways}
    times = {way: _without_starts(clock, reads[:1], budget) for way, clock in clocks.items()}
    in_turn = _without_starts(clocks["clean"], [*reads] * ROUNDS, budget)
    overwritten, clean = times["overwritten"], times["clean"]
    cold = {way: seconds for way, seconds in times.items() if seconds > (1 - WARM) * in_turn} or times
    agree = abs(overwritten - clean) <= SAME * clean
    kept = "overwritten" if agree else min(cold, key=cold.__getitem__)
    return ColdCache(kept, overwritten, clean, in_turn, bytes_each)


def _without_starts(clock: GraphClock, reads: Sequence[Work], budget: float) -> float:
    """Seconds of each of these reads, less what as many starts take."""
    nothing = [clock.gpu.nothing] * len(reads)
    whole, starts = (
        clock.time(lambda w=works: [work() for work in w], budget).seconds for works in (reads, nothing)
    )
    return max(0.0, whole - starts) / len(reads)


def gpu_clock(
    device: Device, gpu: Gpu | None = None, reads: Sequence[Work] = ()
) -> tuple[GraphClock, ColdCache]:
    """The clock for the GPU that is here, with the cold cache that is right on it; and how that was decided.

    gpu, reads: what to measure on and with, in torch's place (a simulated one). A few tenths of a second,
    once in a process.
    """
    if gpu is None:
        return _torch_clock(device.torch_device, device.l2_bytes)
    return _decided(gpu, device.torch_device, device.l2_bytes, reads)


@functools.cache
def _torch_clock(where: str, l2_bytes: int | None) -> tuple[GraphClock, ColdCache]:
    return _decided(TorchGpu(where, l2_bytes), where, l2_bytes, ())


def _decided(
    gpu: Gpu, where: str, l2_bytes: int | None, reads: Sequence[Work]
) -> tuple[GraphClock, ColdCache]:
    bytes_each = _bytes_each(l2_bytes, gpu)
    found = decide(gpu, reads or _torch_reads(where, bytes_each), bytes_each)
    gpu.release()
    return GraphClock(gpu, found.kept), found


def _bytes_each(l2_bytes: int | None, gpu: Gpu) -> int:
    """A cache full; less where little memory is free."""
    cache = l2_bytes or FLUSH_AT_LEAST // 4
    return min(cache, gpu.free_bytes() // (2 * BUFFERS)) // 4 * 4


def _torch_reads(where: str, bytes_each: int) -> list[Work]:
    import torch

    buffers = torch.randn(BUFFERS, bytes_each // 4, device=where)
    total = torch.empty((), device=where)
    return [functools.partial(torch.sum, buffer, dim=0, out=total) for buffer in buffers]

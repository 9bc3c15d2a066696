"""What a launch costs, timed: a step of n launches, eager and as a CUDA graph, and lines through both.

    here = launch_overhead.here()  # the GPU that is here; without one, this CPU by torch, and it says so
    here.lines[0].per_launch       # seconds that one more launch adds: the slope
    here.laws[0].fit.overhead      # seconds a step pays whatever it moves: the intercept (chapter 09)

Two sweeps. More launches of one size (`Line`): the slope is a launch, the intercept what a step
costs once. One number of launches with ever larger layers (`Law`): the step law, time = floor /
efficiency + overhead, fitted by `book.serving.step_law`. What they look like:
`kernels.evidence.launch_results`; when not to trust them: `kernels.evidence.timed.launch_fit`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from book import catalog, cost
from book.say import say
from kernels.contract.errors import Unsupported
from kernels.evidence.launch_results import Overhead, recorded
from kernels.evidence.recorded import NOT_MEASURED
from kernels.evidence.timed.ceilings import room
from kernels.evidence.timed.clocks import Clock, Cold, StepClock, emptying
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.cpu import LABEL
from kernels.evidence.timed.gpu import Gpu
from kernels.evidence.timed.launch_fit import Law, Line
from kernels.evidence.timed.machine import Device, cpu_here, gpu_here, why_not_timed

COUNTS = (8, 16, 32, 64, 128)  # launches a step
GPU_SIZES = (512, 1024, 2048, 4096, 8192)  # k = n of the layers
CPU_SIZES = (64, 128, 256, 384, 512)  # larger ones run at another efficiency, so they bend the line
LAUNCHES = 32  # of each step that the law is fitted to
ROUNDS = 5  # over all steps of a sweep
POOL_BYTES = {"gpu": 2**30, "cpu": 2**28}  # distinct weights, more than any cache holds

Step = Callable[[], Any]

__all__ = ["Law", "Line", "Overhead", "cpu", "gpu", "here", "law", "line", "quietest", "recorded"]


def quietest(clock: Clock, steps: Sequence[Step], budget: float) -> tuple[float, ...]:
    """Seconds of each step, `budget` seconds spent on each: the quietest of several rounds over all.

    Other programs only add time, and for a while. So a burst of theirs spoils one round of many
    points, not all of one point.
    """
    rounds = [[clock.time(step, budget / ROUNDS).low for step in steps] for _ in range(ROUNDS)]
    return tuple(map(min, zip(*rounds, strict=True)))


def line(
    work: str, way: str, step: Callable[[int], Step], counts: Sequence[int], clock: Clock, budget: float
) -> Line:
    """Time `step(n)` for every n of counts."""
    return Line(work, way, tuple(counts), quietest(clock, [step(n) for n in counts], budget))


def law(
    way: str, step: Callable[[int], Step], sizes: Sequence[int], floor: Callable[[int], float], clock: Clock,
    budget: float, launches: int = LAUNCHES,
) -> Law:  # fmt: skip
    """Time `step(size)`, which starts `launches` layers whose own floor is `floor(size)` seconds."""
    seconds = quietest(clock, [step(size) for size in sizes], budget)
    return Law(way, launches, tuple(sizes), tuple(launches * floor(size) for size in sizes), seconds)


def here() -> Overhead:
    """The GPU that is here, or else this CPU by torch, whose `status` says what is not measured yet."""
    return cpu() if why_not_timed(gpu_here()) else gpu()


def gpu(
    device: Device | None = None,
    *,
    clock: Clock | None = None,
    bandwidth: tuple[float, str] | None = None,
    budget: float = 0.1,
    quick: bool = False,
    on: Gpu | None = None,
    cold: Cold | None = None,
) -> Overhead:
    """Time `noop` and `linear` on a GPU, eager and as a CUDA graph; about five seconds.

    bandwidth: bytes/s of the floors and what reached it, by default the datasheet's. on: what to time
    on, in torch's place (a simulated one). cold: how the cache is emptied before each step, by default as
    `cold_cache` decides on this card: a step that moves bytes would pay for what was left to write back.
    Raises Unsupported where there is no GPU, or no bandwidth to make floors with.
    """
    import torch

    from kernels import linear, noop
    from kernels.contract.devices import TORCH_DTYPES, default_dtype

    device = device or gpu_here()
    reason = why_not_timed(device)
    if reason:
        raise Unsupported(
            f"The cost of a launch is {NOT_MEASURED}: {reason}; on a CPU use launch_overhead.cpu()."
        )
    card = device.card()
    if bandwidth is None and card is None:
        raise Unsupported(f"{device.name} is not in the catalog: pass bandwidth=(bytes/s, where it is from).")
    rate, by = bandwidth or (card.bandwidth, "datasheet")
    where = device.torch_device
    on, cold = _on(device, on, cold)
    clock = clock or StepClock(on.synchronize, emptying(on, cold), on.now)
    dtype = default_dtype()
    # Drawn in fp32 and rounded beside it; less where little memory is free.
    numbers = min(POOL_BYTES["gpu"] // 2, room(device) // 6)
    pool = torch.randn(numbers, device=where).to(TORCH_DTYPES[dtype])
    nothing = torch.empty(1, device=where)
    works = {"noop": [lambda: noop.noop(nothing)], "linear": _layers(pool, 4096, linear.linear)}
    ways = {"eager": lambda step: step, "graph": on.captured}
    counts, sizes = (COUNTS[::2], GPU_SIZES[::2]) if quick else (COUNTS, GPU_SIZES)
    lines = tuple(
        line(name, way, lambda n, w=work, g=make: g(noop.repeated(w, n)), counts, clock, budget)
        for name, work in works.items()
        for way, make in ways.items()
    )
    floor = lambda size: cost.linear(1, size, size, catalog.itemsize(dtype)).bytes / rate  # noqa: E731
    laws = tuple(
        law(
            way,
            lambda size, g=make: g(noop.repeated(_layers(pool, size, linear.linear), LAUNCHES)),
            sizes,
            floor,
            clock,
            budget,
        )
        for way, make in ways.items()
    )
    return Overhead(device.name, rate, by, lines, laws)


def cpu(*, clock: Clock | None = None, budget: float = 0.06) -> Overhead:
    """The same two sweeps on this CPU with torch's own operations, eager: about three seconds.

    An addition to one number stands for the kernel that does nothing; its time is what torch takes
    to find and start an operation. Torch's kernels, not ours, which the label says. One thread:
    several wait for each other, and on a busy machine that wait is all one sees.
    """
    import torch

    from kernels import noop

    clock = clock or StepClock()
    pool = torch.rand(POOL_BYTES["cpu"] // 4)
    one = torch.zeros(1)
    works = {say("add to one number"): [lambda: one.add_(1)], "linear 256": _layers(pool, 256, torch.mm)}
    # One row of a large layer only reads, and often beats torch's own sum. As short as the steps
    # below, so that both find as many quiet moments.
    large = cost.linear(1, 2048, 2048, 4)
    chunks = pool.split(int(large.reads["w"]) // 4)
    reads = {
        "torch sum": noop.repeated([part.sum for part in chunks], 1),
        "torch linear": noop.repeated(_layers(pool, 2048, torch.mm), 1),
    }
    moved = {"torch sum": large.reads["w"], "torch linear": large.bytes}
    steps = [noop.repeated(_layers(pool, size, torch.mm), LAUNCHES) for size in CPU_SIZES]
    with _one_thread():
        lines = tuple(
            line(name, "eager", lambda n, w=work: noop.repeated(w, n), COUNTS, clock, budget)
            for name, work in works.items()
        )
        # In the same rounds, so that the bandwidth and what is held against it see the same machine.
        both = quietest(clock, [*reads.values(), *steps], budget)
    rates = {name: moved[name] / seconds for name, seconds in zip(reads, both, strict=False)}
    by = max(rates, key=rates.get)
    floors = tuple(LAUNCHES * cost.linear(1, size, size, 4).bytes / rates[by] for size in CPU_SIZES)
    laws = (Law("eager", LAUNCHES, CPU_SIZES, floors, both[len(reads) :]),)
    where = f"{LABEL} ({cpu_here().name}, one thread)"
    return Overhead(where, rates[by], say("{by}, timed here", by=by), lines, laws)


def _on(device: Device, on: Gpu | None, cold: Cold | None) -> tuple[Gpu, Cold]:
    """What to time on, and how its cache is emptied: measured, unless both are given."""
    if on and cold:
        return on, cold
    decided, _ = gpu_clock(device, on)
    return decided.gpu, cold or decided.cold


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _layers(pool: Any, size: int, product: Callable[[Any, Any], Any]) -> list[Step]:
    """One row through each of the size x size weights that `pool` has room for."""
    count = pool.numel() // size**2
    x = pool[:size].view(1, size).clone()
    weights = pool[: count * size**2].view(count, size, size).unbind()
    return [lambda w=w: product(x, w) for w in weights]

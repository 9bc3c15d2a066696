"""What a launch costs, timed: a step of n launches, eager and as a CUDA graph, and lines through both.

    here = overhead.here()      # the GPU that is here; without one, this CPU by torch, and it says so
    here.lines[0].per_launch    # seconds that one more launch adds: the slope
    here.laws[0].fit.overhead   # seconds a step pays whatever it moves: the intercept (chapter 09)

Two sweeps. More launches of one size (`Line`): the slope is a launch, the intercept what a step
costs once. One number of launches with ever larger layers (`Law`): the step law, time = floor /
efficiency + overhead, fitted by `book.step_law`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from book import catalog, cost, step_law
from kernels.evidence.clocks import Clock, StepClock, flush_bytes
from kernels.evidence.cpu import LABEL
from kernels.evidence.errors import Unsupported
from kernels.evidence.machine import Device, cpu_here, gpu_here, why_not_timed
from kernels.evidence.recorded import NOT_MEASURED, load_all

COUNTS = (8, 16, 32, 64, 128)  # launches a step
GPU_SIZES = (512, 1024, 2048, 4096, 8192)  # k = n of the layers
CPU_SIZES = (64, 128, 256, 512, 1024)
LAUNCHES = 32  # of each step that the law is fitted to
POOL_BYTES = {"gpu": 2**30, "cpu": 2**28}  # distinct weights, more than any cache holds

Step = Callable[[], Any]


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
        return step_law.fit(self.counts, self.seconds)

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
        return step_law.fit(self.floors, self.seconds)


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
        """How each rung stands, in words."""
        if self.rung == "recorded":
            return {"recorded": self.where}
        gpu = why_not_timed(gpu_here())
        return {
            "timed": self.where,
            **({"timed, on a GPU": f"{NOT_MEASURED}: {gpu}"} if gpu else {}),
            "recorded": "; ".join(o.where for o in recorded()) or NOT_MEASURED,
        }

    def as_record(self) -> dict[str, Any]:
        """As a record keeps it, under "overhead"."""
        return asdict(self)

    def tables(self) -> list[Any]:
        """Slopes and intercepts of both sweeps, and how each rung stands."""
        from book.display import Column, si, table
        from kernels.evidence import blocks

        right = {"align": "right"}
        lines = [
            {
                "work": one.work,
                "way": one.way,
                "launch": si(one.per_launch, "s"),
                "step": si(one.per_step, "s"),
                "most": f"{one.counts[-1]} in {si(one.seconds[-1], 's')}",
            }
            for one in self.lines
        ]
        columns = ["work", "way", Column("launch", "slope, a launch", **right)]
        columns += [Column("step", "intercept, a step", **right), Column("most", "largest step", **right)]
        laws = [
            {
                "way": f"{one.launches} layers, {one.way}",
                "efficiency": f"{one.fit.efficiency:.2f}",
                "overhead": si(one.fit.overhead, "s"),
                "each": si(one.fit.overhead / one.launches, "s"),
            }
            for one in self.laws
        ]
        wide = ["way", Column("efficiency", "efficiency", **right)]
        wide += [Column("overhead", "overhead, a step", **right), Column("each", "a launch", **right)]
        floor = f"floor at {si(self.bandwidth, 'B/s')} ({self.bandwidth_by})"
        return [
            table(lines, columns, f"{self.rung}, {self.where}: steps of {self._counts()} launches"),
            table(laws, wide, f"{self.rung}, {self.where}: time = floor / efficiency + overhead, {floor}"),
            blocks.rungs(self.status),
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
        from book import figures
        from book.display import si
        from book.marks import draw_series

        figure, axes = figures.new()
        axes.set_xlabel("launches a step")
        axes.set_title("time of a step (µs)", loc="left", x=0, color=figures.colour("dim"), fontsize=10.5)
        words = []
        for one in self.lines:
            ends = (0, one.counts[-1])
            draw_series(axes, "predicted", ends, [1e6 * one.fit.law(n) for n in ends])
            draw_series(axes, self.rung, one.counts, [1e6 * s for s in one.seconds])
            words.append(f"{one.work}, {one.way} adds {si(one.per_launch, 's')} a launch")
        axes.set(xlim=(0, None), ylim=(0, None))
        self._name_lines(figure, axes)
        figure.set_label(f"Time of a step against its launches, {self.where}: {'; '.join(words)}.")
        return figure

    def _name_lines(self, figure: Any, axes: Any) -> None:
        """Names in the right margin, beside the largest steps and apart from each other."""
        from book.labels import spread
        from book.shown import colour

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


# -------------------------------------------------------------------------------- measuring


def line(
    work: str, way: str, step: Callable[[int], Step], counts: Sequence[int], clock: Clock, budget: float
):
    """Time `step(n)` for every n of counts."""
    return Line(work, way, tuple(counts), tuple(clock.time(step(n), budget).low for n in counts))


def law(
    way: str, step: Callable[[int], Step], sizes: Sequence[int], floor: Callable[[int], float], clock: Clock,
    budget: float, launches: int = LAUNCHES,
) -> Law:  # fmt: skip
    """Time `step(size)`, which starts `launches` layers whose own floor is `floor(size)` seconds."""
    seconds = tuple(clock.time(step(size), budget).low for size in sizes)
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
) -> Overhead:
    """Time `noop` and `linear` on a GPU, eager and as a CUDA graph; about five seconds.

    bandwidth: bytes/s of the floors and what reached it, by default the datasheet's. Raises
    Unsupported where there is no GPU, or no bandwidth to make floors with.
    """
    import torch

    from kernels import launch, linear
    from kernels.devices import TORCH_DTYPES, default_dtype

    device = device or gpu_here()
    reason = why_not_timed(device)
    if reason:
        raise Unsupported(f"The cost of a launch is {NOT_MEASURED}: {reason}; on a CPU use overhead.cpu().")
    card = device.card()
    if bandwidth is None and card is None:
        raise Unsupported(f"{device.name} is not in the catalog: pass bandwidth=(bytes/s, where it is from).")
    rate, by = bandwidth or (card.bandwidth, "datasheet")
    where = device.torch_device
    buffer = torch.empty(flush_bytes(device.l2_bytes) // 4, dtype=torch.int32, device=where)
    clock = clock or StepClock(torch.cuda.synchronize, buffer.zero_)
    dtype = default_dtype()
    pool = torch.randn(POOL_BYTES["gpu"] // 2, device=where).to(TORCH_DTYPES[dtype])
    nothing = torch.empty(1, device=where)
    works = {"noop": [lambda: launch.noop(nothing)], "linear": _layers(pool, 4096, linear.linear)}
    ways = {"eager": lambda step: step, "graph": launch.captured}
    counts, sizes = (COUNTS[::2], GPU_SIZES[::2]) if quick else (COUNTS, GPU_SIZES)
    lines = tuple(
        line(name, way, lambda n, w=work, g=make: g(launch.repeated(w, n)), counts, clock, budget)
        for name, work in works.items()
        for way, make in ways.items()
    )
    floor = lambda size: cost.linear(1, size, size, catalog.itemsize(dtype)).bytes / rate  # noqa: E731
    laws = tuple(
        law(
            way,
            lambda size, g=make: g(launch.repeated(_layers(pool, size, linear.linear), LAUNCHES)),
            sizes,
            floor,
            clock,
            budget,
        )
        for way, make in ways.items()
    )
    return Overhead(device.name, rate, by, lines, laws)


def cpu(*, clock: Clock | None = None, budget: float = 0.03) -> Overhead:
    """The same two sweeps on this CPU with torch's own operations, eager: about two seconds.

    An addition to one number stands for the kernel that does nothing; its time is what torch takes
    to find and start an operation. Torch's kernels, not ours, which the label says.
    """
    import torch

    from kernels import launch

    clock = clock or StepClock()
    pool = torch.rand(POOL_BYTES["cpu"] // 4)
    # One row of a large layer only reads, and often beats torch's own sum.
    reads = {"torch sum": pool.sum, "torch linear": _layers(pool, 4096, torch.mm)[0]}
    moved = {"torch sum": POOL_BYTES["cpu"], "torch linear": cost.linear(1, 4096, 4096, 4).bytes}
    rates = {name: moved[name] / clock.time(read, 4 * budget).low for name, read in reads.items()}
    by = max(rates, key=rates.get)
    rate = rates[by]
    one = torch.zeros(1)
    works = {"add to one number": [lambda: one.add_(1)], "linear 256": _layers(pool, 256, torch.mm)}
    lines = tuple(
        line(name, "eager", lambda n, w=work: launch.repeated(w, n), COUNTS, clock, budget)
        for name, work in works.items()
    )
    step = lambda size: launch.repeated(_layers(pool, size, torch.mm), LAUNCHES)  # noqa: E731
    floor = lambda size: cost.linear(1, size, size, 4).bytes / rate  # noqa: E731
    laws = (law("eager", step, CPU_SIZES, floor, clock, budget),)
    return Overhead(f"{LABEL} ({cpu_here().name})", rate, f"{by}, timed here", lines, laws)


def _layers(pool: Any, size: int, product: Callable[[Any, Any], Any]) -> list[Step]:
    """One row through each of the size x size weights that `pool` has room for."""
    count = pool.numel() // size**2
    x = pool[:size].view(1, size).clone()
    weights = pool[: count * size**2].view(count, size, size).unbind()
    return [lambda w=w: product(x, w) for w in weights]


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

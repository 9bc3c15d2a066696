"""How a formula is shown: one small object a view. The mathematics is in `book.formulas.formula`.

A formula names its views in the order in which a reader should meet them, as in
`views=(Bars(parts=(...,)), Roofline(), Curve(), Readouts("time per step", (...,)))`. They say what is
shown, by the names of the formula's outputs; the front-end (`book/site/frontend`) says how it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from book.say import say


@dataclass(frozen=True)
class Shown:
    """An output of a formula where it is shown: its name there, what it is called, and its unit."""

    output: str
    label: str
    unit: str = ""


@dataclass(frozen=True)
class View:
    """Base of the views. kind: its name in `explore(view=...)`, in links and in the front-end."""

    kind: ClassVar[str] = ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs that it needs the formula to have."""
        return ()

    @property
    def shown(self) -> tuple[Shown, ...]:
        """The outputs that it calls by a label."""
        return ()


@dataclass(frozen=True)
class Readouts(View):
    """The numbers above every picture: the formula's value, called `value`, and `others`."""

    kind: ClassVar[str] = "readouts"
    value: str
    others: tuple[Shown, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(s.output for s in self.others)

    @property
    def shown(self) -> tuple[Shown, ...]:
        return self.others


@dataclass(frozen=True)
class Work:
    """A part with a point of its own: the outputs of its intensity, in FLOP/byte, and of its time, in s."""

    label: str
    intensity: str
    time: str


@dataclass(frozen=True)
class Roofline(View):
    """The point under its roof: FLOP/s against the formula's intensity, in FLOP/byte.

    works: two kinds of work that take turns, each at its own point instead, with its share of the time.
    """

    kind: ClassVar[str] = "roofline"
    works: tuple[Work, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("intensity", *(name for work in self.works for name in (work.intensity, work.time)))


@dataclass(frozen=True)
class Turn:
    """Along `parameter` a curve turns where it has the value that `output` gives, called `label` there."""

    parameter: str
    output: str
    label: str


@dataclass(frozen=True)
class Curve(View):
    """The formula's value against one of its parameters.

    turn: where it turns, marked if the curve is drawn along that parameter. low, high: outputs between
    which the value surely lies, drawn as a band, where the value is what is expected and no run need
    give it.
    """

    kind: ClassVar[str] = "formula"
    low: str = ""
    high: str = ""
    turn: Turn | None = None

    def __post_init__(self) -> None:
        if bool(self.low) != bool(self.high):
            raise ValueError(
                f"curve: low = {self.low!r}, high = {self.high!r}; a band needs both of its ends."
            )

    @property
    def outputs(self) -> tuple[str, ...]:
        turn = (self.turn.output,) if self.turn else ()
        return (self.low, self.high, *turn) if self.low else turn


@dataclass(frozen=True)
class Balance:
    """The first two parts of a whole are equal where `parameter` has the value that `output` gives."""

    parameter: str
    output: str


@dataclass(frozen=True)
class Bars(View):
    """Outputs that add up to a whole, `parts`, as one bar; `beside` it others, a bar each.

    All have one unit. balance: where the first two parts are equal.
    """

    kind: ClassVar[str] = "bars"
    parts: tuple[Shown, ...]
    beside: tuple[Shown, ...] = ()
    balance: Balance | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        named = tuple(s.output for s in self.shown)
        return (*named, self.balance.output) if self.balance else named

    @property
    def shown(self) -> tuple[Shown, ...]:
        return (*self.parts, *self.beside)


@dataclass(frozen=True)
class Stack(View):
    """Terms that follow one another, `parts`, as one bar in their order, and on top what was measured.

    All have one unit; a term may be negative, or NaN where its table has no row: then there is no sum,
    and `unknown` says why. measured: the output that gives what was measured at the sliders' position,
    NaN where nothing was; "" if there is none. running, asked: the output and the parameter that count
    who is served at a time and who wants to be; where not all are, it says so.
    The rest, measured less the sum of the terms, is hatched, and drawn back over the bar where it is
    negative: a model may say too much as well as too little.
    """

    kind: ClassVar[str] = "stack"
    parts: tuple[Shown, ...]
    measured: str = ""
    running: str = ""
    asked: str = ""
    unknown: str = ""

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*(s.output for s in self.shown), *filter(None, (self.running,)))

    @property
    def shown(self) -> tuple[Shown, ...]:
        return (*self.parts, *filter(None, (self.mark,)))

    @property
    def mark(self) -> Shown | None:
        """What was measured, as it is called in the picture."""
        return Shown(self.measured, say("measured"), self.parts[0].unit) if self.measured else None


@dataclass(frozen=True)
class Timeline(View):
    """Tokens of a few users along time, and the prompt that makes all of them wait.

    step: the output that gives a step's seconds; mixed: those of one that carries a chunk of the
    prompt; chunks: how many of those there are. batch, tokens: the parameters that count the users
    who wait and the prompt's tokens.
    """

    kind: ClassVar[str] = "timeline"
    step: str
    mixed: str
    chunks: str
    batch: str = "batch"
    tokens: str = "length"

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.step, self.mixed, self.chunks)


class Simulated(Protocol):
    """What a simulator returns: `book.simulators.trace.Trace`, or anything of its shape."""

    lanes: tuple[str, ...]
    spans: tuple[Any, ...]
    measured: Mapping[str, float]


@dataclass(frozen=True)
class Kind:
    """A kind of span in a trace: its word, and the palette's colour; "" is a tint, for time that is lost."""

    label: str
    colour: str = ""


@dataclass(frozen=True)
class Trace(View):
    """Runs of a seeded simulator, drawn as lanes along time, beside what the formula says of them.

    simulate(**values) -> a run, for the values of `grid` and every other slider at its start, with
    times in `unit`. grid: {symbol: values}, each the stops at which runs are made; they travel with
    the page, so their product is small. compare: {name in measured: output}; one in `unit` is also
    marked on the axis of time. kinds: {kind of span: Kind}, in no order.
    Raises ValueError for an empty grid, or one of more than `MOST` runs.
    """

    MOST: ClassVar[int] = 64
    kind: ClassVar[str] = "trace"
    simulate: Callable[..., Simulated] = field(compare=False)
    grid: Mapping[str, tuple[float, ...]]
    compare: Mapping[str, Shown]
    kinds: Mapping[str, Kind]
    unit: str = "s"

    def __post_init__(self) -> None:
        runs = 1
        for values in self.grid.values():
            runs *= len(values)
        if not self.grid or not 0 < runs <= self.MOST:
            raise ValueError(
                f"trace: its grid makes {runs if self.grid else 0} runs; give 1 to {self.MOST}, "
                "they all travel with the page."
            )

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(s.output for s in self.compare.values())

    @property
    def shown(self) -> tuple[Shown, ...]:
        return tuple(self.compare.values())

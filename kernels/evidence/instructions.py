"""A kernel's loop as the instructions that chips are given for it, chips side by side.

`instructions.side_by_side(matmul.experiment, m=256, k=512, n=256)`: a row a line of the kernel, a column a
chip. Counts come from the rung "executed", so they are of code that ran and gave the right result.
"""

from __future__ import annotations

import html
import json
import linecache
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from book import catalog
from book.drawing.number_text import number
from book.drawing.tables import Column, Table, table
from book.say import say
from kernels.contract.experiment import Experiment
from kernels.contract.processes import ROOT
from kernels.contract.targets import TARGETS
from kernels.evidence import executed, tables
from kernels.evidence.executed import Executed
from kernels.evidence.executed.ceilings import Ceiling, ceilings
from kernels.evidence.executed.hot_loops import HotLoop, Step
from kernels.evidence.sweeps import described

CHIPS = ("sm_80", "sm_90", "sm_100")  # Ampere, Hopper, Blackwell
_CSS = (
    ".rl-told{margin:1em 0;font-size:.85em;font-family:var(--book-sans,inherit)}"
    ".rl-told table{border-collapse:collapse;width:100%;table-layout:fixed;margin:0;color:inherit}"
    ".rl-told caption{caption-side:top;text-align:left;padding:.2em 0 .5em;color:var(--rl-dim,inherit)}"
    ".rl-told th,.rl-told td{text-align:left;vertical-align:top;padding:.35em .6em;border:0;background:none;"
    "color:inherit;overflow-wrap:break-word}"
    ".rl-told thead th{font-weight:600;border-bottom:1px solid var(--rl-line,#8886)}"
    ".rl-told tbody th{font-weight:400;padding:.8em .6em 0;border-top:1px solid var(--rl-line,#8886)}"
    ".rl-told tbody th code{background:none;border:0;padding:0;color:inherit;font-weight:600;"
    "white-space:pre-wrap;overflow-wrap:anywhere}"
    ".rl-told tbody th small{color:var(--rl-dim,inherit);margin-right:.6em}"
    ".rl-told td div{display:flex;gap:.5em;line-height:1.45}"
    ".rl-told td b{min-width:2.2em;text-align:right;font-weight:600;font-variant-numeric:tabular-nums}"
    ".rl-told td span{color:var(--rl-dim,inherit)}"
    ".rl-turn .rl-table.rl-table th,.rl-turn .rl-table.rl-table td{white-space:normal;padding:.3em .5em}"
    "@media(max-width:34rem){.rl-told td div{display:block}.rl-told td b{text-align:left}"
    ".rl-told td b::after{content:' ×'}.rl-told th,.rl-told td{padding-left:.2em;padding-right:.2em}}"
)


@dataclass(frozen=True)
class SideBySide:
    """The hot loop of one kernel at one size. rows: one for each of CHIPS; notebooks show a table."""

    rows: tuple[Executed, ...]

    def loop(self, target: str) -> HotLoop:
        """That of one chip, "sm_90"."""
        (loop,) = (row.loop for row in self.rows if row.target == target)
        if loop is None:
            raise ValueError(f"target = {target!r}: {self.rows[0].experiment} has no loop there.")
        return loop

    def _lines(self) -> list[tuple[str, list[list[Step]]]]:
        """(place in the source, the steps of each chip), in the order of the source."""
        steps = [self.loop(row.target).steps for row in self.rows]
        places = sorted(
            {step.where for each in steps for step in each},
            key=lambda where: (where.partition(":")[0], int(where.partition(":")[2])),
        )
        return [(where, [[s for s in each if s.where == where] for each in steps]) for where in places]

    @property
    def caption(self) -> str:
        """What was executed."""
        first = self.rows[0]
        return say(
            "executed: {where}; instructions of one program in one turn of its loop, all warps together",
            where=", ".join([first.experiment, described(first.sizes), first.dtype]),
        )

    def summary(self) -> Table:
        """A turn in numbers: one column a chip."""
        loops = [self.loop(row.target) for row in self.rows]
        lines: list[list[Any]] = [
            [say("programs"), *(number(row.launches[0].programs) for row in self.rows)],
            [say("warps of a program"), *(loop.warps for loop in loops)],
            [say("turns of a program"), *(amount(loop.turns) for loop in loops)],
            *_some(say("product instructions a turn"), [loop.count("product") for loop in loops]),
            *_some(say("their FLOP"), [flops_of(loop) for loop in loops]),
            *_some(
                say("of all FLOP, in this loop"),
                [
                    flops_of(loop) * loop.turns * row.launches[0].programs / sum(row.tensor_flops.values())
                    if row.tensor_flops
                    else 0
                    for row, loop in zip(self.rows, loops, strict=True)
                ],
                lambda share: f"{share:.0%}",
            ),
            *_some(say("reads of shared memory into registers"), [loop.count("feed") for loop in loops]),
            *_some(say("exponentials, 32 at a time"), [loop.count("exponential") for loop in loops]),
            *_some(say("exchanges between lanes"), [loop.count("exchange") for loop in loops]),
            # a barrier holds all warps of the program
            *_some(say("barriers of all warps"), [loop.count("meet") / loop.warps for loop in loops]),
        ]
        caption = say("a turn in numbers")
        chips = [
            Column(i, catalog.accelerator(TARGETS[row.target].accelerator).short_name, align="right")
            for i, row in enumerate(self.rows, start=1)
        ]
        return table(lines, [Column(0, say("on")), *chips], caption)

    def _repr_html_(self) -> str:
        chips = "".join(
            f'<th scope="col">{html.escape(tables.architecture(row.target))}</th>' for row in self.rows
        )
        body = []
        for where, each in self._lines():
            line = where.partition(":")[2]
            body.append(
                f'<tr><th scope="rowgroup" colspan="{len(self.rows)}"><small>{line}</small>'
                f"<code>{html.escape(_source(where))}</code></th></tr><tr>"
                + "".join(f"<td>{''.join(map(_told, steps))}</td>" for steps in each)
                + "</tr>"
            )
        table_ = (
            f"<table><caption>{html.escape(self.caption)}</caption><thead><tr>{chips}</tr></thead>"
            f"<tbody>{''.join(body)}</tbody></table>"
        )
        turn = f'<div class="rl-turn">{self.summary()._repr_html_()}</div>'
        return f'<style>{_CSS}</style><div class="rl-told">{table_}</div>{turn}'

    def __repr__(self) -> str:
        text = [self.caption]
        for where, each in self._lines():
            text.append(f"\n{where}  {_source(where)}")
            for row, steps in zip(self.rows, each, strict=True):
                said = ", ".join(f"{amount(s.count)} x {short(s)}" for s in steps)
                text.append(f"    {row.target:8}{said}")
        return "\n".join([*text, "", repr(self.summary())])


@dataclass(frozen=True)
class Case:
    """What `side_by_side` executes. tile_of: as in `executed.cases`."""

    experiment: Experiment
    sizes: Mapping[str, int]
    tile_of: Mapping[str, int] | None = None


def side_by_side(experiment: Experiment, **sizes: int) -> SideBySide:
    """The loop of `experiment` at this size on each of CHIPS, executed.

    Raises PhysicsDisagrees where the compiled code is wrong or races, Unsupported or NotExecutable where it
    can't be executed here.
    """
    (made,) = all_side_by_side([Case(experiment, sizes)])
    return made


def all_side_by_side(cases: Sequence[Case]) -> list[SideBySide]:
    """`side_by_side` of each of these, with one child process for all."""
    wanted = [
        (case.experiment, chip, case.sizes, None, *([case.tile_of] if case.tile_of else []))
        for case in cases
        for chip in CHIPS
    ]
    rows = executed.cases(wanted)
    for row in rows:
        row.check()
    each = len(CHIPS)
    return [SideBySide(rows[i : i + each]) for i in range(0, len(rows), each)]


def limits(kernels: Iterable[Sequence[Executed]], length: int) -> Table:
    """Of attention over a prompt: what counts take at least on each card, one line a kernel.

    kernels: each at three lengths, which say what grows with the length and what with its square; `length` is
    the one that is told. The card's whole bandwidth and all its multiprocessors, as `ceilings` has them.
    Shared memory only where products are of registers, which separate instructions filled: what wgmma and
    tcgen05 read there isn't counted.
    """
    cells = []
    for rows in kernels:
        lengths = [row.sizes["length"] for row in rows]
        found = [_bounds(row) for row in rows]
        seconds = {
            unit: extended(lengths, [one[unit].amount for one in found], length) / last.rate
            for unit, last in found[-1].items()
        }
        longest = max(seconds.values())
        cells.append(
            {
                "on": _headed(rows[-1]),
                **{unit: f"{time / longest:.2f}" for unit, time in seconds.items()},
                "ratio": f"{seconds['result'] / seconds['FLOP']:.0%}",
            }
        )
    columns = [
        Column("on", say("on")),
        Column("byte", say("memory"), align="right"),
        Column("FLOP", say("tensor cores"), align="right"),
        Column("result", say("special functions"), align="right"),
        Column("wavefront", say("shared memory"), align="right"),
        Column("ratio", say("special ÷ tensor"), align="right"),
    ]
    return table(
        [{"wavefront": "", **one} for one in cells],
        columns,
        say(
            "least time of each resource at {length:,} tokens, extended from counts at fewer; the longest of "
            "a line is 1",
            length=length,
        ),
    )


def extended(lengths: Sequence[int], amounts: Sequence[float], length: int) -> float:
    """a + b length + c length^2 through three amounts: what causal tiles do, of lengths that they divide.

    Each block of queries does a number of blocks of keys that grows with its place; the constant is what the
    first does in vain, where a compiler has drawn a turn out of the loop.
    """
    one, two, three = (Fraction(amount) for amount in amounts)
    x, y, z = lengths
    return float(
        one * (length - y) * (length - z) / ((x - y) * (x - z))
        + two * (length - x) * (length - z) / ((y - x) * (y - z))
        + three * (length - x) * (length - y) / ((z - x) * (z - y))
    )


def _headed(row: Executed) -> str:
    card = catalog.accelerator(TARGETS[row.target].accelerator).short_name
    if "head_dim" not in row.sizes:
        return card
    return say("{card}, head_dim {head_dim}", card=card, head_dim=row.sizes["head_dim"])


def _bounds(row: Executed) -> dict[str, Ceiling]:
    """By unit; see `limits` for what is left out."""
    found = ceilings(row, catalog.accelerator(TARGETS[row.target].accelerator))
    own = all(name.startswith("mma.sync") for name in row.tensor_flops)
    return {one.unit: one for one in found if one.bounds and (own or one.unit != "wavefront")}


@dataclass(frozen=True)
class TakenOut:
    """Synchronisations of one kind, each taken out of a kernel once: how many, and of these, for how many a
    race is seen and a result changes.
    """

    times: int = 0
    seen: int = 0
    changes: int = 0


def taken_out() -> dict[str, TakenOut]:
    """By kind, over all kernels and chips of the table that `tests/kernels/executed/mutations.py` keeps."""
    kept = json.loads((ROOT / "tests/kernels/executed/mutations.json").read_text(encoding="utf-8"))
    found: dict[str, TakenOut] = {}
    for kinds in (kinds for launches in kept["cases"].values() for kinds in launches.values()):
        for kind, entry in kinds.items():
            so_far = found.get(kind, TakenOut())
            found[kind] = TakenOut(
                so_far.times + entry["there"],
                so_far.seen + entry["missed"],
                so_far.changes + entry["changes"],
            )
    return found


def races_seen(taken: Mapping[str, TakenOut]) -> Table:
    """`taken_out` as a table."""
    return table(
        [[kind, one.times, one.seen or say("not watched"), one.changes] for kind, one in taken.items()],
        [say("taken out"), say("times"), say("a race is seen"), say("a result changes")],
        say(
            "one at a time, from matmul, linear, attention and (not for Blackwell) decode attention and gemv"
        ),
    )


def short(step: Step) -> str:
    """An instruction's name without what every one of its kind says: "ldmatrix.x4", "wgmma m64n64k16"."""
    if step.kind == "product":
        return re.sub(r"\.(?:bf16|f16|e4m3|e5m2)\b", "", step.name)
    form, _, rest = step.name.partition(" ")
    kept = [part for part in form.split(".") if not _DROPPED.fullmatch(part)]
    name = re.sub(
        r"^(cp\.async|ldmatrix|stmatrix)\.(trans\.)?shared(?:\.global)?", r"\1.\2", ".".join(kept)
    ).strip(".")
    return f"{name} {rest}".strip()


# Types, layouts and spaces that say nothing about what an instruction is for.
_DROPPED = re.compile(
    r"sync|aligned|approx|ftz|m8n8|[bfsu]\d+|cg|ca|parity|cta_group::1|mbarrier::arrive::one|shared::c\w+"
    r"|32x32b|16x32bx2|x\d+|bfly|idx|L\d\S*"
)


def _told(step: Step) -> str:
    return (
        f'<div title="{html.escape(step.form)}"><b>{amount(step.count)}</b> '
        f"<span>{html.escape(short(step)).replace('.', '.<wbr>')}</span></div>"
    )


def amount(value: float) -> str:
    """Whole where it is; an average of turns that differ is not."""
    return number(round(value)) if abs(value - round(value)) < 1e-9 else number(value, 3)


def _source(where: str) -> str:
    """The line of the kernel, "matmul.py:61", without its comment."""
    name, _, line = where.partition(":")
    text = linecache.getline(str(ROOT / "kernels" / name), int(line))
    return text.partition("  #")[0].strip()


def _some(label: str, values: Sequence[float], show: Callable[[float], str] | None = None) -> list[list[str]]:
    """A line of the summary, if any chip has it."""
    return [[label, *((show or amount)(v) if v else say("none") for v in values)]] if any(values) else []


def _flops(step: Step) -> int:
    """FLOP of a product instruction, from the shape in its name."""
    m, n, k = map(int, re.search(r"m(\d+)n(\d+)k(\d+)", step.name).groups())  # type: ignore[union-attr]
    return 2 * m * n * k


def flops_of(loop: HotLoop) -> float:
    """FLOP of all products of a turn."""
    return sum(_flops(step) * step.count for step in loop.of("product"))

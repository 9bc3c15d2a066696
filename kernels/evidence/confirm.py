"""A chapter's proof: run whatever this machine allows, say what it does not, raise if physics disagrees.

evidence = confirm(linear.experiment, m=[1, 16, 256], k=1024, n=1024)
evidence            # tables: counted, executed, compiled, and where the other rungs stand
evidence.figure()   # the roofline with the evidence on it
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from book import catalog
from book.roofline import Roof
from book.say import say
from kernels.contract import devices
from kernels.contract.errors import CardRefuses, CompilerAtFault, NotExecutable, Unsupported
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS
from kernels.evidence import child_process, counted, published, recorded, timed
from kernels.evidence import compiled as compiling
from kernels.evidence import executed as executing
from kernels.evidence.counted import counted_rows
from kernels.evidence.recorded import NOT_MEASURED
from kernels.evidence.sweeps import described, sweep
from kernels.evidence.timed.machine import gpu_here, why_not_timed

RUNGS = ("counted", "executed", "compiled", "timed", "recorded", "published")
ABOUT_CHIPS: Mapping[str, Any] = {"compiled": compiling, "executed": executing}  # that are not here
EASY = 2e8  # FLOP of what is executed for one chip after the other
STAND_IN = TARGETS[devices.STAND_IN].accelerator  # evidence is drawn for it where there is no GPU


# Headings and the sentences of the last block may wrap, so that the numbers fit a narrow page.
_CSS = (
    ".rl-evidence .rl-table th,.rl-evidence .rl-table td{padding:.3em .55em}"
    ".rl-evidence .rl-table thead th{white-space:normal;vertical-align:bottom}"
    ".rl-evidence .rl-table:last-child td{white-space:normal}"
    ".rl-evidence .rl-table tbody :only-child{white-space:normal;text-align:left;font-weight:inherit}"
)


@dataclass(frozen=True)
class Evidence:
    """What is known of one kernel, rung by rung.

    rows: counted (see CountedRow). executed, compiled: for the architecture of `accelerator` (executed: else
    of the stand-in) at every size, for the other chips at the last (executed: the last that is quick); of
    what is compiled, the main kernels.
    timed, ceilings: on the GPU that is here. recorded,
    published: series as in `points`. status: rung -> a phrase that says how it stands. arithmetic:
    what the roof computes in. measured: the roofs of the reader's own records.
    """

    experiment: Experiment
    accelerator: str
    arithmetic: str
    rows: tuple[counted_rows.CountedRow, ...]
    executed: tuple[executing.Executed, ...]
    compiled: tuple[compiling.Compiled, ...]
    timed: tuple[timed.Timed, ...]
    ceilings: timed.Ceilings | None
    recorded: tuple[dict[str, Any], ...]
    published: tuple[dict[str, Any], ...]
    status: Mapping[str, str]
    measured: tuple[Roof, ...] = ()

    def points(self) -> list[dict[str, Any]]:
        """Series for the explorer and the figures, each with its rung.

        {"rung", "label", "accelerator", "points": [{sizes, "intensity" (FLOP/byte), "flops_per_s",
        "seconds"}]}. Counted points have no time: their "flops_per_s" and "seconds" are None.
        """
        series = []
        if self.rows:
            fixed = {n: v for n, v in self.rows[0].sizes.items() if n != self.experiment.axis}
            label = ", ".join(filter(None, [say("counted"), described(fixed)]))
            places = [
                {**r.sizes, "intensity": r.intensity, "flops_per_s": None, "seconds": None} for r in self.rows
            ]
            series.append({"rung": "counted", "label": label, "accelerator": None, "points": places})
        good = [t for t in self.timed if not t.alarms]
        if good:
            places = [
                {**t.sizes, "intensity": t.intensity, "flops_per_s": t.flops_per_s, "seconds": t.seconds}
                for t in good
            ]
            card = catalog.accelerator(self.accelerator).short_name
            series.append(
                {
                    "rung": "timed",
                    "label": f"{say('timed here')}, {card}",
                    "accelerator": self.accelerator,
                    "points": places,
                }
            )
        return [*series, *self.recorded, *self.published]

    def figure(self) -> Any:
        """One matplotlib figure: the card's roof, the measured roof if there is one, the evidence."""
        from book.drawing import figures  # drawing stays out of measuring: it needs matplotlib

        card = catalog.accelerator(self.accelerator)
        dtype, unit = self.arithmetic, self.experiment.unit
        roofs = [Roof(f"{card.short_name} {dtype}", card.peak(dtype, unit), card.bandwidth)]
        if self.ceilings:
            roofs.append(self.ceilings.roof(say("measured here")))
        roofs += self.measured
        mine = [s for s in self.points() if s["accelerator"] in (None, self.accelerator)]
        return figures.roofline(roofs, mine, alt=self._finding())

    def _finding(self) -> str:
        card = catalog.accelerator(self.accelerator).short_name
        if not self.rows:
            return say(
                "The roofline of the {card}; the kernel {experiment} was not counted here.",
                card=card,
                experiment=self.experiment.name,
            )
        low, high = (f(r.intensity for r in self.rows) for f in (min, max))
        return say(
            "The roofline of the {card}: the kernel {experiment} was counted at {low:.3g} to "
            "{high:.3g} FLOP per byte, on the formula's own values.",
            card=card,
            experiment=self.experiment.name,
            low=low,
            high=high,
        )

    def tables(self) -> list[Any]:
        """The blocks that make the table: counted, executed, compiled, timed, and how each rung stands."""
        from kernels.evidence import tables  # as above: only those who look need it

        axis, made = self.experiment.axis, []
        if self.rows:
            made.append(tables.counted(self.experiment.name, axis, self.rows))
            made.append(tables.asked_for(axis, self.rows))
            if self.rows[-1].extra:
                made.append(tables.again(axis, self.rows[-1]))
        if self.executed:
            made.append(tables.executed(side_by_side(self.executed)))
        if self.compiled:
            made.append(tables.compiled(axis, self.compiled))
        if self.timed:
            made.append(tables.timed(axis, self.timed))
        return [*made, tables.rungs({rung: self.status[rung] for rung in RUNGS if rung in self.status})]

    def _repr_html_(self) -> str:
        tables = "".join(block._repr_html_() for block in self.tables())
        return f'<div class="rl-evidence"><style>{_CSS}</style>{tables}</div>'

    def __repr__(self) -> str:
        return "\n\n".join(repr(block) for block in self.tables())


def confirm(
    experiment: Experiment,
    *,
    rungs: Collection[str] | None = None,
    published: str | None = None,
    accelerator: str | None = None,
    timed_sizes: Mapping[str, Any] | None = None,
    records: Path | str | None = None,
    **sizes: Any,
) -> Evidence:
    """Collect the evidence for `experiment`; raises PhysicsDisagrees where a count is off by a byte,
    or where the compiled code is wrong, races or leaves its tensors.

    rungs: which of RUNGS; by default all. published: the catalog's series, by default the
    experiment's name. accelerator: a catalog id, by default the GPU that is here, else h100_sxm.
    sizes: for counted, executed and compiled, one of them a list; those left out come from the "counted"
    sweep. timed_sizes: in place of the "timed" sweep's, which is large enough to mean something.
    records: a record of the reader's own (`kernels.measure` and the labs write them), shown beside
    the book's, with the roof it measured; its card is then the default accelerator.
    """
    wanted = RUNGS if rungs is None else tuple(rungs)
    for rung in wanted:
        if rung not in RUNGS:
            raise ValueError(f"rungs = {rung!r}: not a rung; choose from {', '.join(RUNGS)}.")
    here = gpu_here() if accelerator is None or "timed" in wanted else None
    own = () if records is None else (recorded.load(records),)
    accelerator = (
        accelerator
        or next((card for record in own if (card := recorded.card_of(record))), None)
        or (here.accelerator if here else None)
        or STAND_IN
    )
    card = catalog.accelerator(accelerator)
    rows = sweep(experiment, "counted", **sizes)
    status: dict[str, str] = {}
    found: dict[str, Any] = {
        "rows": (),
        "executed": (),
        "compiled": (),
        "timed": (),
        "ceilings": None,
        "recorded": (),
        "published": (),
    }
    chips = {rung: _chips(rung, experiment, rows, card) for rung in wanted if rung in ABOUT_CHIPS}
    with child_process.ahead(*_shared_out(chips), interpret=False):  # while this process counts
        if "counted" in wanted:
            found["rows"], status["counted"] = _counted(experiment, rows)
        if "executed" in wanted:
            found["executed"], status["executed"] = _executed(chips["executed"])
        if "compiled" in wanted:
            found["compiled"], status["compiled"] = _compiled(experiment, chips["compiled"])
    if "timed" in wanted:
        found["timed"], found["ceilings"], status["timed"] = _timed(experiment, here, timed_sizes or {})
    if "recorded" in wanted:
        found["recorded"] = recorded.points(experiment.key)
        if own:
            found["recorded"] += recorded.points(experiment.key, records=own, others=True)
        status["recorded"] = "; ".join(s["label"] for s in found["recorded"]) or NOT_MEASURED
    if "published" in wanted:
        found["published"], status["published"] = _published(experiment, published)
    lacking = experiment.why_not(card)
    if lacking:
        status = {rung: f"{lacking} {said}" for rung, said in status.items()}
    dtype = card.default_dtype if lacking else experiment.arithmetic(experiment.best_dtype(card))
    roofs = tuple(roof for record in own for roof in recorded.roofs(record, experiment.key))
    return Evidence(experiment, card.id, dtype, **found, status=status, measured=roofs)


def _counted(experiment: Experiment, rows: Sequence[dict[str, int]]) -> tuple[tuple, str]:
    reason = counted_rows.why_not() or _reason(lambda: counted.interpretable(experiment))
    if reason:
        return (), say("not run: {reason}", reason=reason)
    made = counted_rows.rows(experiment, rows)
    if len(made) == 1:
        return made, say(
            "1 size in Triton's interpreter, in two orders of its programs; every byte and FLOP as the "
            "formulas say"
        )
    return made, say(
        "{count} sizes in Triton's interpreter, each in two orders of its programs; every byte and FLOP as "
        "the formulas say",
        count=len(made),
    )


# (experiment, target's name, sizes), as `executed.cases` and `compiled.cases` take them
Cases = list[tuple[Experiment, str, dict[str, int]]]


def _chips(rung: str, experiment: Experiment, rows: Sequence[dict[str, int]], card: Any) -> Cases:
    """What a rung says of chips: every size for the card's architecture, for the others one of them."""
    if devices.MODE == "missing":
        return []
    able = ABOUT_CHIPS[rung].targets_of(experiment)
    own = next((name for name in able if _stands_for(name, card)), None)
    if own is None and rung == "executed" and able:  # a table needs a chip at every size
        own = devices.STAND_IN if devices.STAND_IN in able else able[0]
    mine = [(experiment, own, row) for row in rows] if own else []
    last = _side_by_side(experiment, rows) if rung == "executed" else rows[-1]
    return mine + [(experiment, name, last) for name in able if name != own]


def _side_by_side(experiment: Experiment, rows: Sequence[dict[str, int]]) -> dict[str, int]:
    """The size at which all chips are executed: the last that takes each of them no more than a second."""
    small = [row for row in rows if experiment.cost(**row).flops <= EASY]
    return small[-1] if small else rows[0]


def _shared_out(chips: Mapping[str, Cases]) -> list[list[dict[str, Any]]]:
    """Requests for two child processes, one for each core of a small machine: a chip's with one of them,
    so that what is compiled for it is compiled once, and the chip of every size apart from the others.
    """
    asked = [
        one for rung in ("compiled", "executed") for one in ABOUT_CHIPS[rung].requests(chips.get(rung, []))
    ]
    own = asked[0]["target"] if asked else ""
    lists = ([one for one in asked if (one["target"] == own) is mine] for mine in (True, False))
    return [some for some in lists if some]


def _executed(wanted: Cases) -> tuple[tuple, str]:
    if devices.MODE == "missing":
        return (), say("not run: {reason}", reason=devices.why_not())
    if not wanted:
        return (), say("not run: no chip whose code can be executed here has its formats")
    try:
        made = executing.cases(wanted)
    except CardRefuses:
        raise
    except NotExecutable as error:  # a newer Triton emits what is not known here yet
        return (), say("not run: {reason}", reason=str(error))
    faults = []
    for row in made:
        try:
            row.check()
        except CompilerAtFault as fault:
            faults.append(str(fault))
    targets, dtype = _targets(made), ", ".join(dict.fromkeys(row.dtype for row in made))
    worst, allowed = max(row.relative_error for row in made), max(row.tolerance for row in made)
    if faults:
        return made, say(
            "as compiled for {targets}, on this CPU; right to {worst:.1e} in {dtype} ({allowed:g} allowed), "
            "no access outside the tensors' memory. But {fault}",
            targets=targets,
            worst=worst,
            dtype=dtype,
            allowed=allowed,
            fault=faults[0],
        )
    return made, say(
        "as compiled for {targets}, on this CPU; right to {worst:.1e} in {dtype} ({allowed:g} allowed), no "
        "data race, no access outside the tensors' memory",
        targets=targets,
        worst=worst,
        dtype=dtype,
        allowed=allowed,
    )


def side_by_side(rows: Sequence[executing.Executed]) -> list[executing.Executed]:
    """Those of the size at which most chips were executed, in the order of their architectures."""
    sizes = [row.sizes for row in rows]
    shared = max(sizes, key=lambda one: (sizes.count(one), sizes.index(one)))
    return sorted(
        (row for row in rows if row.sizes == shared), key=lambda row: list(TARGETS).index(row.target)
    )


def _compiled(experiment: Experiment, wanted: Cases) -> tuple[tuple, str]:
    if devices.MODE == "missing":
        return (), say("not run: {reason}", reason=devices.why_not())
    made = compiling.cases(wanted)
    for row in made:
        if not row.fits:  # nobody can launch it, so nothing else that is said of it matters
            row.check()
    # A launch may start helper kernels (the sum of split-K partials): the table shows the main one.
    main, seen = [], set()
    for row in made:
        key = (row.target, tuple(row.sizes.items()))
        if key not in seen:
            seen.add(key)
            main.append(row)
    spilled = sorted(
        {say("{kernel} on {target}", kernel=row.kernel, target=row.target) for row in made if row.spills}
    )
    targets = _targets(made)
    if spilled:
        words = say("for {targets}; spills in {kernels}", targets=targets, kernels=", ".join(spilled))
    else:
        words = say("for {targets}; no spills", targets=targets)
    if without := _without_tensor_cores(experiment, made):
        words = say(
            "{words}; no tensor-core instruction on {targets}", words=words, targets=", ".join(without)
        )
    return tuple(main), words


def _targets(rows: Sequence[Any]) -> str:
    found = {row.target for row in rows}
    return ", ".join(name for name in TARGETS if name in found)


def _without_tensor_cores(experiment: Experiment, made: Sequence[compiling.Compiled]) -> list[str]:
    """Targets on which a matrix kernel multiplies without them, although they have its dtype's."""
    if experiment.unit != "matrix":
        return []
    used = {row.target for row in made if row.instruction != "none" or row.dtype == "fp32"}
    return [name for name in dict.fromkeys(row.target for row in made) if name not in used]


def _reason(ask: Callable[[], Any]) -> str:
    """The sentence with which `ask` says that something can't be done here, or ""."""
    try:
        ask()
    except Unsupported as error:
        return str(error)
    return ""


def _stands_for(name: str, card: Any) -> bool:
    return catalog.accelerator(TARGETS[name].accelerator).compute_capability == card.compute_capability


def _timed(experiment: Experiment, here: Any, sizes: Mapping[str, Any]) -> tuple[tuple, Any, str]:
    reason = why_not_timed(here)
    if reason:
        return (), None, f"{NOT_MEASURED}: {reason}"
    reason = _reason(lambda: timed.default_dtype(experiment, here))
    if reason:
        return (), None, f"{NOT_MEASURED}: {reason}"
    made, tops = timed.run(experiment, device=here, **sizes)
    alarms = [sentence for row in made for sentence in row.alarms]
    if not alarms:
        return made, tops, say("on {gpu}", gpu=here.name)
    words = say("on {gpu}; {count} impossible: {first}", gpu=here.name, count=len(alarms), first=alarms[0])
    return made, tops, words


def _published(experiment: Experiment, name: str | None) -> tuple[tuple, str]:
    if name is None and experiment.name not in catalog.published_kinds():
        return (), say("nothing published in the catalog")
    series = published.points(experiment, name)
    if not series:
        return (), say("what is published is of other shapes than this kernel's")
    sources = dict.fromkeys(s["source"].partition(": ")[0] for s in series)
    return series, say(
        "{count} series by others, never mixed with ours: {sources}",
        count=len(series),
        sources="; ".join(sources),
    )

"""A chapter's proof: run whatever this machine allows, say what it does not, raise if physics disagrees.

evidence = confirm(linear.experiment, m=[1, 16, 256], k=1024, n=1024)
evidence            # rung by rung: how it stands, and the table of what it found
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
from kernels.contract.errors import Unsupported
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS
from kernels.contract.wrong import Wrong
from kernels.evidence import child_process, chips, counted, published, recorded, series, timed
from kernels.evidence import compiled as compiling
from kernels.evidence import executed as executing
from kernels.evidence.counted import counted_rows
from kernels.evidence.recorded import NOT_MEASURED
from kernels.evidence.sweeps import described, sweep
from kernels.evidence.timed.machine import gpu_here, why_not_timed

RUNGS = ("counted", "executed", "compiled", "timed", "recorded", "published")
STAND_IN = TARGETS[devices.STAND_IN].accelerator  # evidence is drawn for it where there is no GPU


@dataclass(frozen=True)
class Evidence:
    """What is known of one kernel, rung by rung.

    rows: counted (see CountedRow). executed, compiled: for the architecture of `accelerator` (executed: else
    of the stand-in) at every size, for the other chips at the last (executed: the last that is quick); of
    what is compiled, the main kernels.
    timed, ceilings: on the GPU that is here. recorded,
    published: series as in `points`. status: rung -> a phrase that says how it stands. arithmetic:
    what the roof computes in. measured: the roofs of the reader's own records. rehearsed: series of a
    record that is a rehearsal: drawn in the figure under that name, and in no rung. wrong: rows of a
    kernel with a mistake, counted beside it at the same sizes; mistake: what it does, in a sentence.
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
    rehearsed: tuple[dict[str, Any], ...] = ()
    wrong: tuple[counted_rows.CountedRow, ...] = ()
    mistake: str = ""

    def points(self) -> list[dict[str, Any]]:
        """Series for the explorer and the figures, each with its rung.

        {"rung", "label", "accelerator", "points": [{sizes, "intensity" (FLOP/byte), "flops_per_s",
        "seconds"}]}. Counted points have no time (see `series.marks`).
        """
        found = []
        if self.rows:
            fixed = {n: v for n, v in self.rows[0].sizes.items() if n != self.experiment.axis}
            label = ", ".join(filter(None, [say("counted"), described(fixed)]))
            found.append(series.marks("counted", label, self.rows))
        good = [t for t in self.timed if not t.alarms]
        if good:
            places = [
                {**t.sizes, "intensity": t.intensity, "flops_per_s": t.flops_per_s, "seconds": t.seconds}
                for t in good
            ]
            card = catalog.accelerator(self.accelerator).short_name
            found.append(
                {
                    "rung": "timed",
                    "label": f"{say('timed here')}, {card}",
                    "accelerator": self.accelerator,
                    "points": places,
                }
            )
        return [*found, *self.recorded, *self.published]

    def figure(self, caption: str = "", number: str = "") -> Any:
        """One matplotlib figure: the roof of the unit that computes, measured roofs, the evidence.

        caption, number: as `book.drawing.svg.show` has them.
        """
        from book.drawing import captions, figures  # drawing stays out of measuring: it needs matplotlib

        card = catalog.accelerator(self.accelerator)
        dtype, unit = self.arithmetic, self.experiment.unit
        name = f"{card.short_name} {dtype}"
        if unit == "vector":
            name = say("{card} vector {dtype}", card=card.short_name, dtype=dtype)
        roofs = [Roof(name, card.peak(dtype, unit), card.bandwidth)]
        if self.ceilings:
            roofs.append(self.ceilings.roof(say("measured here")))
        roofs += self.measured
        drawn = [*self.points(), *self.rehearsed]
        mine = [s for s in drawn if s["accelerator"] in (None, self.accelerator)]
        # sizes stand in the tables; here they would leave no room
        mine = [{**s, "label": say("counted")} if s["rung"] == "counted" else s for s in mine]
        mine = series.told_apart(mine)
        if self.wrong:
            mine.append(series.marks("mistaken", say("counted, with the mistake"), self.wrong))
        said = series.finding(card.short_name, self.experiment.name, self.rows, self.wrong)
        return captions.put(figures.roofline(roofs, mine, highlight=name, alt=said), caption, number)

    def sections(self) -> list[Any]:
        """One for each rung: how it stands, then what it found."""
        from kernels.evidence import sections, tables  # as above: only those who look need it

        axis, rows = self.experiment.axis, self.rows
        shown: dict[str, list[Any]] = {rung: [] for rung in self.status}
        folded: list[Any] = []
        if rows:
            shown["counted"] = [tables.counted(self.experiment.name, axis, rows)]
            if self.wrong:
                shown["counted"].append(tables.mistaken(axis, self.wrong, self.mistake))
                if self.wrong[-1].extra:
                    shown["counted"].append(tables.too_many(axis, self.wrong[-1]))
            folded = [tables.asked_for(axis, rows)]
            if any(r.useful_flops for r in rows):
                folded.append(tables.arithmetic(axis, rows))
            if rows[-1].extra:
                folded.append(tables.again(axis, rows[-1]))
        if self.executed:
            shown["executed"] = [tables.executed(chips.side_by_side(self.executed))]
        if self.compiled:
            shown["compiled"] = [tables.compiled(axis, self.compiled)]
        if self.timed:
            shown["timed"] = [tables.timed(axis, self.timed)]
        return [
            sections.Section(rung, self.status[rung], shown[rung], folded if rung == "counted" else [])
            for rung in RUNGS
            if rung in self.status
        ]

    def _repr_html_(self) -> str:
        from kernels.evidence import sections

        return sections.page(self.sections())

    def __repr__(self) -> str:
        return "\n\n".join(repr(section) for section in self.sections())


def confirm(
    experiment: Experiment,
    *,
    rungs: Collection[str] | None = None,
    published: str | None = None,
    accelerator: str | None = None,
    timed_sizes: Mapping[str, Any] | None = None,
    records: Path | str | None = None,
    wrong: Wrong | None = None,
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
    wrong: a kernel with a mistake (`kernels.wrong`), counted beside it at the same sizes; that its bytes
    are not the formula's is shown, and raises nothing.
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
        "rehearsed": (),
    }
    cases = {rung: chips.cases(rung, experiment, rows, card) for rung in wanted if rung in chips.RUNGS}
    with child_process.ahead(*chips.shared_out(cases), interpret=False):  # while this process counts
        if "counted" in wanted:
            found["rows"], status["counted"] = _counted(experiment, rows)
            if wrong and found["rows"]:
                found["wrong"] = counted_rows.rows(wrong.experiment, rows, mistaken=True)
                found["mistake"] = wrong.mistake
        if "executed" in wanted:
            found["executed"], status["executed"] = chips.executed(cases["executed"], card)
        if "compiled" in wanted:
            found["compiled"], status["compiled"] = chips.compiled(experiment, cases["compiled"])
    if "timed" in wanted:
        found["timed"], found["ceilings"], status["timed"] = _timed(experiment, here, timed_sizes or {})
    if "recorded" in wanted:
        found["recorded"] = recorded.points(experiment.key)
        if own:
            found["recorded"] += recorded.points(experiment.key, records=own, others=True)
            found["rehearsed"] = recorded.rehearsed(experiment.key, own)
        status["recorded"] = "; ".join(s["label"] for s in found["recorded"]) or NOT_MEASURED
        if found["rehearsed"]:
            status["recorded"] = say(
                "{status}; {file} is a rehearsal, and is none of evidence",
                status=status["recorded"],
                file=Path(records).name,
            )
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


def _reason(ask: Callable[[], Any]) -> str:
    """The sentence with which `ask` says that something can't be done here, or ""."""
    try:
        ask()
    except Unsupported as error:
        return str(error)
    return ""


def _timed(experiment: Experiment, here: Any, sizes: Mapping[str, Any]) -> tuple[tuple, Any, str]:
    reason = why_not_timed(here)
    if reason:
        return (), None, f"{NOT_MEASURED}: {reason}"
    reason = _reason(lambda: timed.default_dtype(experiment, here))
    if reason:
        return (), None, f"{NOT_MEASURED}: {reason}"
    try:
        made, tops = timed.run(experiment, device=here, **sizes)
    except Unsupported as error:  # no point fits into memory, say
        return (), None, f"{NOT_MEASURED}: {error}"
    alarms = [sentence for row in made for sentence in row.alarms]
    if not alarms:
        return made, tops, say("on {gpu}", gpu=here.name)
    words = say("on {gpu}; {count} impossible: {first}", gpu=here.name, count=len(alarms), first=alarms[0])
    return made, tops, words


def _published(experiment: Experiment, name: str | None) -> tuple[tuple, str]:
    if name is None and experiment.name not in catalog.published_kinds():
        return (), say("nothing published in the catalog")
    found = published.points(experiment, name)
    if not found:
        return (), say("what is published is of other shapes than this kernel's")
    sources = dict.fromkeys(s["source"].partition(": ")[0] for s in found)
    return found, say(
        "{count} series by others, never mixed with ours: {sources}",
        count=len(found),
        sources="; ".join(sources),
    )

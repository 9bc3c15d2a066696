"""The parent: orders the work, keeps the record, and survives whatever becomes of a child.

Nothing here touches a card, and nothing that a child does can end it. Each result is in the record,
and on the disk, as soon as it is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from book.drawing.number_text import si
from kernels.contract.experiment import Experiment
from kernels.evidence import alarm, recorded, timed
from kernels.evidence.addresses import address
from kernels.evidence.recorded import write
from kernels.evidence.sweeps import described
from kernels.evidence.timed.machine import Device
from kernels.evidence.timed.sampling import Sampler, clocks, others
from kernels.measure.bench import HERE
from kernels.measure.children import Ask, Died, Event, TooLate
from kernels.measure.work import AGAIN, Job, Sizes, jobs, missing, sentence, without_done

DEATHS = 2  # children that may die at one kernel before the rest of it is left out
SECONDS = {False: 0.3, True: 0.1}  # of timing a point, by whether it must be quick
QUIET = ("launches",)  # tasks that time Python itself: no other child may import beside them
BUDGET_SPENT = "the minutes were spent before its turn"
AT_THE_END = 3.0  # seconds that the driver's tool may take then

Tell = Callable[[str], None]


@dataclass
class Progress:
    """How far the children of one kernel are. at: the size that the last one began, until it is told.

    beside: the size, told already, beside which it tries the vendor's kernels. tried: that size, until
    the next one is begun.
    """

    left: list[Sizes]
    at: Sizes | None = None
    beside: Sizes | None = None
    tried: Sizes | None = None
    points: int = 0

    def begins(self) -> None:
        """Another child has the rest: it is at nothing yet."""
        self.at = self.beside = self.tried = None

    def takes(self, event: Event) -> bool:
        """Follow an event; whether it is a result."""
        if event["is"] in ("at", "beside"):
            begun = event["is"] == "at"
            self.at, self.beside = (event["sizes"], None) if begun else (None, event["sizes"])
            self.tried = self.beside
            return False
        done = event["point"]["sizes"] if event["is"] == "point" else event["sizes"]
        self.left = [row for row in self.left if done is not None and row != done]
        self.points += event["is"] == "point" and not self.beside  # told again, with the vendor's time
        self.at = self.beside = None
        return True


@dataclass
class Run:
    """One run of the command. record: filled and written to `out` after each result.

    until: when all must be over, by `now`; None for never. good: nothing was wrong or
    impossible so far. bench: what the children measure on (see kernels.measure.bench). rung: whose
    sweep has the sizes.
    """

    record: dict[str, Any]
    out: Path
    device: Device
    ask: Ask
    tell: Tell
    until: float | None = None
    quick: bool = False
    bench: str = HERE
    rung: str = "timed"
    good: bool = True
    unsaved: str = ""
    now: Callable[[], float] = time.monotonic
    sampler: Sampler | None = None
    _launches_tried: bool = False
    _todo: list[Job] = field(default_factory=list)
    _arithmetic: dict[tuple[str, str], str] = field(default_factory=dict)
    _alone: set[tuple[str, str]] = field(default_factory=set)  # of these a vendor's kernel took a process

    # ------------------------------------------------------------------------------ the order

    def measure(
        self,
        experiments: Mapping[str, Experiment],
        *,
        dtype: str | None = None,
        launches: bool = True,
        counters: Callable[[Run, Sequence[Job]], None] | None = None,
    ) -> None:
        """All that was asked for, the most telling first; ends early, with notes, when the time is up."""
        every, refused = jobs(experiments, self.device, dtype, self.quick, self.rung)
        for _, reason in refused:
            self._note(f"Not timed: {reason}")
        todo = [without_done(job, self.record) for job in every]
        self._todo = todo = [job for job in todo if job.rows]
        if others(self.device):
            self._note("Another program is on this card: what it runs meanwhile is in these times.")
        with Sampler(self.device) as self.sampler:
            right = self._check(todo)
            self._ceilings(right)
            if self.until is not None:  # one point of each kernel, what a launch costs, then the others
                for job in right:
                    self._points(job.only(job.rows[:1]))
                right = [job.only(job.rows[1:]) for job in right]
                self._launches(launches)
            for job in right:
                self._points(job)
            self._launches(launches)
            for found in self._dtypes_compared():
                self._note(found.sentence)
                self.good = False
            if counters:
                counters(self, every)
        # A run that filled the gaps of an earlier one is whole; what doesn't fit into memory is no gap.
        gaps = [gap for gap in self.record["missing"] if gap["why"] in AGAIN]
        self.record["status"] = "partial" if gaps else "complete"
        self.record["clocks"]["after"] = clocks(self.device, AT_THE_END)
        self.save()

    def stopped(self, reason: str) -> None:
        """Note everything that was still to be done: the run ends before its end."""
        for job in self._todo:
            known = [gap["sizes"] for gap in self.record["missing"] if gap["experiment"] == job.key]
            if None not in known:
                for row in without_done(job, self.record).rows:
                    if row not in known:
                        self.record["missing"].append(missing(job, "stopped", reason, row))
        self.record["notes"].append(f"This run was {reason}; what was measured until then is here.")
        self.save()

    def left(self) -> float:
        """Seconds that are left of the minutes; infinity where there is no limit."""
        return float("inf") if self.until is None else self.until - self.now()

    def _late(self) -> bool:
        return self.left() <= 0

    # -------------------------------------------------------------------------- what can happen

    def request(self, what: Mapping[str, Any], got: Callable[[Event], None]) -> str:
        """Ask a child; returns how it ended: "done", "lost", "late" or "died: ...".

        got: is told each event; a failure that concerns no size ends in the record's gaps.
        """
        if self._late():
            return "late"
        shared = {"bench": self.bench, "cold": self.record.get("cold_cache")}
        try:
            for event in self.ask({**shared, **what}, until=self.until, ahead=what["task"] not in QUIET):
                if event["is"] == "lost":
                    self._note(f"The card answered no more, and another process went on: {event['reason']}")
                    return "lost"
                got(event)
        except TooLate:
            return "late"
        except Died as error:
            return f"died: {error}"
        return "done"

    def gap(self, job: Job, why: str, reason: str, sizes: Sizes | None = None) -> None:
        """Something that is missing, and why: kept, told and survived."""
        found = missing(job, why, reason, sizes)
        self.record["missing"].append(found)
        if why != "time":
            self.tell(f"  {sentence(found)}")
        self.save()

    def _note(self, line: str) -> None:
        if line not in self.record["notes"]:
            self.record["notes"].append(line)
            self.tell(f"  {line}")

    def save(self) -> None:
        """Write the record. A disk that is full is told once; the next result tries again."""
        try:
            recorded.save(self.record, self.out)
        except OSError as error:
            if not self.unsaved:
                self.tell(
                    f"  {self.out} can't be written ({error.strerror or error}): make room; the run goes on"
                )
            self.unsaved = str(error.strerror or error)
        else:
            self.unsaved = ""

    # ------------------------------------------------------------------------------- the stages

    def _check(self, todo: Sequence[Job]) -> list[Job]:
        """The jobs whose kernel is right on this card. Where a child dies, another checks those behind."""
        self.tell(f"{self.device.name}: checking {len(todo)} kernels against float64")
        right: list[Job] = []
        left = list(todo)
        while left:
            told: list[list[Event]] = []  # of each kernel that was begun

            def got(event: Event, told: list[list[Event]] = told, left: list[Job] = left) -> None:
                if event["is"] == "begins" or not told:
                    told.append([])
                told[-1].append(event)
                if event["is"] in ("checked", "failed"):
                    self._checked(left[len(told) - 1], told[-1], right)

            kernels = [{"experiment": address(job.experiment), "dtype": job.dtype} for job in left]
            how = self.request({"task": "check", "kernels": kernels}, got)
            over = sum(events[-1]["is"] in ("checked", "failed") for events in told)
            left = left[over:]
            if how == "late":
                for job in left:
                    self.gap(job, "time", BUDGET_SPENT)
                break
            if left and (how.startswith("died") or not over):
                ended = {"is": "failed", "reason": how.removeprefix("died: ")}
                self._checked(left.pop(0), [*(told[over] if over < len(told) else ()), ended], right)
        return right

    def _checked(self, job: Job, told: Sequence[Event], right: list[Job]) -> None:
        """Keep what became of a kernel's check, the last of these events."""
        last = told[-1]
        if last["is"] == "checked":
            self.record["correct"][job.key] = last["outcome"]
            self.tell(f"  {job.key} in {job.dtype}: {last['outcome']['verdict']}")
            if last["outcome"]["verdict"] == "correct":
                self._arithmetic[job.key, job.dtype] = last["arithmetic"]
                right.append(job)
            else:
                self.good = False
                self.gap(job, "wrong", last["outcome"]["verdict"], last["outcome"]["sizes"])
        else:
            at = next((event["sizes"] for event in reversed(told) if event["is"] == "at"), None)
            where = f"while it was checked at {described(at)}, " if at else ""
            self.gap(job, "failed", f"{where}{last['reason']}")
        self.save()

    def _ceilings(self, right: Iterable[Job]) -> None:
        """The ceilings of each arithmetic that these kernels use, those of most worth first."""
        for dtype in dict.fromkeys(self._arithmetic[job.key, job.dtype] for job in right):
            for _ in range(DEATHS):
                if dtype in self.record["ceilings"] or self._late():
                    break
                self.tell(f"measuring the ceilings in {dtype}")
                how = self.request({"task": "ceilings", "dtype": dtype}, self._ceiling)
                if how.startswith("died"):
                    self._note(f"Ceilings in {dtype}: {how.removeprefix('died: ')}")

    def _ceiling(self, event: Event) -> None:
        if event["is"] == "ceilings":
            self.record["ceilings"][event["dtype"]] = event["ceilings"]
            self.record["cold_cache"] = event["clock"]
            tops = event["ceilings"]
            self.tell(f"  {si(tops['bandwidth'], 'B/s')}, {si(tops['peak'], 'FLOP/s')} in {event['dtype']}")
            self.save()
        elif event["is"] == "failed":
            self._note(f"Ceilings: {event['reason']}")

    def _points(self, job: Job) -> None:
        """Time the sizes of this job, with another child for what is left where one dies."""
        if not job.rows:
            return
        arithmetic = self._arithmetic[job.key, job.dtype]
        tops = self.record["ceilings"].get(arithmetic)
        if tops is None and not self._late():
            self.gap(job, "failed", f"there is no ceiling in {arithmetic} to hold it against")
            return
        began, progress, deaths = self.now(), Progress(list(job.rows)), 0
        while progress.left:

            def got(event: Event) -> None:
                if progress.takes(event):
                    self._told(job, arithmetic, event)

            progress.begins()
            how = self.request(self._asked(job, progress.left, tops), got)
            if how == "late":
                for row in progress.left:
                    self.gap(job, "time", BUDGET_SPENT, row)
                break
            if how == "done":
                break
            if self._a_vendor_did_it(job, progress, how):
                continue
            deaths += 1
            if how.startswith("died"):
                # Whatever it was at, it is not tried again; with nothing begun, there is no use in going on.
                self.gap(job, "failed", how.removeprefix("died: "), progress.at)
                progress.left = [row for row in progress.left if progress.at and row != progress.at]
            if deaths >= DEATHS:
                for row in progress.left:
                    self.gap(job, "failed", f"left out, as {deaths} processes were lost at this kernel", row)
                break
        self.tell(f"{job.key}: {progress.points} points, {self.now() - began:.0f} s")

    def _a_vendor_did_it(self, job: Job, progress: Progress, how: str) -> bool:
        """Whether a vendor's kernel took the process or the card; none is tried beside this kernel again."""
        at = progress.tried
        if at is None:
            return False
        took = "card" if how == "lost" else f"process: {how.removeprefix('died: ')}"
        where = f"{job.key} in {job.dtype} at {described(at)}"
        self._note(f"{where}: beside it a vendor's kernel took the {took}")
        self._alone.add((job.key, job.dtype))
        return True

    def _asked(self, job: Job, rows: Sequence[Sizes], tops: Mapping[str, Any] | None) -> dict[str, Any]:
        return {
            "task": "points",
            "experiment": address(job.experiment),
            "dtype": job.dtype,
            "sizes": list(rows),
            "ceilings": tops,
            "budget": SECONDS[self.quick],
            "baselines": (job.key, job.dtype) not in self._alone,
        }

    def _told(self, job: Job, arithmetic: str, event: Event) -> None:
        """Keep one result of a child: a point, or why there is none."""
        if event["is"] == "left_out":
            self.gap(job, "memory" if event["memory"] else "unsupported", event["reason"], event["sizes"])
            return
        if event["is"] == "failed":
            self.good = self.good and not event["wrong"]
            self.gap(job, "wrong" if event["wrong"] else "failed", event["reason"], event["sizes"])
            return
        point = event["point"]
        point["clocks"] = self.sampler.between(event["began"], event["ended"]) if self.sampler else None
        points = self._sweep(job, arithmetic)["points"]
        before = next((one for one in points if one["sizes"] == point["sizes"]), None)
        if before:  # the same point, now with the vendor's time
            points.remove(before)
        points.append(point)
        points.sort(key=lambda one: one["sizes"][job.experiment.axis])  # in whatever order they came
        self.good = self.good and not point["alarms"]
        for line in (*point["notes"], *point["alarms"]):
            if not before or line not in (*before["notes"], *before["alarms"]):
                self.tell(f"  {job.key}: {line}")
        self.save()

    def _sweep(self, job: Job, arithmetic: str) -> dict[str, Any]:
        """The sweep of this job in the record, made where it isn't there yet."""
        for kept in self.record["sweeps"]:
            if (kept["experiment"], kept["dtype"]) == (job.key, job.dtype):
                return kept
        axis = job.experiment.axis
        fixed = {name: value for name, value in job.rows[0].items() if name != axis}
        named = {"experiment": job.key, "axis": axis, "dtype": job.dtype, "arithmetic": arithmetic}
        self.record["sweeps"].append({**named, "fixed": fixed, "points": []})
        return self.record["sweeps"][-1]

    def _launches(self, wanted: bool) -> None:
        """What a launch costs, unless the record has it, or says why not."""
        if not wanted or "overhead" in self.record or self._launches_tried:
            return
        self._launches_tried = not self._late()
        tops = next(iter(self.record["ceilings"].values()), None)
        reached = [tops["bandwidth"], tops["bandwidth_by"]] if tops else None

        def got(event: Event) -> None:
            if event["is"] == "launches":
                self.record["overhead"] = event["overhead"]
            else:
                self._note(f"The cost of a launch: {event['reason']}")

        how = self.request({"task": "launches", "bandwidth": reached, "quick": self.quick}, got)
        if how != "done":
            reason = BUDGET_SPENT if how == "late" else how.removeprefix("died: ")
            self._note(f"The cost of a launch was not measured: {reason}.")
        self.save()

    def _dtypes_compared(self) -> tuple[alarm.Alarm, ...]:
        """The ceilings of this run in all its dtypes, those that were measured, held against each other."""
        tops = {dtype: write.ceilings_of(kept) for dtype, kept in self.record["ceilings"].items()}
        peaks = {dtype: top.peak for dtype, top in tops.items() if top.peak_measured}
        return alarm.dtype_ratio(peaks, self.device.card(), timed.MEASURED_TOLERANCE)

"""The command itself: what was asked for, the run, and what is said at its end."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from book import catalog
from kernels.evidence import recorded
from kernels.evidence.cpu import cpu_roofline
from kernels.evidence.experiments import choose
from kernels.evidence.recorded import provenance, write
from kernels.evidence.timed.cpu import LABEL
from kernels.evidence.timed.machine import Device, cpu_here
from kernels.measure import arguments, counters, rehearsal
from kernels.measure.bench import HERE
from kernels.measure.children import PATIENCE, Children, Died, TooLate
from kernels.measure.report import ending, table
from kernels.measure.run import Run

DONE, WRONG, NOTHING, MISSING, INTERRUPTED = 0, 1, 2, 3, 130
# Seconds of the minutes that are kept for the end: three processes that take KILLED to die, the sampler's
# thread as long, nvidia-smi AT_THE_END, the record and its table.
RESERVE = 10.0
SHARE = 1 / 6  # of the minutes that a child may say nothing: one that hangs must leave time for the others
LEAST_PATIENCE = 30.0  # seconds: a child imports torch and makes a context before its first word


def main(
    words: Sequence[str] | None = None,
    *,
    children: Children | None = None,
    bench: str = HERE,
    describe: str | None = None,
    began: float | None = None,
) -> int:
    """Measure, write the record, print a table; returns the exit code.

    children, bench, describe: who measures and on what, for tests and a rehearsal. began: when the
    minutes began, on time.monotonic; now by default.
    """
    began = time.monotonic() if began is None else began
    asked = arguments(words)
    given = list(sys.argv[1:] if words is None else words)
    command = "python -m kernels.measure " + shlex.join(given)
    until = began + 60 * asked.minutes - RESERVE if asked.minutes else None
    try:
        catalog.accelerators()
    except catalog.CatalogError as error:  # a bare machine lacks what reads it
        print(error, file=sys.stderr)
        return NOTHING
    if asked.device == "cpu":
        return _cpu(asked, command)
    if asked.rehearse and bench == HERE:
        found = rehearsal.addresses(asked.rehearse)
        bench, describe = found["bench"], found["describe"]
    try:
        names = [n.strip() for n in asked.kernels.split(",")] if asked.kernels else None
        experiments = choose(names)
    except ValueError as error:
        print(error, file=sys.stderr)
        return NOTHING
    children = children or Children(patience=_patience(asked.minutes))
    with contextlib.closing(children), _terminated():
        try:
            device, reason = _device(children, describe, until)
        except KeyboardInterrupt:
            return INTERRUPTED
        if device is None or reason:
            remedy = (
                "Run this on a machine with a GPU, or add --device cpu to record this CPU's own roofline."
            )
            said = (
                f"Nothing to rehearse on: {reason}."
                if asked.rehearse
                else f"Nothing to measure: {reason}. {remedy}"
            )
            print(said, file=sys.stderr)
            return NOTHING
        try:
            record = _record(asked, device, command)
            if device.imaginary:
                record["notes"] += [note for note in rehearsal.NOTES if note not in record["notes"]]
            before = None if asked.resume else _aside(asked.out)
            recorded.save(record, asked.out)
        except (OSError, recorded.RecordError, ValueError) as error:
            print(f"--out {asked.out}: {error}", file=sys.stderr)
            return NOTHING
        if before:
            tell(f"{asked.out} was there and is {before} now; --resume would have added to it")
        if not device.imaginary:
            now = datetime.datetime.now(datetime.UTC)
            for complaint in (*provenance.of_run(record, now), *provenance.of_device(record, device.card())):
                tell(f"before it begins, as the check will say it: {complaint}")
        # No CPU executes the sizes that a GPU is timed at.
        rung = "counted" if device.imaginary else "timed"
        run = Run(record, asked.out, device, children.ask, tell, until, asked.quick, bench, rung)
        code = None
        try:
            run.measure(
                experiments,
                dtype=asked.dtype,
                launches=names is None,
                counters=counters.count if asked.counters and not device.imaginary else None,
            )
        except KeyboardInterrupt:
            code = INTERRUPTED
            run.stopped("stopped by hand")
    tell(table(record))
    for line in ending(record, given):
        tell(line)
    where = _kept(run)
    tell(f"wrote {where}" if where else "the record could not be written anywhere")
    if code is not None:
        return code
    if not run.good:
        return WRONG
    failed = any(gap["why"] == "failed" for gap in record["missing"])
    return MISSING if failed or where != asked.out else DONE


def tell(line: str) -> None:
    """A line for whoever watches. Nobody may be left: a pipe or a connection that is closed ends no run."""
    with contextlib.suppress(OSError):
        print(line, flush=True)


def _patience(minutes: float | None) -> float:
    """Seconds that a child may say nothing."""
    return min(PATIENCE, max(LEAST_PATIENCE, 60 * minutes * SHARE)) if minutes else PATIENCE


def _aside(out: Path) -> Path | None:
    """Where a record of before lies now that stood at `out`: minutes on a card are not to be lost."""
    if not out.exists():
        return None
    number = 1
    while (other := out.with_name(f"{out.stem}-before-{number}{out.suffix}")).exists():
        number += 1
    return out.rename(other)


def _kept(run: Run) -> Path | None:
    """Where the record lies: where it was asked for, or, with that disk full, in the temporary folder."""
    if not run.unsaved:
        return run.out
    run.save()
    if not run.unsaved:
        return run.out
    other = Path(tempfile.gettempdir()) / run.out.name
    with contextlib.suppress(OSError):
        recorded.save(run.record, other)
        return other
    return None


@contextlib.contextmanager
def _terminated() -> Any:
    """Inside, a request to end (a batch system's SIGTERM, a lost connection's SIGHUP) is what Ctrl-C is."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    ends = [
        one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN
    ]  # nohup
    try:
        before = {one: signal.signal(one, stop) for one in ends}
    except ValueError:  # not the main thread: somebody else's to handle
        yield
        return
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _device(children: Children, describe: str | None, until: float | None) -> tuple[Device | None, str]:
    """The card that is here, as a child sees it; and why nothing can be measured on it, or ""."""
    try:
        for event in children.ask({"task": "describe", "describe": describe}, until=until):
            if event["is"] == "failed":
                return None, event["reason"]
            if event["is"] == "device":
                found = Device(**event["device"]) if event["device"] else None
                return found, event["reason"]
    except Died as error:
        return None, f"the card could not even be described: {error}"
    except TooLate:
        return None, "the minutes were spent before the card was described; give it more"
    return None, "no card was described"


def _record(asked: argparse.Namespace, device: Device, command: str) -> dict[str, Any]:
    """An empty record, or with --resume the one that is there, if it is of this card and this code."""
    fresh = {**write.empty(device, command), "missing": []}
    if not asked.resume:
        return fresh
    kept = recorded.load(asked.out)
    for field, mine, theirs in (
        ("kind", fresh["kind"], kept["kind"]),
        ("device.name", device.name, kept["device"]["name"]),
        ("commit", fresh["commit"], kept["commit"]),
        ("software", fresh["software"], kept["software"]),
    ):
        if mine != theirs:
            raise ValueError(
                f"{field} = {theirs!r}, and here it is {mine!r}: one record is of one card and one code; "
                "leave --resume out, and give --out another name."
            )
    again = f"Resumed {fresh['date']}: {command}"
    return {**kept, "status": "partial", "missing": [], "notes": [*kept["notes"], again]}


def _cpu(asked: argparse.Namespace, command: str) -> int:
    record = write.empty(cpu_here(), command)
    measure_cpu(record, asked.quick)
    record["status"] = "complete"
    recorded.save(record, asked.out)
    tell(table(record))
    tell(f"wrote {asked.out}")
    return DONE


def measure_cpu(record: dict[str, Any], quick: bool) -> None:
    """Fill `record` with this CPU's roofline by torch, under names of its own: no run of ours."""
    line = cpu_roofline(budget=0.05 if quick else 0.15)
    record["notes"].append(f"{LABEL}: torch's kernels in fp32, not this repository's.")
    record["ceilings"]["fp32"] = write.ceilings_as_record(line.ceilings)
    for name, axis, points in (("torch linear", "m", line.linear), ("torch dial", "k", line.dial)):
        record["sweeps"].append(write.sweep_as_record(name, axis, "fp32", points))

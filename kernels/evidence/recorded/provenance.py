"""What is wrong with where a record comes from: its versions, its commit, its day, its card, its checks.

Each function yields complaints, sentences with a remedy (see `plausible`).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

from book import catalog
from book.catalog import Accelerator
from kernels.evidence import recorded

SMALLER_MEMORY = 0.85  # what a driver reports is less than the label: its own share, and ECC on some cards
FIRST_YEAR = 2026  # there was no such record before

_ON_A_CARD = "measure on a card that is there."


def of_run(record: recorded.Record, now: datetime.datetime) -> Iterator[str]:
    """Versions, clocks, commit and day."""
    for package in ("python", "torch", "triton"):
        if not record["software"].get(package):
            yield f"software.{package} is missing: a time means little without it; measure again."
    if not (record["software"].get("cuda") or record["software"].get("hip")):
        yield "software.cuda and software.hip are both missing: torch had no GPU; measure again with one."
    yield from _clocks(record)
    commit = record["commit"]
    if commit.endswith("+"):
        yield f"commit = {commit!r}: files had been changed; commit or stash that, and measure again."
    elif commit == "unknown":
        yield "commit = 'unknown': measure in a clone of the repository, so that the code can be found."
    elif not re.fullmatch("[0-9a-f]{7,40}", commit):
        yield f"commit = {commit!r}: no commit's name; measure in a clone of the repository."
    try:
        began = datetime.datetime.fromisoformat(record["date"])
    except ValueError:
        began = None
    if began is None or began.tzinfo is None or not record["date"].startswith(f"{began:%Y-%m-%d}T"):
        yield f"date = {record['date']!r}: must be a time of ISO 8601 with its offset; measure again."
    elif began.astimezone(datetime.UTC).year < FIRST_YEAR:
        yield f"date = {record['date']!r}: older than this book; set that machine's clock, and measure again."
    elif began > now + datetime.timedelta(hours=1):
        yield f"date = {record['date']!r}: it lies ahead; set the clock of that machine, and measure again."


def _clocks(record: recorded.Record) -> Iterator[str]:
    """NVIDIA's tool is asked before a run; AMD's while kernels run, so its clocks stand in the points."""
    if record["software"].get("cuda") and not (record["clocks"].get("before") or {}).get("clocks.sm"):
        yield "clocks.before is empty: put nvidia-smi on the PATH, and measure again."
    points = [point for sweep in record["sweeps"] for point in sweep["points"]]
    seen = any((point.get("clocks") or {}).get("sm_mhz") for point in points)
    if record["software"].get("hip") and points and not seen:
        yield "No point has clocks: put amd-smi on the PATH, and measure again."


def of_rehearsal(record: recorded.Record) -> Iterator[str]:
    """What a rehearsal leaves in a record that calls itself measured."""
    device, torch = record["device"], record["software"].get("torch") or ""
    if (where := device.get("torch_device")) is None or where.partition(":")[0] != "cuda":
        yield f"device.torch_device = {where!r}: kernels of a GPU run on 'cuda' only; {_ON_A_CARD}"
    if torch.endswith("+cpu"):
        yield f"software.torch = {torch!r}: this torch knows no GPU; {_ON_A_CARD}"
    if "imaginary" in device["name"].lower():
        yield f"device.name = {device['name']!r}: an imaginary card; {_ON_A_CARD}"
    if "--rehearse" in record["command"].split():
        yield f"command = {record['command']!r}: it asked for a rehearsal; {_ON_A_CARD}"
    points = [point for sweep in record["sweeps"] for point in sweep["points"]]
    notes = [note for holder in (record, *points) for note in holder.get("notes") or ()]
    if any(str(note).lower().startswith(("a rehearsal", "rehearsed")) for note in notes):
        yield f"notes: they say that this is a rehearsal; {_ON_A_CARD}"


def of_device(record: recorded.Record, card: Accelerator | None) -> Iterator[str]:
    """Whether it is the whole card that it says it is. card: its row of the catalog."""
    device, named = record["device"], catalog.card_called(record["device"]["name"])
    if " MIG " in f" {device['name']} ":
        yield f"device.name = {device['name']!r}: a slice of a card has no datasheet; measure on a whole one."
        return
    claimed = device.get("accelerator")
    if claimed and claimed not in {one.id for one in catalog.accelerators()}:
        yield f"device.accelerator = {claimed!r}: the catalog has no such row; measure again."
    elif claimed and named and named.id != claimed:
        yield (
            f"device.accelerator = {claimed!r}: a driver that says {device['name']!r} speaks of {named.id}; "
            "correct it."
        )
    elif claimed and named is None:
        yield (
            f"device.accelerator = {claimed!r}: a driver that says {device['name']!r} doesn't say that; take "
            "it out, or give the catalog's row this name."
        )
    for name in ("memory_bytes", "sm_count"):
        if not device.get(name):
            yield f"device.{name} is missing: it tells a whole card from a part of one; measure again."
    if card is None:
        return
    memory, processors = device.get("memory_bytes"), device.get("sm_count")
    if memory and not SMALLER_MEMORY * card.capacity <= memory <= 1.1 * card.capacity:
        yield (
            f"device.memory_bytes = {memory:,}: {card.short_name} has {card.capacity:,}; it is another card, "
            "or a part of one: name the one that it is."
        )
    if processors and card.sm_count and processors != card.sm_count:
        yield (
            f"device.sm_count = {processors}: {card.short_name} has {card.sm_count}; it is another card, or "
            "a part of one: name the one that it is."
        )


def of_results(record: recorded.Record) -> Iterator[str]:
    """Whether each kernel that was timed was right, everywhere that it was looked at."""
    outcomes = record.get("correct") or {}
    for name, outcome in outcomes.items():
        if outcome.get("verdict") != "correct":
            yield (
                f"correct.{name}: {outcome.get('verdict')} A wrong kernel's record is a fault to report, "
                "not a measurement: send it as that."
            )
    for gap in record.get("missing") or ():
        if gap["why"] == "wrong":
            yield (
                f"missing: {gap['experiment']} gave a wrong result at a size: {gap['reason']} "
                "That is a fault to report: send the record as that."
            )
    for name in dict.fromkeys(sweep["experiment"] for sweep in record["sweeps"]):
        if name not in outcomes:
            yield f"correct.{name} is missing: it was timed and never held against float64; measure again."

"""The rung "recorded": earlier timed runs of this repository's kernels, kept as JSON files.

A record says where it comes from: card, driver, versions, clocks, date, commit and command; what is
in one stands in `schema`. `python -m kernels.measure` writes the ones in `FOLDER`, point by point, so a
run that is cut short leaves what it had. The labs write records of the same form, which a reader keeps.
A rehearsal on an imaginary card writes one, too: it is no measurement, and `measured` is the gate that
keeps it out of everything that shows one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from book import catalog
from book.roofline import Roof
from book.say import say
from kernels.evidence.child_process import write_atomically
from kernels.evidence.recorded import personal
from kernels.evidence.recorded.schema import MEASURED, REHEARSED, SCHEMA, RecordError, upgraded, validate

__all__ = ["FOLDER", "MEASURED", "NOT_MEASURED", "REHEARSED", "SCHEMA", "RecordError", "validate"]

FOLDER = Path(__file__).resolve().parents[2] / "records"
NOT_MEASURED = say("not measured yet")

Record = Mapping[str, Any]


def save(record: Mapping[str, Any], path: Path | str) -> None:
    """Validate `record` and write it to `path` atomically, without the name of a user or of this machine."""
    path = Path(path)
    validate(record, path)
    record = personal.without_person(record)
    write_atomically(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def load(path: Path | str) -> dict[str, Any]:
    """Read and validate one record, of whatever kind, in the form of today.

    Raises RecordError with the file, the field and the remedy.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a mark before it
        record = upgraded(json.loads(text, parse_constant=_no_number))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror}); give the path of a record.") from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: not JSON ({error}); measure again.") from None
    validate(record, path)
    return record


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def load_all(folder: Path | str | None = None) -> tuple[dict[str, Any], ...]:
    """Every measurement in `folder`, by default FOLDER, by file name; () means "not measured yet"."""
    return measured(load(path) for path in sorted(Path(folder or FOLDER).glob("*.json")))


def measured(records: Iterable[Record], *, rehearsals: bool = False) -> tuple[Any, ...]:
    """The gate: those of `records` that are measurements. A rehearsal never passes.

    Whatever shows a time as measured takes its records from here. rehearsals: these pass, too, where
    somebody asks for them by this word; what then shows them calls each one that (`device_of`).
    """
    kinds = (MEASURED, REHEARSED) if rehearsals else (MEASURED,)
    return tuple(record for record in records if record.get("kind") in kinds)


def device_of(record: Record, name: str = "") -> str:
    """What was measured on, as `name` or as the driver calls it; of a rehearsal, that it was rehearsed."""
    name = name or record["device"]["name"]
    return name if measured([record]) else say("rehearsed, not measured: {device}", device=name)


def title(record: Record) -> str:
    """What a record is of, in a line; a rehearsal says first that nothing in it was measured."""
    words = say(
        "{device}, {status}, commit {commit}",
        device=record["device"]["name"],
        status=record["status"],
        commit=record["commit"],
    )
    if record.get("kind") == MEASURED:
        return words
    return say("Rehearsed on an imaginary card, nothing here was measured: {words}", words=words)


def card_of(record: Record) -> str | None:
    """The catalog's id of the card of a record, or None."""
    claimed, card = record["device"].get("accelerator"), catalog.card_called(record["device"]["name"])
    known = {one.id for one in catalog.accelerators()}
    return claimed if claimed in known else card.id if card else None


def roofs(record: Record, experiment: str) -> tuple[Roof, ...]:
    """The roofs of a record, in whatever arithmetic it has this experiment or a stand-in.

    Of a rehearsal they are called rehearsed.
    """
    mine = [sweep for sweep in record["sweeps"] if sweep["experiment"] in stand_ins(experiment)]
    dtypes = {sweep.get("arithmetic", sweep["dtype"]) for sweep in mine}

    def name(dtype: str) -> str:
        device = record["device"]["name"]
        if measured([record]):
            return say("measured, {device} {dtype}", device=device, dtype=dtype)
        return say("rehearsed, {device} {dtype}", device=device, dtype=dtype)

    return tuple(
        Roof(name(dtype), tops["peak"], tops["bandwidth"])
        for dtype, tops in record["ceilings"].items()
        if dtype in dtypes
    )


def stand_ins(experiment: str) -> dict[str, str]:
    """What a reader's record may hold in the place of a kernel of ours -> whose code it was."""
    names = {experiment: "", f"own {experiment}": say("own kernel"), f"torch {experiment}": "torch"}
    return names | ({"torch dial": "torch"} if experiment == "fma_chain" else {})


def points(
    experiment: str,
    *,
    records: Iterable[Record] | None = None,
    accelerator: str | None = None,
    others: bool = False,
) -> tuple[dict[str, Any], ...]:
    """Recorded series of one experiment, for the explorer: {"rung", "label", "accelerator", "points"}.

    experiment: its key (see kernels.evidence.addresses). accelerator: only this card's, by
    catalog id. Points with an alarm stay in the file and out of the picture, and so do rehearsals.
    others: also what stands for our kernel in a reader's own record, such as "torch linear", labelled
    with whose code it was. () means "not measured yet".
    """
    names = stand_ins(experiment) if others else {experiment: ""}
    return tuple(
        {"rung": "recorded", "label": label} | series
        for record in measured(load_all() if records is None else records)
        for label, series in _series(record, names)
        if accelerator in (None, series["accelerator"])
    )


def rehearsed(experiment: str, records: Iterable[Record]) -> tuple[dict[str, Any], ...]:
    """Series as in `points` of those records that are rehearsals, on a rung that is none of evidence."""
    return tuple(
        {"rung": REHEARSED, "label": say("rehearsed, not measured: {label}", label=label)} | series
        for record in records
        if not measured([record])
        for label, series in _series(record, stand_ins(experiment))
    )


def _series(record: Record, names: Mapping[str, str]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Label, and card and points, of each sweep of one of `names` that has a possible point."""
    for sweep in record["sweeps"]:
        good = [p for p in sweep["points"] if not p["alarms"]]
        if sweep["experiment"] not in names or not good:
            continue
        label = f"{record['device']['name']}, {sweep['dtype']}, {record['date'][:10]}"
        if record["device"].get("kind") == "cpu":
            label = say("CPU, torch: {label}", label=label)
        elif names[sweep["experiment"]]:
            label = f"{names[sweep['experiment']]}: {label}"
        kept = [{**p["sizes"], **{k: p[k] for k in _PLOTTED}} for p in good]
        yield label, {"accelerator": card_of(record), "points": kept}


_PLOTTED = ("intensity", "flops_per_s", "bytes_per_s", "seconds")

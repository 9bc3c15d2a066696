"""The rung "recorded": earlier timed runs of this repository's kernels, kept as JSON files.

A record says where it comes from: card, driver, versions, clocks, date, commit and command.
`python -m kernels.measure` writes the ones in `FOLDER`, sweep by sweep, so a run that is cut short
leaves what it had. The labs write records of the same form, which a reader keeps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from book import catalog
from book.roofline import Roof
from book.say import say
from kernels.evidence.child_process import write_atomically

SCHEMA = 1
FOLDER = Path(__file__).resolve().parents[2] / "records"
NOT_MEASURED = say("not measured yet")

_TOP = {
    "schema": int,
    "kind": str,
    "device": dict,
    "software": dict,
    "clocks": dict,
    "date": str,
    "commit": str,
    "command": str,
    "status": str,
    "ceilings": dict,
    "sweeps": list,
    "notes": list,
}
_POINT = ("sizes", "seconds", "bytes_per_s", "flops_per_s", "intensity", "relative_error", "alarms")


class RecordError(ValueError):
    """A record that cannot be trusted: the message names the file, the field and the remedy."""


def save(record: Mapping[str, Any], path: Path | str) -> None:
    """Validate `record` and write it to `path` atomically."""
    path = Path(path)
    validate(record, path)
    write_atomically(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def load(path: Path | str) -> dict[str, Any]:
    """Read and validate one record. Raises RecordError with the file, the field and the remedy."""
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror}); give the path of a record.") from None
    except ValueError as error:
        raise RecordError(f"{path}: not JSON ({error}); measure again.") from None
    validate(record, path)
    return record


def load_all(folder: Path | str = FOLDER) -> tuple[dict[str, Any], ...]:
    """Every record in `folder`, by file name; () when nothing has been measured yet."""
    return tuple(load(path) for path in sorted(Path(folder).glob("*.json")))


def validate(record: Any, path: Path | str) -> None:
    """Raise RecordError unless `record` has every field, of the right type and a possible value."""
    if not isinstance(record, Mapping):
        raise RecordError(f"{path}: a record is a JSON object; measure again.")
    if record.get("schema") != SCHEMA:
        raise RecordError(
            f"{path}: schema = {record.get('schema')!r}: this code reads schema {SCHEMA}; "
            "measure again, or use the commit that the record names."
        )
    for field, kind in _TOP.items():
        if not isinstance(record.get(field), kind):
            raise RecordError(
                f"{path}: {field} = {record.get(field)!r}: must be a {kind.__name__}; measure again."
            )
    for field, choices in (("kind", ("gpu", "cpu")), ("status", ("partial", "complete"))):
        if record[field] not in choices:
            raise RecordError(f"{path}: {field} = {record[field]!r}: must be {' or '.join(choices)}.")
    if not record["device"].get("name"):
        raise RecordError(f"{path}: device.name is missing: say which card was measured.")
    for i, sweep in enumerate(record["sweeps"]):
        _validate_sweep(sweep, f"{path}: sweeps[{i}]")


def _validate_sweep(sweep: Mapping[str, Any], where: str) -> None:
    for field in ("experiment", "axis", "dtype", "points"):
        if field not in sweep:
            raise RecordError(f"{where}.{field} is missing; measure again.")
    for j, point in enumerate(sweep["points"]):
        for field in _POINT:
            if field not in point:
                raise RecordError(f"{where}.points[{j}].{field} is missing; measure again.")
        for field in ("seconds", "bytes_per_s"):
            value = point[field]
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
                raise RecordError(
                    f"{where}.points[{j}].{field} = {value!r}: must be a positive number; measure again."
                )


def card_of(record: Mapping[str, Any]) -> str | None:
    """The catalog's id of the card of a record, or None."""
    card = catalog.card_called(record["device"]["name"])
    return record["device"].get("accelerator") or (card.id if card else None)


def roofs(record: Mapping[str, Any], experiment: str) -> tuple[Roof, ...]:
    """The roofs that a record measured, of the arithmetic in which it has this experiment or a stand-in."""
    mine = [sweep for sweep in record["sweeps"] if sweep["experiment"] in stand_ins(experiment)]
    dtypes = {sweep.get("arithmetic", sweep["dtype"]) for sweep in mine}
    return tuple(
        Roof(
            say("measured, {device} {dtype}", device=record["device"]["name"], dtype=dtype),
            tops["peak"],
            tops["bandwidth"],
        )
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
    records: Iterable[Mapping[str, Any]] | None = None,
    accelerator: str | None = None,
    others: bool = False,
) -> tuple[dict[str, Any], ...]:
    """Recorded series of one experiment, for the explorer: {"rung", "label", "accelerator", "points"}.

    experiment: its key (see kernels.evidence.addresses). accelerator: only this card's, by
    catalog id. Points with an alarm stay in the file and out of the picture. others: also
    what stands for our kernel in a reader's own record, such as "torch linear", labelled with whose
    code it was. () means "not measured yet".
    """
    names = stand_ins(experiment) if others else {experiment: ""}
    series = []
    for record in load_all() if records is None else records:
        card = card_of(record)
        if accelerator is not None and card != accelerator:
            continue
        for sweep in record["sweeps"]:
            good = [p for p in sweep["points"] if not p["alarms"]]
            if sweep["experiment"] not in names or not good:
                continue
            label = f"{record['device']['name']}, {sweep['dtype']}, {record['date'][:10]}"
            if record["kind"] == "cpu":
                label = say("CPU, torch: {label}", label=label)
            elif names[sweep["experiment"]]:
                label = f"{names[sweep['experiment']]}: {label}"
            series.append(
                {
                    "rung": "recorded",
                    "label": label,
                    "accelerator": card,
                    "points": [{**p["sizes"], **{k: p[k] for k in _PLOTTED}} for p in good],
                }
            )
    return tuple(series)


_PLOTTED = ("intensity", "flops_per_s", "bytes_per_s", "seconds")

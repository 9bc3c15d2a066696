"""A record on its way into the book.

    python -m kernels.evidence.recorded check my-card.json
    python -m kernels.evidence.recorded add my-card.json --by "Ada Lovelace"

`check` holds it against its schema, the formulas and the card's datasheet, and says what is wrong, each
time with a remedy. `add` checks it and puts it on the shelf, `kernels/records`, under the name of its
card and its day; figures, tables and the page "Records" show it from the next build on.
Exit codes: 0 it can be believed; 1 it can't, or not all of it; 2 it is no record.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernels.evidence import recorded
from kernels.evidence.recorded import personal, plausible

LONGEST_STEM = 60  # letters of a file's name that are the card's


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m kernels.evidence.recorded", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(dest="what", required=True)
    for name, purpose in (("check", "say what is wrong with a record"), ("add", "check it, and shelve it")):
        one = commands.add_parser(name, help=purpose)
        one.add_argument("file", type=Path, help="a record (JSON)")
        if name == "check":
            one.add_argument(
                "--rehearsal", action="store_true", help="look at the numbers of a rehearsal as well"
            )
        else:
            one.add_argument("--by", help="who measured it, to be shown with it")
            one.add_argument("--to", type=Path, default=recorded.FOLDER, help="the shelf")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Do what was asked; returns the exit code."""
    asked = arguments(words)
    try:
        record = recorded.load(asked.file)
        if asked.what == "add" and asked.by:
            record["by"] = asked.by
            recorded.validate(record, asked.file)
    except recorded.RecordError as error:
        print(error, file=sys.stderr)
        return 2
    verdict = plausible.judge(record, rehearsals=asked.what == "check" and asked.rehearsal)
    print(recorded.title(record))
    for sentence in verdict.complaints:
        print(f"  complaint: {sentence}")
    for sentence in verdict.remarks:
        print(f"  remark: {sentence}")
    points = sum(len(sweep["points"]) for sweep in record["sweeps"])
    if verdict.complaints:
        count = "1 complaint" if len(verdict.complaints) == 1 else f"{len(verdict.complaints)} complaints"
        print(f"{asked.file}: {count}, so it is not to be shown as it is.")
        return 1
    print(f"{asked.file}: {points} points, and nothing against them.")
    if asked.what == "add":
        if problem := unshowable(record, asked.to):
            print(f"{asked.file}: {problem}", file=sys.stderr)
            return 1
        print(f"wrote {shelved(record, asked.to)}; commit it.")
    return 0


def unshowable(record: dict[str, Any], folder: Path) -> str:
    """Why a record is not to stand on this shelf: it does already, or no page can show it; "" if it may."""
    from kernels.evidence import launch_results, record_tables  # which import this package

    run = [recorded.card_of(record), record["device"]["name"], record["date"], record["commit"]]
    for other in recorded.load_all(folder):
        if run == [recorded.card_of(other), other["device"]["name"], other["date"], other["commit"]]:
            return "this run is on the shelf already; take the other one away first."
    try:
        record_tables.shelf([record])._repr_html_()
        for costs in launch_results.recorded([record]):
            costs._repr_html_()
    except Exception as error:  # noqa: BLE001 - what fails here would fail the book's build
        return f"no page can show it ({type(error).__name__}: {error}); report it, with the record."
    return ""


def shelved(record: dict[str, Any], folder: Path) -> Path:
    """Put a record on the shelf under its card and its day, beside any that is there, and say where.

    What tells one card from all others of its kind stays off the shelf.
    """
    record = personal.without_card(record)
    card = recorded.card_of(record) or "".join(
        letter if letter.isalnum() else "_" for letter in record["device"]["name"].lower()
    )
    folder.mkdir(parents=True, exist_ok=True)
    day = datetime.datetime.fromisoformat(record["date"]).date()
    stem, number = f"{card[:LONGEST_STEM]}-{day:%Y-%m-%d}", 1
    path = folder / f"{stem}.json"
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.json"
    recorded.save(record, path)
    return path


if __name__ == "__main__":
    sys.exit(main())

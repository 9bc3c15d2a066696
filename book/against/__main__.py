"""Your own times against the book's floors.

    python -m book.against rows.csv
    python -m book.against rows.csv --out judged.csv --picture judged.svg

The file has a heading; one column of times (seconds, milliseconds, microseconds, or s, ms, us);
`accelerator`, an id or name of the catalog; `operation`, and the columns that it needs:
{columns}
Printed are how many rows lie under their floor and why that can be. Exit status: 0 if each has a reason,
1 if one has none (then the row, or the book, is wrong), 2 if the file can't be read.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from book.against import operations, table_in, verdicts
from book.against.digest import BINS
from book.catalog import UnknownName, accelerator
from book.drawing.number_text import si

WORST = 5  # rows without a reason that are printed


def bins(judged: Sequence[verdicts.Verdict]) -> list[int]:
    """How many of them each bin of floor over measured has, as in `digest`."""
    at = [min(int(v.ratio * (BINS - 1)), BINS - 2 + (v.ratio > 1)) for v in judged]
    return np.bincount(at, minlength=BINS).tolist()


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    needs = "\n".join(f"  {o.name}: {', '.join(o.columns)}" for o in operations.OPERATIONS.values())
    parser = argparse.ArgumentParser(
        prog="python -m book.against",
        description=(__doc__ or "").format(columns=needs),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--operation", choices=sorted(operations.OPERATIONS), help="of all rows")
    parser.add_argument("--accelerator", help="of all rows")
    parser.add_argument("--out", type=Path, help="write the rows with their floors and reasons, as CSV")
    parser.add_argument("--picture", type=Path, help="write the densities, as SVG")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Judge a file; see above."""
    arguments = _arguments(given)
    try:
        found = _judged(arguments)
    except table_in.BadTable as error:
        print(error, file=sys.stderr)
        return 2
    if not found:
        print(f"{arguments.file.name}: no row under the heading; give at least one.", file=sys.stderr)
        return 2
    for (kind, card), judged in sorted(found.items()):
        print(_summary(kind, card, judged))
    if arguments.out:
        _write(arguments.out, _csv([v for judged in found.values() for v in judged]))
    if arguments.picture:
        _write(arguments.picture, _picture(found))
    unexplained = [v for judged in found.values() for v in judged if v.reason == verdicts.UNEXPLAINED]
    for v in unexplained[:WORST]:
        print(f"impossible by the datasheet: {dict(v.row)}: its floor is {si(v.floor, 's', 4)}")
    return 1 if unexplained else 0


Found = dict[tuple[str, str], list[verdicts.Verdict]]


def _judged(arguments: argparse.Namespace) -> Found:
    found: Found = defaultdict(list)
    rows = table_in.read(arguments.file, arguments.operation, arguments.accelerator)
    for where, kind, row in rows:
        try:
            found[kind, row["accelerator"]].append(verdicts.judge(operations.operation(kind), row))
        except (operations.NotAnswerable, UnknownName, ValueError) as error:
            raise table_in.BadTable(f"{where}: {error}") from error
    return found


def _summary(kind: str, card: str, judged: Sequence[verdicts.Verdict]) -> str:
    ratios = sorted(v.ratio for v in judged)
    lines = [
        f"{kind} on {accelerator(card).short_name}: {len(judged):,} rows; floor over measured: "
        f"median {ratios[len(ratios) // 2]:.2f}, best {ratios[-1]:.2f}"
    ]
    counted = verdicts.counts(judged)
    lines += [
        f"  {count:,} under the floor: {verdicts.REASONS[reason]}"
        for reason, count in counted.items()
        if reason in verdicts.REASONS
    ]
    if below := sum(v.below_expected for v in judged):
        lines.append(f"  {below:,} faster than even routing would be on average, and over the floor")
    return "\n".join(lines)


def _csv(judged: Sequence[verdicts.Verdict]) -> str:
    rows = [verdicts.as_row(v) for v in judged]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _picture(found: Found) -> str:
    from book.against.pictures import Ridge, ridges  # matplotlib: only for those who ask for a picture

    shown = [
        Ridge(f"{kind}, {accelerator(card).short_name}", bins(judged))
        for (kind, card), judged in sorted(found.items())
    ]
    text = io.StringIO()
    ridges(shown, "floor").savefig(text, format="svg")
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())

"""The record as text: a table, the goals, what is missing, and the command that measures only that."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from book.drawing.number_text import si
from book.drawing.tables import table as as_table
from book.say import say
from kernels.evidence import record_tables, recorded
from kernels.evidence.recorded import goals
from kernels.evidence.timed.launch_fit import Line
from kernels.measure.work import AGAIN, sentence


def table(record: Mapping[str, Any]) -> str:
    """The record as a short text table."""
    lines = [recorded.title(record)]
    for dtype, tops in record["ceilings"].items():
        lines.append(
            f"ceilings in {dtype}: {si(tops['bandwidth'], 'B/s')} ({tops['bandwidth_by']}), "
            f"{si(tops['peak'], 'FLOP/s')} ({tops['peak_by']})"
        )
    rows = [_row(done, point) for done in record["sweeps"] for point in done["points"]]
    if rows:
        lines.append(repr(as_table(rows, list(rows[0]))))
    lines += [_launch(Line(**one)) for one in record.get("overhead", {}).get("lines", ())]
    return "\n".join([*lines, *record["notes"]])


def _launch(line: Line) -> str:
    """What one more launch adds to a step; nothing where its times make no line."""
    each = (
        f"not to be told: {' and '.join(line.doubts)}" if line.doubts else f"{si(line.per_launch, 's')} each"
    )
    return f"launch: {line.work}, {line.way}: {each}"


def _row(done: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, str]:
    vendor = point.get("baseline") or {}
    return {
        "kernel": f"{done['experiment']} {done['dtype']}",
        "size": f"{done['axis']} = {point['sizes'][done['axis']]:,}",
        "time": si(point["seconds"], "s"),
        "traffic": si(point["bytes_per_s"], "B/s"),
        "arithmetic": si(point["flops_per_s"], "FLOP/s"),
        "of roof": f"{100 * point['of_roof']:.0f} %" if point.get("of_roof") else "",
        "of vendor": f"{100 * vendor['share']:.0f} % of {vendor['name']}" if "share" in vendor else "",
        "": "impossible" if point["alarms"] else "",
    }


def ending(record: Mapping[str, Any], given: Sequence[str]) -> list[str]:
    """What is missing, a line each, and the command that measures only that.

    given: the words of the command line of this run.
    """
    return [*_goals(record), *_gaps(record, given)]


def _goals(record: Mapping[str, Any]) -> list[str]:
    """Each goal against what this record reached; nothing where no point of it tells anything."""
    if all(outcome.met is None for outcome in goals.judge(record)):
        return []
    return [repr(record_tables.goals_reached([record], say("Goals: ratios of two numbers of this run")))]


def _gaps(record: Mapping[str, Any], given: Sequence[str]) -> list[str]:
    gaps = record.get("missing", [])
    if not gaps:
        return ["Nothing is missing."] if record["status"] == "complete" else []
    lines = ["Missing:", *(f"  {line}" for line in dict.fromkeys(map(sentence, gaps)))]
    if any(gap["why"] in AGAIN for gap in gaps) or record["status"] == "partial":
        words = [*given, *([] if "--resume" in given else ["--resume"])]
        lines += ["This measures only what is missing:", f"  python -m kernels.measure {shlex.join(words)}"]
    return lines

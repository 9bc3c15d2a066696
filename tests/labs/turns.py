"""Whose turn it is: `make test` grades a sample of one lab's class for real, `make labs-test` every class.

It is the turn of the lab that changed since its submissions were last graded and all was well: its
master, its questions, its key, the grader, the kernels behind them (`master.digest`). Of several, and
where none changed, it is the one that has waited longest. What is known lies in _build/labs-graded.json.
Where nothing is known, as on a server that starts afresh, the code's own digest picks one, so that
in time every lab has its turn.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from book.portable.bundle import ROOT
from kernels.evidence.child_process import write_atomically

RECORD = ROOT / "_build" / "labs-graded.json"


def whose(digests: Mapping[str, str], record: Path = RECORD) -> str:
    """The lab whose turn it is. digests: of each lab's code, by lab."""
    known = _read(record)

    def waiting(lab: str) -> tuple[bool, float]:
        last = known.get(lab, {})
        unchanged = last.get("digest") == digests[lab] and last.get("green", False)
        return unchanged, last.get("at", 0.0)

    return min(_turned(digests), key=waiting)


def note(lab: str, digest: str, at: float, passed: bool, record: Path = RECORD) -> None:
    """A test of this lab's submissions ended. at: when they were graded; one that failed spoils them all."""
    record.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(record.with_suffix(".lock")):
        known = _read(record)
        last = known.get(lab, {})
        if last.get("at") != at:
            last = {"digest": digest, "at": at, "green": True}
        known[lab] = last | {"green": last["green"] and passed}
        write_atomically(record, json.dumps(known))


def _turned(digests: Mapping[str, str]) -> Iterable[str]:
    labs = sorted(digests)
    first = int(hashlib.sha256("".join(digests[lab] for lab in labs).encode()).hexdigest(), 16) % len(labs)
    return labs[first:] + labs[:first]


def _read(record: Path) -> dict[str, Any]:
    try:
        known = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}

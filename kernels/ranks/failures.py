"""Which rank failed first, and what it has to say: one sentence out of exit codes, errors and logs.

When a rank goes, the others lose their connection to it and fail too, within milliseconds. So the
one that is blamed is the one that was killed, or left without a word, or raised first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+) in (?P<name>.+)$')
_ANSWERING = 0.5  # seconds in which a rank that is asked writes down where it is
# Frames of these don't say what the rank's own code was about.
_LIBRARIES = (
    "site-packages",
    "dist-packages",
    f"{os.sep}lib{os.sep}python",
    os.path.join("ranks", "collectives.py"),
)


class NoRanks(RuntimeError):
    """No ranks can be started on this platform; the message says what is missing."""


class RankFailed(RuntimeError):
    """A rank did not give its answer. rank: which, or None if all are late; exit: its exit code."""

    def __init__(self, sentence: str, rank: int | None = None, exit: int | None = None) -> None:
        super().__init__(sentence)
        self.rank, self.exit = rank, exit


@dataclass
class Run:
    """One run's folder, and what the ranks have put there. logs: a rank's standard error."""

    folder: Path
    ranks: int
    timeout: float
    logs: Mapping[int, Path] = field(default_factory=dict)

    def joined(self) -> list[Path]:
        """A file for each rank that has found the others, in order."""
        return self._files("joined-{}")

    def answered(self) -> list[Path]:
        """The answers that are there, in the order of the ranks."""
        return self._files("answer-{}.json")

    def errors(self) -> dict[int, dict[str, Any]]:
        """What ranks raised: {"kind", "message", "where", "when"}."""
        named = {rank: self.folder / f"error-{rank}.json" for rank in range(self.ranks)}
        return {r: json.loads(p.read_text(encoding="utf-8")) for r, p in named.items() if p.exists()}

    def log(self, rank: int) -> list[str]:
        """The lines that a rank wrote to standard error."""
        try:
            return self.logs[rank].read_text(encoding="utf-8", errors="replace").splitlines()
        except (KeyError, OSError):
            return []

    def _files(self, name: str) -> list[Path]:
        paths = (self.folder / name.format(rank) for rank in range(self.ranks))
        return [path for path in paths if path.exists()]


def first(run: Run, exits: Mapping[int, int]) -> RankFailed:
    """The failure that the others follow from, as an exception with its sentence.

    exits: exit codes by rank, negative for signals. The supervisor ends the others with SIGTERM.
    """
    errors = run.errors()
    others = "The other ranks were ended." if run.ranks > 1 else ""
    killed = [r for r, code in exits.items() if code < 0 and code != -signal.SIGTERM]
    silent = [r for r, code in exits.items() if code >= 0 and r not in errors and not _answered(run, r)]
    raised = sorted(errors, key=lambda r: errors[r]["when"])
    if killed:
        rank, what = killed[0], _ended_by(-exits[killed[0]])
    elif silent:
        rank = silent[0]
        what = f"exited with code {exits[rank]} and gave no answer"
    elif raised:
        rank, error = raised[0], errors[raised[0]]
        what = f"raised {error['kind']} ({error['where']}): {error['message'].strip()}"
        return RankFailed(_join(f"rank {rank} of {run.ranks} {what}", others), rank, exits[rank])
    else:
        rank = next(r for r, code in exits.items() if code)
        what = _ended_by(-exits[rank])
    words = f"its last words: {_last_words(run.log(rank))}"
    return RankFailed(_join(f"rank {rank} of {run.ranks} {what}; {words}", others), rank, exits[rank])


def late(run: Run, starting: float) -> RankFailed:
    """No answer in time: who has not joined, or where each rank was when it was asked."""
    if missing := [r for r in range(run.ranks) if not (run.folder / f"joined-{r}").exists()]:
        who = " and ".join(f"rank {r}" for r in missing)
        return RankFailed(
            f"{who} of {run.ranks} did not join within {starting:g} s; is this machine too busy? Last words: "
            f"{_last_words(run.log(missing[0]))}. All ranks were ended.",
            missing[0],
        )
    places = [f"rank {r} {_whereabouts(run.log(r))}" for r in range(run.ranks) if not _answered(run, r)]
    return RankFailed(
        f"{len(places)} of {run.ranks} ranks gave no answer within {run.timeout:g} s: {', '.join(places)}. "
        "All ranks were ended; every rank must call the same collectives in the same order."
    )


def ask_where(pids: Mapping[int, int]) -> None:
    """Ask each rank to write down where it is (`kernels.ranks.rank` answers even inside a collective)."""
    if not hasattr(signal, "SIGUSR1"):
        return
    for pid in pids.values():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR1)
    time.sleep(_ANSWERING)


def _answered(run: Run, rank: int) -> bool:
    return (run.folder / f"answer-{rank}.json").exists()


def _ended_by(number: int) -> str:
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if name == "SIGKILL":
        return "was killed (SIGKILL: from outside, or memory ran out)"
    return f"was ended by {name}"


def _last_words(lines: Iterable[str]) -> str:
    spoken = [line.strip() for line in lines if line.strip()]
    return f'"{spoken[-1][:300]}"' if spoken else "none"


def _whereabouts(lines: list[str]) -> str:
    """Where the last traceback of a log ends, most recent call first: "in all_reduce (linear.py, line 9)"."""
    starts = [i for i, line in enumerate(lines) if "most recent call first" in line]
    frames = [m for line in lines[starts[-1] :] if (m := _FRAME.match(line))] if starts else []
    if not frames:
        return "did not say where it was"
    ours = next((f for f in frames if not any(part in f["file"] for part in _LIBRARIES)), frames[0])
    return f"was in {frames[0]['name']} ({Path(ours['file']).name}, line {ours['line']})"


def _join(*sentences: str) -> str:
    return " ".join(s if s.endswith((".", "!", "?")) else f"{s}." for s in sentences if s)

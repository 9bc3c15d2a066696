"""Finds who handed in what, in whatever folder a course system makes.

- nbgrader: submitted/<student>/<lab>/<lab>.ipynb
- a folder a student: <student>/anything.ipynb, or Moodle's "Ada Lovelace_123_assignsubmission_file"
- flat files: <student>.ipynb, <student>_<lab>.ipynb, or Canvas's lastname_12345_67890_<lab>.ipynb
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from book.say import say
from labs.grading.safe_text import tidy
from labs.grading.variants import identity

SKIPPED = ("__MACOSX", "__pycache__", "node_modules", "autograded", "feedback", "source", "release")
DOWNLOADED_AGAIN = re.compile(r"(\s*\(\d+\)|-\d{1,2}| - Copy| copy)$", re.IGNORECASE)
MOODLE = re.compile(r"_\d+_assignsubmission_file_?$")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<user>\d+)_\d+$", re.IGNORECASE)


@dataclass(frozen=True)
class HandedIn:
    """One student's file. notes: what was chosen among, in sentences."""

    student: str
    path: Path
    notes: tuple[str, ...] = ()


def collect(
    folder: Path,
    lab: str,
    roster: Mapping[str, str] | None = None,
    other_labs: Collection[str] = (),
    without: Path | None = None,
) -> list[HandedIn]:
    """The newest file of each student, in the students' order.

    roster: ids by which files are recognised, if there is one. other_labs: whose files are left out.
    without: a folder inside that holds no submissions (the grades). Raises ValueError when `folder` is none.
    """
    if not folder.is_dir():
        hint = " Unpack it first." if folder.suffix.lower() in (".zip", ".gz", ".tar") else ""
        raise ValueError(
            f"submissions = {str(folder)!r}: no such folder; give the one that holds the notebooks.{hint}"
        )
    root = folder / "submitted" if (folder / "submitted").is_dir() else folder
    known = {identity(student): student for student in roster or {}}
    found: dict[str, list[tuple[float, Path]]] = {}
    names: dict[str, str] = {}
    for path in _notebooks(root, without):
        parts = path.relative_to(root).parts
        if parts[0] == lab and len(parts) > 1:
            parts = parts[1:]
        if _belongs_elsewhere(parts, lab, other_labs):
            continue
        student = _known(parts[0] if len(parts) > 1 else _without_lab(Path(parts[0]).stem, lab), known)
        same = identity(student)
        names.setdefault(same, student)
        found.setdefault(same, []).append((path.stat().st_mtime, path))
    made = []
    for same, files in sorted(found.items()):
        files.sort(key=lambda one: (one[0], str(one[1])))
        newest, notes = files[-1][1], ()
        if len(files) > 1:
            older = ", ".join(str(path.relative_to(root)) for _, path in files[:-1])
            notes = (
                tidy(
                    say(
                        "{count} files were handed in; the newest one counts, not {older}.",
                        count=len(files),
                        older=older,
                    )
                ),
            )
        made.append(HandedIn(names[same], newest, notes))
    return made


def _notebooks(root: Path, without: Path | None) -> list[Path]:
    """Every .ipynb below root that is a real file: a link could lead to anybody's."""
    found = []
    for folder, inside, files in os.walk(root, followlinks=False):
        inside[:] = sorted(
            name
            for name in inside
            if not name.startswith(".")
            and name not in SKIPPED
            and (without is None or (Path(folder) / name).resolve() != without.resolve())
        )
        for name in sorted(files):
            path = Path(folder) / name
            if name.lower().endswith(".ipynb") and not name.startswith(".") and not path.is_symlink():
                found.append(path)
    return [path for path in found if path.is_file()]


def _belongs_elsewhere(parts: tuple[str, ...], lab: str, other_labs: Collection[str]) -> bool:
    """Whether a folder on the way, or the file's name, says that this is another lab's."""
    words = [*parts[1:-1], Path(parts[-1]).stem]
    return any(other in word for word in words for other in other_labs) and not any(
        lab in word for word in words
    )


def _without_lab(stem: str, lab: str) -> str:
    """A flat file's name without the lab's, and without what a browser adds to a second download."""
    stem = stem.strip()
    if lab in stem:
        head, _, tail = stem.partition(lab)
        tail = DOWNLOADED_AGAIN.sub("", tail)
        stem = head.strip("_- .") or tail.strip("_- .") or stem
    return stem


def _known(name: str, known: Mapping[str, str]) -> str:
    """The student that a folder or a file name means, by the roster if it is on it."""
    name = MOODLE.sub("", name).strip()
    if identity(name) in known:
        return known[identity(name)]
    canvas = CANVAS.fullmatch(name)
    for part in [*(canvas.group("user", "name") if canvas else ()), *re.split(r"[_\s]+", name)]:
        if part and identity(part) in known:
            return known[identity(part)]
    return f"{canvas['name']}_{canvas['user']}" if canvas else name

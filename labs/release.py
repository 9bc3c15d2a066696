"""Releases the labs: students' copies, instructors' copies, and one archive with both.

python -m labs.release                                     # into _build/labs
python -m labs.release --lab lab2-linear
python -m labs.release --roster roster.csv --secret FILE   # and a copy of their own for each student
python -m labs.release --check                             # nothing is written; are they sound?
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import nbformat

from book.portable.bundle import ROOT
from book.portable.dependencies import fingerprint
from labs.assignments import Assignment, all_assignments, find
from labs.releasing import copies, held_back, leaks, package, validating
from labs.releasing.copies import Copies

OUT = ROOT / "_build" / "labs"
CACHE = ROOT / "_build" / "labs-cache"


class StudentCopy(NamedTuple):
    """A student's notebook on disk. minutes: how long the lab takes, as in "90"; "" if it doesn't say."""

    lab: str
    path: Path
    title: str
    minutes: str


def make(assignment: Assignment, root: Path = ROOT) -> Copies:
    """Both copies of a lab, looked through. Raises ValueError naming what a student must not see."""
    master = nbformat.read(assignment.master, 4)
    without = held_back.modules(assignment.master.parent, root)
    made = copies.make(assignment.name, master, without, root)
    if found := leaks.problems(master, nbformat.reads(made.student, 4), without):
        raise ValueError("\n".join(f"{assignment.name}, {line}" for line in found))
    return made


def students(
    outdir: Path, labs: Iterable[Assignment] | None = None, *, root: Path = ROOT, cache: Path = CACHE
) -> list[StudentCopy]:
    """Write each lab's student's copy into `outdir`; for the site, which offers them to its readers.

    What was made before from the same master and modules is taken from `cache`.
    """
    found = []
    for one in all_assignments().values() if labs is None else labs:
        kept = cache / f"{one.name}-{_digest(one, root)}.json"
        try:
            told = json.loads(kept.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            made = make(one, root)
            told = {"title": made.title, "minutes": made.minutes, "student": made.student}
            package.put(cache, {kept.name: json.dumps(told)})
        path = outdir / f"{one.name}.ipynb"
        if not path.is_file() or path.read_text(encoding="utf-8") != told["student"]:
            package.put(outdir, {path.name: told["student"]})
        found.append(StudentCopy(one.name, path, told["title"], told["minutes"]))
    return found


def _digest(assignment: Assignment, root: Path) -> str:
    """Of everything that a student's copy depends on."""
    text = assignment.master.read_text(encoding="utf-8")
    code = [cell.source for cell in nbformat.reads(text, 4).cells if cell.cell_type == "code"]
    makers = [
        *Path(copies.__file__).parent.glob("*.py"),
        ROOT / "book" / "portable" / "bundle.py",
        ROOT / "book" / "portable" / "unpack.py",
    ]
    made_by = [path.read_text(encoding="utf-8") for path in sorted(makers)]
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    versions = [version("nbgrader"), version("nbformat")]
    without = held_back.modules(assignment.master.parent, root)
    whole = fingerprint(code, root, text, project, *made_by, *versions, *without, whole=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def release(labs: Sequence[Assignment], out: Path = OUT, root: Path = ROOT) -> list[Copies]:
    """Write the copies of these labs and the archive under `out`."""
    made = [make(one, root) for one in labs]
    everything = package.files(made)
    shown = {name: text for name, text in everything.items() if not name.startswith("course/")}
    package.put(out, shown, everything)
    return made


def personal(made: Sequence[Copies], variants: Mapping[str, int], out: Path = OUT) -> None:
    """Write `students/<id>/<lab>.ipynb` under `out`: each student's copy has its own numbers."""
    contents = {}
    for one in made:
        common = nbformat.reads(one.student, 4)
        for student, variant in variants.items():
            name = f"students/{package.folder_of(student)}/{one.lab}.ipynb"
            contents[name] = copies.write(copies.with_variant(common, variant))
    package.put(out, contents)


def check(labs: Sequence[Assignment], root: Path = ROOT) -> list[str]:
    """Look the releases of these labs through and run them; what is wrong, a sentence each.

    Prints how it goes. Two notebooks run at a time, each in processes of its own.
    """
    found: list[str] = []
    jobs = {}
    context = multiprocessing.get_context("spawn")  # the validator changes folder and environment
    with ProcessPoolExecutor(max_workers=2, mp_context=context) as pool:
        for one in labs:
            try:
                made = make(one, root)
            except ValueError as error:
                found.append(str(error))
                continue
            jobs[pool.submit(validating.solved, one.name, made.instructor)] = (one.name, "master")
            jobs[pool.submit(validating.untouched, one.name, made.student)] = (one.name, "release")
        for job in as_completed(jobs):
            lab, what = jobs[job]
            ran = job.result()
            found += ran.problems
            right = [score == (most if what == "master" else 0) for score, most in ran.scores.values()]
            verb = "pass" if what == "master" else "fail without answers, as they should"
            print(
                f"{lab:<20}{what:<9}{sum(right)} of {len(right)} tests {verb} ({ran.seconds:.0f} s)",
                flush=True,
            )
            if not right:
                found.append(f"{lab}: it has no graded cell.")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m labs.release", description=__doc__.split("\n")[0])
    parser.add_argument("--lab", action="append", help="this lab only (may be given again)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to (_build/labs)")
    parser.add_argument("--roster", type=Path, help="CSV file of student ids: a copy for each of them")
    parser.add_argument("--secret", type=Path, help="file with the secret that their numbers come from")
    parser.add_argument("--check", action="store_true", help="run both copies of each lab; write nothing")
    given = parser.parse_args(arguments)
    if bool(given.roster) != bool(given.secret):
        parser.error("--roster and --secret go together: the numbers come from an id and the secret.")
    started = time.monotonic()
    try:
        labs = [find(name) for name in given.lab] if given.lab else list(all_assignments().values())
        if not labs:
            raise ValueError(f"{ROOT / 'labs'}: there is no lab; expected labs/lab1_name/lab1-name.ipynb.")
        if given.check:
            problems = check(labs)
            print("\n".join(problems) or f"All is well ({time.monotonic() - started:.0f} s).")
            return int(bool(problems))
        variants = _variants(given.roster, given.secret) if given.roster else {}
        made = release(labs, given.out)
        if variants:
            personal(made, variants, given.out)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for one in made:
        size = len(one.student.encode()) / 1000
        print(f"{one.lab:<20}version {one.version}, {len(one.files)} modules and data files, {size:.0f} KB")
    if variants:
        print(f"{len(variants)} students' own copies are in {given.out / 'students'}")
    print(f"{given.out / package.ARCHIVE} ({time.monotonic() - started:.0f} s)")
    return 0


def _variants(roster: Path, secret: Path) -> dict[str, int]:
    from labs.grading import variants

    key = variants.read_secret(secret)
    return {student: variants.variant_of(student, key) for student in variants.roster(roster)}


if __name__ == "__main__":
    sys.exit(main())

"""Grades a class: two submissions at a time, each once, however often the run is stopped and begun again.

In OUT, a folder that nbgrader can use as a course:
    <lab>/students/<student>.json   one result each, written whole
    <lab>/grades.csv                for a spreadsheet
    gradebook.db, autograded/       for nbgrader
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout
from tqdm import tqdm

from kernels.evidence.child_process import write_atomically
from labs.grading import master, results
from labs.grading.collecting import HandedIn
from labs.grading.grade import grade
from labs.grading.results import Result
from labs.grading.running_program import SandboxFailed
from labs.grading.safe_text import sentence, tidy
from labs.grading.submission import digest_of, read
from labs.grading.variants import identity, variant_of
from labs.kit.ask_in_processes import Runner

JOBS = 2
EVERYBODY = "all"


class AlreadyRunning(RuntimeError):
    """Another grader works on this lab in this folder."""


@dataclass(frozen=True)
class Class:
    """One lab graded into one folder. roster: {id: name}; secret: of the variants, or ""."""

    assignment: master.Assignment
    out: Path
    seed: int
    roster: Mapping[str, str] | None = None
    secret: str = ""

    @property
    def folder(self) -> Path:
        return self.out / self.assignment.name

    @property
    def students(self) -> Path:
        return self.folder / "students"

    def variant(self, student: str) -> int:
        """From the roster's spelling and the secret, never from the notebook."""
        return variant_of(student, self.secret)


@dataclass(frozen=True)
class Done:
    """What a run did. results: everybody's, old and new, by student. failed: who has no grade, and why."""

    results: Mapping[str, Result]
    graded: tuple[str, ...] = ()
    failed: Mapping[str, str] | None = None


@contextmanager
def locked(out: Path, lab: str) -> Iterator[None]:
    """Nobody else grades this lab into this folder meanwhile. The lock ends with the process."""
    (out / lab).mkdir(parents=True, exist_ok=True)
    lock = FileLock(out / lab / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise AlreadyRunning(
            f"Another grader is at work on {lab} in {out}; wait for it, or give another --out."
        ) from None
    try:
        yield
    finally:
        lock.release()


def seed_of(out: Path, lab: str, wanted: int | None = None) -> int:
    """The seed of a class: the wanted one, else that of the earlier run, else a new one that nobody knows."""
    path = out / lab / "seed.json"
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["seed"]
    except (OSError, ValueError, TypeError, KeyError):
        kept = None
    seed = wanted if wanted is not None else kept
    seed = seed if isinstance(seed, int) and not isinstance(seed, bool) else secrets.randbelow(2**31)
    if seed < 0:
        raise ValueError(f"seed = {seed}: give a whole number from 0.")
    if seed != kept:
        write_atomically(path, json.dumps({"seed": seed}) + "\n")
    return seed


def run(
    course: Class,
    handed_in: Sequence[HandedIn],
    runner: Runner,
    jobs: int = JOBS,
    regrade: Collection[str] = (),
    tell: Callable[[str], None] | None = None,
    check: Callable[[], None] | None = None,
) -> Done:
    """Grade what has no grade yet, or one of other code, another submission or another seed.

    regrade: students (or "all") whose grades are made again. tell: gets a line about each; None for a
    progress bar on standard error. check: called first, if there is anything to grade; it may raise.
    Call it inside `locked`.
    """
    kept = results.load_all(course.students)
    basis = {"grader": master.digest(course.assignment), "seed": course.seed}
    again = {identity(student) for student in regrade}
    waiting = []
    for one in handed_in:
        mine = basis | {"variant": course.variant(one.student), "submission": _digest(one.path)}
        old = kept.get(one.student)
        named = again & {identity(one.student), EVERYBODY}
        if named or old is None or dict(old.basis) != mine:
            waiting.append((one, mine))
    if waiting and check:
        check()
    failed: dict[str, str] = {}
    graded: list[str] = []
    with _progress(len(handed_in), len(handed_in) - len(waiting), tell) as step:
        for one, outcome in _each(course, waiting, runner, jobs):
            if isinstance(outcome, Result):
                graded.append(one.student)
                kept[one.student] = outcome
                what = f"{outcome.grade.total:g} of {outcome.grade.most:g}"
                step(f"{one.student}: {what}{', needs a look' if outcome.grade.needs_look else ''}")
            else:
                failed[one.student] = outcome
                step(f"{one.student}: not graded. {outcome}")
    return Done(_with_notes(kept, handed_in, course), tuple(graded), failed)


def _each(
    course: Class, waiting: Sequence[tuple[HandedIn, Mapping]], runner: Runner, jobs: int
) -> Iterator[tuple[HandedIn, Result | str]]:
    """(who, the result or why there is none), as they get done. Stopped, it begins no more."""
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        running = {pool.submit(_one, course, one, basis, runner): one for one, basis in waiting}
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _one(course: Class, one: HandedIn, basis: Mapping, runner: Runner) -> Result | str:
    """Grade one submission and put the result on disk; a failure of ours is a sentence."""
    variant = basis["variant"]
    try:
        handed_in = one.path.stat().st_mtime
        submission = read(one.path, course.assignment)
        try:
            made = grade(submission, course.assignment, runner, course.seed, variant)
        except SandboxFailed:  # once more: a busy machine is quiet again a moment later
            made = grade(submission, course.assignment, runner, course.seed, variant)
    except SandboxFailed as error:
        return tidy(f"The sandbox failed: {error} Run the same command again.")
    except Exception as error:  # noqa: BLE001 - one submission must not stop the class
        return tidy(f"The grader failed ({type(error).__name__}: {error}); this is a mistake in it.")
    result = Result(
        one.student,
        made,
        # The digest of what was read, in case that the file was replaced meanwhile.
        {**basis, "submission": submission.digest},
        one.path.name,
        handed_in,
        time.time(),
        (course.roster or {}).get(one.student, ""),
    )
    results.save(course.students, result)
    return result


def _digest(path: Path) -> str:
    """What the grade of this file is made of; "" if it can't be opened, which is said when it is read."""
    try:
        return digest_of(path)
    except OSError:
        return ""


def _with_notes(
    kept: Mapping[str, Result], handed_in: Sequence[HandedIn], course: Class
) -> dict[str, Result]:
    """The results with what is known only from the folder: files chosen among, gone, or of nobody we know."""
    now = {one.student: one for one in handed_in}
    made = {}
    for student, result in sorted(kept.items()):
        notes, problems = list(result.grade.notes), list(result.grade.problems)
        notes += now[student].notes if student in now else ()
        if student not in now:
            problems.append("Graded before; the file is not among the submissions any more.")
        if course.roster is not None and student not in course.roster:
            variant = (
                " Its variant was made from this name, so the grade may be wrong." if course.secret else ""
            )
            problems.append(f"{student} is not on the roster.{variant}")
        made[student] = replace(
            result, grade=replace(result.grade, notes=tuple(notes), problems=tuple(map(tidy, problems)))
        )
    return made


@contextmanager
def _progress(total: int, before: int, tell: Callable[[str], None] | None) -> Iterator[Callable[[str], None]]:
    """What is called with a line for each student: a bar on a terminal, plain lines elsewhere."""
    if tell is None and sys.stderr.isatty():
        with tqdm(total=total, initial=before, unit="submission", file=sys.stderr) as bar:

            def step(line: str) -> None:
                bar.set_postfix_str(tidy(line, 40), refresh=False)
                bar.update()

            yield step
        return
    tell = tell or (lambda line: print(line, file=sys.stderr, flush=True))
    if before:
        tell(f"{before} of {total} have their grade already.")
    count = before

    def line(text: str) -> None:
        nonlocal count
        count += 1
        tell(f"[{count}/{total}] {sentence(text)}")

    yield line

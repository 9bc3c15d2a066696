"""A class of made submissions, graded with the real command in the real sandbox.

In `make test`: one attack on every lab, and a sample of one lab's class (`turns` says whose). With
FULL_CLASS=1 (`make labs-test`): all of every class, killed once on the way. `tests/labs/submissions`
says who is in a class and what each deserves.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from labs import assignments
from labs.grading import master, results
from tests.labs import submissions, turns
from tests.labs.submissions.made import ROOT, Case, Places, release, write

FULL = bool(os.environ.get("FULL_CLASS"))
# Forty submissions in a quarter of an hour; in a sample the start weighs more.
PER_SUBMISSION = 15 * 60 / 40 if FULL else 60
SEED = "5"
ABSENT = "nobody-handed-in"
KILLED_AFTER = 15  # grades

LABS = sorted(submissions.CLASSES)
DIGESTS = {lab: master.digest(assignments.find(lab)) for lab in LABS}
SAMPLED = LABS if FULL else [turns.whose(DIGESTS)]

each_lab = pytest.mark.parametrize("lab", LABS)
a_labs_turn = pytest.mark.parametrize("lab", SAMPLED)


def members(lab: str) -> list[Case]:
    """Who is graded in this run."""
    return submissions.members(lab, "all" if FULL else "sample" if lab in SAMPLED else "attack")


class Graded:
    """One lab's class, graded into a folder: once (stopped on the way, if FULL), and then again."""

    def __init__(self, lab: str, folder: Path):
        self.lab, self.folder = assignments.find(lab), folder
        self.cases = members(lab)
        self.told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
        self.results = results.load_all(folder / "grades" / lab / "students")
        text = (folder / "grades" / lab / "grades.csv").read_text(encoding="utf-8-sig")
        rows = csv.DictReader(text.splitlines(keepends=True))
        self.rows = {row["student"].removeprefix("'"): row for row in rows}

    def each(self):
        """(case, grade) of everybody who has one."""
        return [(c, self.results[c.name].grade) for c in self.cases if c.name in self.results]


@pytest.fixture
def graded(lab, tmp_path_factory, request) -> Iterator[Graded]:
    """Made once for all tests and all test processes, one class at a time: its time is measured."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with FileLock(base / "class.lock"):
        folder = base / f"class-{lab}"
        if not (folder / "told.json").exists():
            folder.mkdir()
            told = _grade(lab, folder)
            (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")
    made, failed = Graded(lab, folder), request.session.testsfailed
    yield made
    if lab in SAMPLED:
        turns.note(lab, DIGESTS[lab], made.told["at"], request.session.testsfailed == failed)


def _grade(lab: str, folder: Path) -> dict:
    places, knocks = Places(folder / "canary", folder / "submitted", folder / "grades"), []
    assignment = assignments.find(lab)
    cases = members(lab)
    (places.canary / "deep").mkdir(parents=True)
    (places.canary / "deep" / "secret.txt").write_text("nobody may read this", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_listen, args=(server, knocks), daemon=True).start()
        places = Places(places.canary, places.others, places.grades, server.getsockname()[1])
        write(cases, release(assignment), lab, places)
        roster = folder / "roster.csv"
        roster.write_text("\n".join(["student", *(c.name for c in cases), ABSENT]) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "labs.grading", str(places.others), "--lab", lab, "--seed", SEED]
        command += ["--out", str(places.grades), "--roster", str(roster)]
        # The gradebook's own tests are in test_gradebook.py; one class here comes with it.
        command += [] if lab in SAMPLED else ["--no-gradebook"]
        before, started = _outside(folder), time.monotonic()
        early = _killed(command, places.grades / lab / "students") if FULL else {}
        first = _run(command)
        seconds = time.monotonic() - started
        kept = _hashes(places.grades / lab / "students")
        second = _run(command) if lab in SAMPLED else None
    return {
        "at": time.time(),
        "seconds": seconds,
        "early": early,
        "kept": kept,
        "kept_after": _hashes(places.grades / lab / "students"),
        "first": first,
        "second": second,
        "before": before,
        "after": _outside(folder),
        "knocks": len(knocks),
        "alive": [p.name() for p in psutil.process_iter() if f"stay{places.port}" in _name(p)],
    }


def _run(command: list[str]) -> dict:
    env = os.environ | {"CANARY_TOKEN": "not for students"}
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=3600, encoding="utf-8"
    )
    return {"status": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def _killed(command: list[str], students: Path) -> dict[str, str]:
    """Starts the command and kills it once some grades are there: which, as they were then."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(students.glob("*.json"))) < KILLED_AFTER and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return _hashes(students)


def _listen(server: socket.socket, knocks: list) -> None:
    with suppress(OSError):
        while True:
            knocks.append(server.accept())


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return process.name()
    return ""


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.json" if folder.name == "students" else "*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _outside(folder: Path) -> dict[str, dict[str, str]]:
    """All that the class's code may not touch."""
    return {
        "submissions": _hashes(folder / "submitted"),
        "canary": _hashes(folder / "canary"),
        "labs": _hashes(ROOT / "labs"),  # masters, keys, grader
    }


# ------------------------------------------------------------------------------------------ tests


@each_lab
def test_everybody_has_a_grade_and_nobody_needs_a_look(graded, lab):
    assert graded.results.keys() == {case.name for case in graded.cases}
    assert {name: r.grade.problems for name, r in graded.results.items() if r.grade.needs_look} == {}
    assert graded.told["first"]["status"] == 0, graded.told["first"]["stderr"]
    assert len(graded.cases) >= (40 if FULL else 1)
    assert submissions.ATTACK in graded.results


@each_lab
def test_each_gets_the_points_it_deserves(graded, lab):
    points = master.read(graded.lab).points
    wrong = {}
    for case, grade in graded.each():
        got = {score.question: score.points for score in grade.scores}
        deserved = {q: 0 if case.lost(q) is not None else most for q, most in points.items()}
        if got != deserved:
            comments = {s.question: s.comment for s in grade.scores if s.points != deserved[s.question]}
            wrong[case.name] = {q: (got[q], deserved[q], comments[q]) for q in comments}
    assert wrong == {}


@each_lab
def test_each_lost_point_has_the_comment_that_helps(graded, lab):
    missing = {}
    for case, grade in graded.each():
        for score in grade.scores:
            piece = case.lost(score.question)
            if piece is not None and (not score.comment or piece not in score.comment):
                missing[f"{case.name}, {score.question}"] = (piece, score.comment)
        for piece in case.notes:
            if piece not in graded.rows[case.name]["comments"]:
                missing[f"{case.name}, note"] = (piece, graded.rows[case.name]["comments"])
    assert missing == {}


@each_lab
def test_nothing_outside_was_read_or_touched(graded, lab):
    told = graded.told
    for what in told["before"]:
        assert told["before"][what] == told["after"][what], what
    assert len(told["before"]["submissions"]) >= len(graded.cases)
    assert told["before"]["canary"]
    assert f"{graded.lab.master.parent.name}/key.py" in told["before"]["labs"]
    assert told["knocks"] == 0
    assert told["alive"] == []
    everything = [json.dumps(vars(score)) for _, grade in graded.each() for score in grade.scores]
    everything += [note for _, grade in graded.each() for note in grade.notes]
    assert [text for text in everything if "LEAKED" in text] == []


@a_labs_turn
def test_the_spreadsheet_holds_everybody_and_no_formula(graded, lab):
    assert graded.rows.keys() == {case.name for case in graded.cases} | {ABSENT}
    cells = [cell for row in graded.rows.values() for cell in row.values()]
    assert [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@"))] == []
    assert [c for cell in cells for c in cell if ord(c) < 32 and c != "\n"] == []
    total = next(name for name in graded.rows[ABSENT] if name.startswith("total"))
    totals = {name: row[total] for name, row in graded.rows.items()}
    assert totals == {n: f"{r.grade.total:g}" for n, r in graded.results.items()} | {ABSENT: "0"}


@a_labs_turn
def test_a_second_run_grades_nobody_again(graded, lab):
    second = graded.told["second"]
    assert second["status"] == 0
    assert graded.told["kept_after"] == graded.told["kept"]
    assert f"{len(graded.cases)} of {len(graded.cases)} have their grade already." in second["stderr"]


@pytest.mark.skipif(not FULL, reason="the full class is killed and resumed: FULL_CLASS=1")
@a_labs_turn
def test_a_killed_run_loses_no_grade_and_makes_none_twice(graded, lab):
    early, kept = graded.told["early"], graded.told["kept"]
    assert KILLED_AFTER <= len(early) < len(graded.cases)
    assert {name: kept.get(name) for name in early} == early


@a_labs_turn
def test_it_takes_no_longer_than_it_may(graded, lab):
    assert graded.told["seconds"] < PER_SUBMISSION * len(graded.cases)

"""Every test, in the order in which a failure is cheapest to find; then where the time went.

Called by `make test`. All steps run even if one fails; the exit status is 0 only if all passed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.grading.sandbox_contents import ONE_THREAD

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(".venv") / "bin"
PYTHON = str(BIN / "python")
REPORTS = Path("_build") / "tests"  # a file of each run of pytest, with the time of each test
SLOWEST = 10
CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Step:
    """One step: its name; its commands, each if the one before passed.

    sets: variables that later steps have, if it passed; given: those that it has itself.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    sets: tuple[tuple[str, str], ...] = ()
    given: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Done:
    """A step that ran: did it pass, and how many seconds it took."""

    name: str
    passed: bool
    seconds: float


def pytest(report: str, *arguments: str) -> tuple[str, ...]:
    """A run of pytest that leaves the time of each test in REPORTS."""
    kept = (f"--junitxml={REPORTS / report}.xml", "-o", "junit_family=xunit1")
    return (PYTHON, "-m", "pytest", "-q", *kept, *arguments)


def steps(make: str = "make") -> tuple[Step, ...]:
    """The steps of `make test`, in order."""
    return (
        Step("lint", ((str(BIN / "ruff"), "check", "."),)),
        Step("format", ((str(BIN / "ruff"), "format", "--check", "."),)),
        Step("types", ((PYTHON, "-m", "mypy"),)),
        Step("dependencies", ((PYTHON, "-m", "pip", "check"),)),
        Step("browser", ((PYTHON, "book/site/browser.py", "--install"),)),
        Step("sandbox", ((PYTHON, "labs/grading/install_bubblewrap.py"),)),
        Step(
            "site",
            ((PYTHON, "book/site/vendor.py", "--tests"), (make, "--no-print-directory", "site")),
            sets=(("SITE_IS_BUILT", "1"),),
            # What a chapter times of this machine is compared with nothing here.
            given=(("BOOK_JOBS", str(CORES)),),
        ),
        # A worker for each core, which its children and its browser keep busy while it waits for them.
        # A thread for each: torch's own, on arrays as small as these, would wait for each other in a loop.
        Step(
            "tests",
            (pytest("tests", "-n", str(CORES), "--dist", "worksteal", "-m", "not quiet"),),
            given=tuple(dict.fromkeys(ONE_THREAD, "1").items()),
        ),
        # Alone, since what runs beside them is in their times.
        Step(
            "timing tests", (pytest("timing", "-m", "quiet", "tests/kernels", "tests/labs/test_sandbox.py"),)
        ),
    )


def run(todo: Iterable[Step], call: Callable[..., int] = subprocess.call) -> list[Done]:
    """Run each step, whatever became of those before it."""
    # Hundreds of processes import our modules: each would compile them anew where none may keep them.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done: list[Done] = []
    for step in todo:
        print(f"\n=== {step.name}", flush=True)
        began = time.monotonic()
        given = environment | dict(step.given)
        passed = all(call(command, cwd=ROOT, env=given) == 0 for command in step.commands)
        if passed:
            environment |= dict(step.sets)
        done.append(Done(step.name, passed, time.monotonic() - began))
    return done


def by_file(reports: Iterable[Path]) -> Counter[str]:
    """Test file -> seconds of all its tests, their fixtures included, from pytest's reports."""
    seconds: Counter[str] = Counter()
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            seconds[case.get("file", "?")] += float(case.get("time", 0))
    return seconds


def account(done: Sequence[Done], seconds: Counter[str]) -> str:
    """Where the time went: wall seconds of each step, then the slowest test files."""
    rows = [(d.name if d.passed else f"{d.name} (failed)", f"{d.seconds:.0f}") for d in done]
    rows.append(("all", f"{sum(d.seconds for d in done):.0f}"))
    files = [(name, f"{spent:.0f}") for name, spent in seconds.most_common(SLOWEST)]
    tables = [(("step", "seconds"), rows)]
    if files:
        tables.append(((f"the {len(files)} slowest test files", "seconds, of one core"), files))
    return "\n\n".join(_table(head, rows) for head, rows in tables)


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    left, right = (max(len(row[i]) for row in (head, *rows)) for i in (0, 1))
    line = ("-" * left, "-" * right)
    return "\n".join(f"{name:<{left}}  {value:>{right}}" for name, value in (head, line, *rows))


def main() -> int:
    """Run everything and print the account; 1 if a step failed."""
    (ROOT / REPORTS).mkdir(parents=True, exist_ok=True)
    for old in (ROOT / REPORTS).glob("*.xml"):
        old.unlink()
    done = run(steps(os.environ.get("MAKE", "make")))
    print(f"\n{account(done, by_file(sorted((ROOT / REPORTS).glob('*.xml'))))}")
    failed = [d.name for d in done if not d.passed]
    print("\nFailed: " + ", ".join(failed) if failed else "\nAll tests passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

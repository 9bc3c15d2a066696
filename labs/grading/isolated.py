"""Runs the three programs of a lab, each in a sandbox of its own (`labs.kit.asking.Runner`).

Process S ("answer") gets one file. Process T ("replay", "compile") gets the packages it imports, read
only. Neither sees the keys, the grader, the masters or another submission.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs.grading.job import SandboxFailed
from labs.grading.sandbox import Limits, Sandbox, run
from labs.kit import local
from labs.kit.asking import Ran, Runner

ROOT = Path(__file__).resolve().parents[2]
JOB = "/job"
ANSWERING = f"{JOB}/answering.py"
PACKAGES = f"{JOB}/kernels"
# The folder that holds the packages comes first on the path; a sandbox may have moved it.
START = """
import pathlib, runpy, sys
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)).parent))
runpy.run_module("labs.kit.replaying", run_name="__main__")
"""
# What of book/ no kernel needs: the site's and the widgets' own files.
NOT_NEEDED = ("site", "pages", "claims", "__pycache__")
MIB = 2**20


@dataclass(frozen=True)
class ProgramLimits:
    """What each program may use.

    Processor time is the limit that counts (a fair machine is not always a quiet one), and the
    wall clock is there for what sleeps. total_seconds: of all runs for one submission together.
    """

    # What is answered in a line of JSON takes a hundred times the room here: [[],[],[],... So not much of it.
    answer: Limits = Limits(seconds=90, cpu_seconds=20, answer_bytes=4 * MIB)
    replay: Limits = Limits(seconds=120, cpu_seconds=60)
    compile: Limits = Limits(seconds=120, cpu_seconds=60)
    total_seconds: float = 300


LIMITS = ProgramLimits()


def runner(sandbox: Sandbox, limits: ProgramLimits = LIMITS) -> Runner:
    """A `Runner` for `asking.answer`: every call is a fresh sandbox. Any number of threads may use it.

    Raises SandboxFailed from a call when the sandbox, not the program, is to blame.
    """
    packages = _packages()

    def asked(program: str, request: Mapping[str, Any]) -> Ran:
        if program == "answer":
            argv = [sys.executable, "-B", ANSWERING]
            files = {ANSWERING: ROOT / "labs" / "kit" / "answering.py"}
        else:
            argv = [sys.executable, "-B", "-c", START, PACKAGES]
            argv += ["--compile"] if program == "compile" else []
            files = packages
        outcome = run(
            argv,
            question=json.dumps(request).encode(),
            files=files,
            env={"TRITON_INTERPRET": "0" if program == "compile" else "1"},
            limits=getattr(limits, program),
            sandbox=sandbox,
        )
        detail = "" if outcome.status == "ok" else outcome.detail
        if outcome.status == "crashed" and program != "answer":
            detail = _with_error(detail, outcome.output)
        return Ran(local.events(outcome.answer), outcome.status, detail, outcome.printed)

    return asked


def _packages() -> dict[str, Path]:
    """Where process T finds its packages, and where they are here."""
    files = {
        PACKAGES: ROOT / "kernels",
        f"{JOB}/labs/__init__.py": ROOT / "labs" / "__init__.py",
        f"{JOB}/labs/kit": ROOT / "labs" / "kit",
    }
    for path in sorted((ROOT / "book").iterdir()):
        if path.name not in NOT_NEEDED:
            files[f"{JOB}/book/{path.name}"] = path
    return files


def _with_error(detail: str, output: str) -> str:
    """Process T runs nothing of a student's outside Triton's language, so its last line is worth telling."""
    last = output.strip().rpartition("\n")[2]
    return f"{detail} {last[:300]}".strip()


def alive(one: Runner) -> None:
    """Run all three programs on nothing. Raises SandboxFailed when the environment isn't all there."""
    for program, request in (
        ("answer", {"cells": [], "asks": []}),
        ("replay", {"kernels": "", "cases": []}),
        ("compile", {"kernels": "", "cases": []}),
    ):
        ran = one(program, request)
        if ran.status != "ok":
            raise SandboxFailed(f"The program {program!r} does not start in the sandbox: {ran.detail}")

"""Runs the three programs of a lab, each in a sandbox of its own (`labs.kit.ask_in_processes.Runner`).

Process S ("answer") gets one file. Process T ("replay", "compile") gets the files that it imports and
no others, read only. Neither sees a key, the grader, a master or another submission.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from book.portable.dependencies import closure
from labs.grading.running_program import SandboxFailed
from labs.grading.sandbox import Limits, Sandbox, run
from labs.kit import unsandboxed
from labs.kit.ask_in_processes import Ran, Runner

ROOT = Path(__file__).resolve().parents[2]
JOB = "/job"
ANSWERING = f"{JOB}/run_submitted_code.py"
PROGRAM_T = "labs.kit.run_kernels"
OURS = f"{JOB}/{PROGRAM_T.replace('.', '/')}.py"
# The folder that holds our packages comes first on the path; a sandbox may have moved it.
START = f"""
import pathlib, runpy, sys
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)).parents[2]))
runpy.run_module({PROGRAM_T!r}, run_name="__main__")
"""
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
    """A `Runner` for `ask_in_processes.answer`: every call is a fresh sandbox, in any number of threads.

    Raises SandboxFailed from a call when the sandbox, not the program, is to blame.
    """
    ours = imported(PROGRAM_T)

    def asked(program: str, request: Mapping[str, Any]) -> Ran:
        if program == "answer":
            argv = [sys.executable, "-B", ANSWERING]
            files = {ANSWERING: ROOT / "labs" / "kit" / "run_submitted_code.py"}
        else:
            argv = [sys.executable, "-B", "-c", START, OURS]
            argv += ["--compile"] if program == "compile" else []
            files = ours
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
        return Ran(unsandboxed.events(outcome.answer), outcome.status, detail, outcome.printed)

    return asked


def imported(module: str) -> dict[str, Path]:
    """What a module of ours imports, by reading: where a sandbox has each file, and where it is here."""
    files = closure([f"import {module}"], ROOT)
    return {f"{JOB}/{path.relative_to(ROOT).as_posix()}": path for path in sorted(files)}


def _with_error(detail: str, output: str) -> str:
    """Process T runs nothing of a student's outside Triton's language, so its last line is worth telling."""
    last = output.strip().rpartition("\n")[2]
    return f"{detail} {last[:300]}".strip()


def alive(one: Runner) -> None:
    """Run the programs on nothing. Raises SandboxFailed when the environment isn't all there.

    "replay" and "compile" are one program with the same imports, so one of them tells. They import
    all that "answer" may, which without cells imports neither torch nor Triton.
    """
    for program, request in (
        ("answer", {"cells": [], "asks": []}),
        ("compile", {"kernels": "", "cases": []}),
    ):
        ran = one(program, request)
        if ran.status != "ok":
            raise SandboxFailed(f"The program {program!r} does not start in the sandbox: {ran.detail}")

"""Runs the child programs on this machine, without a sandbox: the student's own code, at home."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from book.say import say
from kernels.evidence.child_process import environment
from labs.kit.ask_in_processes import Ran

HERE = Path(__file__).parent
PROGRAMS = {
    "answer": [str(HERE / "run_submitted_code.py")],
    "replay": ["-m", "labs.kit.run_kernels"],
    "compile": ["-m", "labs.kit.run_kernels", "--compile"],
}
SECONDS = 120


def run(program: str, request: Mapping[str, Any]) -> Ran:
    """Run one program to its end, or for two minutes; `ask_in_processes.Runner`."""
    receiving, sending = os.pipe()
    env = environment(interpret=program != "compile") | {"ROOFLINE_ANSWER_FD": str(sending)}
    child = subprocess.Popen(
        [sys.executable, *PROGRAMS[program]],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(sending,),
        env=env,
    )
    os.close(sending)
    told: list[bytes] = []
    reader = threading.Thread(target=lambda: told.append(_all(receiving)), daemon=True)
    reader.start()
    status, detail, errors = "ok", "", b""
    try:
        with contextlib.suppress(BrokenPipeError):
            _, errors = child.communicate(json.dumps(request).encode(), timeout=SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        status, detail = "timeout", say("It ran longer than {seconds} s and was stopped.", seconds=SECONDS)
    reader.join(timeout=10)
    if child.returncode and status == "ok":
        status = "crashed"
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        detail = say("It ended with code {code}", code=child.returncode) + (
            f": {lines[-1]}" if lines else "."
        )
    return Ran(events(b"".join(told)), status, detail)


def _all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()


def events(told: bytes) -> list[Mapping[str, Any]]:
    """The lines that are JSON objects; whatever else was written to the channel is left out."""
    found = []
    for line in told.splitlines():
        with contextlib.suppress(ValueError, RecursionError):  # a hundred thousand brackets
            event = json.loads(line)
            if isinstance(event, dict):
                found.append(event)
    return found

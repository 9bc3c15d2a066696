"""Runs the child programs on this machine, without a sandbox: the student's own code, at home.

Each is a fresh child of a process that has imported torch already (`forked_programs`).
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from typing import Any

from book.say import say
from kernels.evidence.child_process import environment
from labs.kit.ask_in_processes import Ran
from labs.kit.forked_programs import Waiting

PROGRAMS = {
    "answer": ["labs.kit.run_submitted_code"],
    "replay": ["labs.kit.run_kernels"],
    "compile": ["labs.kit.run_kernels", "--compile"],
}
SECONDS = 120

_waiting: Waiting | None = None
_one_at_a_time = threading.Lock()


def run(program: str, request: Mapping[str, Any]) -> Ran:
    """Run one program to its end, or for two minutes; `ask_in_processes.Runner`."""
    global _waiting
    with _one_at_a_time:
        env = environment(interpret=program != "compile")
        if _waiting is None or not _waiting.alive:
            _waiting = Waiting(env)
        code, told, errors = _waiting.run(PROGRAMS[program], json.dumps(request).encode(), env, SECONDS)
    status, detail = "ok", ""
    if code is None:
        status, detail = "timeout", say("It ran longer than {seconds} s and was stopped.", seconds=SECONDS)
    elif code:
        status, lines = "crashed", errors.strip().splitlines()
        detail = say("It ended with code {code}", code=code) + (f": {lines[-1]}" if lines else ".")
    return Ran(events(told), status, detail)


def events(told: bytes) -> list[Mapping[str, Any]]:
    """The lines that are JSON objects; whatever else was written to the channel is left out."""
    found = []
    for line in told.splitlines():
        with contextlib.suppress(ValueError, RecursionError):  # a hundred thousand brackets
            event = json.loads(line)
            if isinstance(event, dict):
                found.append(event)
    return found

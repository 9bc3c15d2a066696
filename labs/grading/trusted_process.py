"""No sandbox at all: a child process with limits, for files that the instructor trusts (--trusted).

The program sees this machine's files and network. Its own folder is new and is removed afterwards, and what
it leaves running is found by a mark in its environment and killed; a program that means harm could avoid
that.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from labs.grading import sandbox_contents
from labs.grading.running_program import GONE, RunningProgram, SandboxFailed, children

MARK = "ROOFLINE_RUN"
DEATH = 10  # s that killing may take
# Limits are set by the child itself: code between fork and exec isn't safe when the grader has threads.
LAUNCH = """
import os, resource, sys
for name, value in zip(("CPU", "DATA", "FSIZE", "CORE"), map(int, sys.argv[1:5])):
    try:
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value + (name == 'CPU')))
    except (ValueError, OSError):
        pass  # this system has no such limit
os.execv(sys.argv[5], sys.argv[5:])
"""


@dataclass(frozen=True)
class TrustedProcess:
    """A child process. find() returns it only when told that the files are trusted."""

    name: str = "no sandbox (trusted files)"

    @contextmanager
    def start(self, argv, files, env, limits) -> Iterator[RunningProgram]:
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="roofline-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            (folder / "home").mkdir()
            (folder / "work").mkdir()
            moved = {}
            for at, source in files.items():
                target = folder / "files" / at.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
                moved[at] = str(target)
            answer, answer_in = os.pipe()
            stack.enter_context(closing(os.fdopen(answer, "rb", buffering=0)))
            writer = stack.enter_context(os.fdopen(answer_in, "wb", buffering=0))
            mark = secrets.token_hex(16)
            numbers = (limits.cpu, limits.memory_bytes + 2**30, limits.scratch_bytes, 0)
            popen = stack.enter_context(
                subprocess.Popen(
                    # No mounts here: a file's path in argv becomes that of its copy.
                    [
                        sys.executable,
                        "-I",
                        "-c",
                        LAUNCH,
                        *map(str, numbers),
                        *(moved.get(a, a) for a in argv),
                    ],
                    env=sandbox_contents.environment(env, answer_in, str(folder)) | {MARK: mark},
                    cwd=folder / "work",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=(answer_in,),
                    start_new_session=True,
                )
            )
            writer.close()

            def kill() -> None:
                with suppress(ProcessLookupError, PermissionError):
                    # Not yet waited for, so the number can't belong to anybody else.
                    if popen.poll() is None:
                        os.killpg(popen.pid, signal.SIGKILL)
                _end(children(popen.pid) if popen.poll() is None else [])
                if popen.poll() is None:
                    popen.kill()

            def finish(stopped: bool) -> tuple[int, bool]:
                code = popen.wait(DEATH)
                until = time.monotonic() + DEATH
                while left := _marked(mark):
                    _end(left)
                    if time.monotonic() > until:
                        raise SandboxFailed(f"{len(left)} processes of the program can't be ended.")
                return code, False

            stack.callback(lambda: (kill(), _end(_marked(mark))))
            yield RunningProgram(popen, popen.stdout.fileno(), answer, lambda: _tree(popen), kill, finish)


def _tree(popen: subprocess.Popen) -> list[psutil.Process]:
    with suppress(*GONE):
        return [psutil.Process(popen.pid), *children(popen.pid)]
    return []


def _marked(mark: str) -> list[psutil.Process]:
    """The processes that inherited the mark, whoever their parent is now."""
    found = []
    for process in psutil.process_iter():
        with suppress(*GONE, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(*GONE):
            process.kill()
    psutil.wait_procs(processes, timeout=0.1)

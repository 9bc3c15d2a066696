"""Runs a program that nobody vouches for: a student's. Nothing of it survives the run but its answer.

`find()` picks the best sandbox of this machine; `run(...)` sends a question in through stdin and takes out
what the program wrote to the answer channel, a pipe whose number is in ROOFLINE_ANSWER_FD. What it printed
comes back too, cut in the middle. Every limit is enforced from outside, by the one loop in `_drive`: it
reads the pipes, looks at the clock and at the processes, and never waits for the program's goodwill. Any
number of threads may call `run` at once.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from book.say import say
from labs.grading.running_program import HeadAndTail, RunningProgram, SandboxFailed, ending, resident

CHUNK = 1 << 16
POLL = (0.02, 0.1)  # s between two looks at the processes: at first, and after the first second
MIB = 2**20


class NoSandbox(RuntimeError):
    """Nothing here can hold an untrusted program; the sentence names the remedy."""


@dataclass(frozen=True)
class Limits:
    """What one program may use. Sizes in bytes, times in seconds; memory and processes of all it starts."""

    seconds: float = 30
    cpu_seconds: float | None = None
    memory_bytes: int = 3 * 2**30
    output_bytes: int = 64 * 1024
    answer_bytes: int = 64 * 2**20
    processes: int = 64
    scratch_bytes: int = 256 * 2**20

    def __post_init__(self):
        for name, value in vars(self).items():
            if value is not None and value <= 0:
                raise ValueError(f"Limits.{name} is {value}; give a number above 0.")

    @property
    def cpu(self) -> int:
        """Seconds of processor time for one process: twice the wall clock unless said otherwise."""
        return max(1, round(self.cpu_seconds or 2 * self.seconds))


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "ok", "timeout", "memory", "crashed", "answer too large" or "too many processes"."""

    status: str
    answer: bytes  # what the program wrote to the answer channel
    output: str  # stdout and stderr as one stream, its middle cut
    seconds: float
    detail: str  # a sentence for the comment
    printed: int  # bytes of stdout and stderr in all


class Sandbox(Protocol):
    """What holds the program: labs.grading.bubblewrap, .container or .plain."""

    name: str

    def start(self, argv, files, env, limits) -> object:
        """A context manager that starts the program, yields its RunningProgram and leaves nothing behind."""


def run(
    argv: Sequence[str],
    *,
    question: bytes,
    sandbox: Sandbox,
    files: Mapping[str, Path] | None = None,
    env: Mapping[str, str] | None = None,
    limits: Limits = Limits(),
) -> Outcome:
    """Runs argv in the sandbox until it ends or meets a limit; then no process and no file of it is left.

    argv: begins with a Python interpreter of this environment (sys.executable).
    question: goes to the program's stdin.
    files: path inside the sandbox -> file or folder outside; readable there, never writable.
    env: added to the sandbox's own small environment; nothing of the caller's environment gets in.
    Raises SandboxFailed when the sandbox itself didn't work, which is never the program's fault.
    """
    files = {str(inside): Path(outside).resolve() for inside, outside in (files or {}).items()}
    for inside, outside in files.items():
        if not inside.startswith("/") or ".." in inside.split("/"):
            raise ValueError(
                f"files has the path {inside!r}; give an absolute one, such as /job/run_submitted_code.py."
            )
        if not outside.exists():
            raise ValueError(f"files[{inside!r}] is {str(outside)!r}, which does not exist.")
    started = time.monotonic()
    with sandbox.start([str(a) for a in argv], files, dict(env or {}), limits) as job:
        output = HeadAndTail(limits.output_bytes)
        try:
            answer, stopped = _drive(job, question, output, limits, started)
            code, out_of_memory = job.finish(stopped is not None)
        except SandboxFailed as error:
            job.kill()
            _drain(job.output, output.add)
            raise SandboxFailed(f"{error} {output.text().strip()}".strip()) from None
        except BaseException:
            job.kill()
            raise
        # Only now, when nothing is alive that could write more: what the pipes still hold.
        if not _drain(job.output, output.add) or not _drain(job.answer, answer.extend):
            raise SandboxFailed(f"{sandbox.name}: a process survived its sandbox and still writes.")
    seconds = time.monotonic() - started
    if out_of_memory and stopped is None:
        stopped = "memory", say("{why} and was stopped.", why=_too_much(limits)[1])
    status, detail = stopped or _verdict(code, output.text(), limits)
    if len(answer) > limits.answer_bytes:
        del answer[limits.answer_bytes :]
        if status == "ok":
            status, detail = _too_large(limits)
    return Outcome(status, bytes(answer), output.text(), seconds, detail, output.total)


def _drive(job: RunningProgram, question: bytes, output: HeadAndTail, limits: Limits, started: float):
    """Feeds and reads the program until it ends or must be stopped: (answer, why it was stopped)."""
    answer = bytearray()
    waiting = memoryview(question)
    with selectors.DefaultSelector() as ready, ending(job.popen) as ended:
        for fd in (job.output, job.answer):
            os.set_blocking(fd, False)
            ready.register(fd, selectors.EVENT_READ)
        if ended is not None:
            ready.register(ended, selectors.EVENT_READ)
        stdin = job.popen.stdin
        os.set_blocking(stdin.fileno(), False)
        ready.register(stdin.fileno(), selectors.EVENT_WRITE)
        look = started
        while job.popen.poll() is None:
            now = time.monotonic()
            if now - started > limits.seconds:
                return answer, _stop(
                    job,
                    "timeout",
                    say(
                        "It ran longer than {seconds:g} s",
                        seconds=limits.seconds,
                    ),
                )
            if now >= look:
                memory, count = resident(job.processes(), limits.memory_bytes)
                if count > limits.processes:
                    return answer, _stop(job, *_too_many(limits))
                if memory > limits.memory_bytes:
                    return answer, _stop(job, *_too_much(limits))
                look = now + min(max((now - started) / 10, POLL[0]), POLL[1])
            for key, _ in ready.select(max(0.0, min(look, started + limits.seconds + 0.001) - now)):
                if key.fd == job.output or key.fd == job.answer:
                    data = _read(key.fd)
                    if data == b"":
                        ready.unregister(key.fd)
                    elif key.fd == job.output:
                        output.add(data or b"")
                    else:
                        answer += data or b""
                        if len(answer) > limits.answer_bytes:
                            return answer, _stop(job, *_too_large(limits))
                elif key.fd != ended:
                    try:
                        waiting = waiting[os.write(key.fd, waiting[:CHUNK]) :]
                    except BrokenPipeError:
                        waiting = waiting[:0]
                    if not waiting:
                        ready.unregister(key.fd)
                        stdin.close()
    return answer, None


def _stop(job: RunningProgram, status: str, why: str) -> tuple[str, str]:
    job.kill()
    return status, say("{why} and was stopped.", why=why)


def _read(fd: int) -> bytes | None:
    """Up to CHUNK bytes; b"" at the end, None when there is nothing just now."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None


def _drain(fd: int, take) -> bool:
    """Takes what a pipe without writers still holds. False if it has no end: somebody still writes."""
    for _ in range(64):
        data = _read(fd)
        if not data:
            return True
        take(data)
    return False


def _too_many(limits: Limits) -> tuple[str, str]:
    return "too many processes", say(
        "It started more than {processes} processes",
        processes=limits.processes,
    )


def _too_much(limits: Limits) -> tuple[str, str]:
    return "memory", say(
        "It used more than {size:,.0f} MiB of memory",
        size=limits.memory_bytes / MIB,
    )


def _too_large(limits: Limits) -> tuple[str, str]:
    return "answer too large", say(
        "It answered more than {size:,.0f} MiB",
        size=limits.answer_bytes / MIB,
    )


def _verdict(code: int, output: str, limits: Limits) -> tuple[str, str]:
    """What an exit status means; 128 + n is signal n, as shells and bubblewrap count."""
    if code == 0:
        return "ok", say("It ended by itself.")
    last = output.rstrip().rpartition("\n")[2]
    # The kernel's limits refuse what the loop would have stopped a moment later: same limit, same status.
    if "MemoryError" in last or "can't allocate memory" in last:
        return "memory", f"{_too_much(limits)[1]}."
    if "BlockingIOError" in last or "can't start new thread" in last:
        return "too many processes", f"{_too_many(limits)[1]}."
    number = -code if code < 0 else code - 128
    if number == signal.SIGXCPU:
        return "timeout", say(
            "It used more than {cpu} s of processor time and was stopped.",
            cpu=limits.cpu,
        )
    with suppress(ValueError):
        name = signal.Signals(number).name
        hint = say(", by itself or because the machine ran out of memory") if name == "SIGKILL" else ""
        return "crashed", say("It was ended by signal {name}{hint}.", name=name, hint=hint)
    return "crashed", say("It ended with exit status {code}.", code=code)


def find(trusted: bool = False, image: str | None = None) -> Sandbox:
    """The best sandbox that works here: bubblewrap, else a container engine, else (trusted) a plain process.

    image: a container image that holds the environment; else ROOFLINE_LABS_IMAGE names it.
    Each is tried out with a real Python before it is returned. Raises NoSandbox if there is none.
    """
    from labs.grading import bubblewrap, container, trusted_process

    reasons = []
    for kind in (bubblewrap, container):
        for candidate in kind.candidates(image=image, reasons=reasons):
            try:
                outcome = run(
                    [
                        sys.executable,
                        "-I",
                        "-c",
                        "import os; os.write(int(os.environ['ROOFLINE_ANSWER_FD']), b'ok')",
                    ],
                    question=b"",
                    limits=Limits(seconds=20),
                    sandbox=candidate,
                )
            except (SandboxFailed, OSError) as error:
                reasons.append(f"{candidate.name}: {error}")
                continue
            if outcome.status == "ok" and outcome.answer == b"ok":
                return candidate
            reasons.append(
                f"{candidate.name}: Python did not run in it: {outcome.detail} {outcome.output[-300:]}"
            )
    if trusted:
        return trusted_process.TrustedProcess()
    raise NoSandbox(
        "No sandbox works here, so files that you don't trust can't be run safely. Install bubblewrap "
        "(`apt install bubblewrap`), or say --trusted if you trust every one of these files. "
        f"What was tried: {' | '.join(reasons)}"
    )

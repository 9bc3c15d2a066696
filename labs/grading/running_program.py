"""A program that runs in a sandbox, as the loop in labs.grading.sandbox sees it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

GONE = (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError)


class SandboxFailed(RuntimeError):
    """The sandbox did not work; the program in it is not to blame, and nothing is known about it."""


@dataclass(frozen=True)
class RunningProgram:
    """One started program."""

    popen: subprocess.Popen  # what the caller started; it ends when the program has ended
    output: int  # read end: stdout and stderr
    answer: int  # read end: the answer channel
    processes: Callable[[], list[psutil.Process]]  # all that the program is and started
    kill: Callable[[], None]  # all of them, at once; may be called twice
    # Told whether it was stopped, waits until nothing is alive: (exit status, whether memory ran out).
    finish: Callable[[bool], tuple[int, bool]]


class HeadAndTail:
    """The head and the tail of a stream of any length, in bounded memory."""

    def __init__(self, limit: int):
        self.room = max(1, limit // 2)
        self.head, self.tail, self.total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        missing = self.room - len(self.head)
        self.head += data[:missing]
        self.tail += data[missing:]
        if len(self.tail) > 4 * self.room:  # trimmed now and then, so that a byte is copied about once
            del self.tail[: -self.room]

    def text(self) -> str:
        """UTF-8 as far as it is; a line says how much was left out."""
        tail = bytes(self.tail[-self.room :])
        left_out = self.total - len(self.head) - len(tail)
        note = f"\n[... {left_out:,} bytes left out ...]\n" if left_out else ""
        return self.head.decode(errors="replace") + note + tail.decode(errors="replace")


def children(pid: int) -> list[psutil.Process]:
    """All descendants of a process; none if it is gone."""
    with suppress(*GONE):
        return psutil.Process(pid).children(recursive=True)
    return []


def resident(processes: list[psutil.Process], limit: int) -> tuple[int, int]:
    """(resident bytes, number) of processes. Shared pages count once when it matters: past the limit."""
    memory = 0
    for process in processes:
        with suppress(*GONE):
            memory += process.memory_info().rss
    if memory > limit and len(processes) > 1:
        memory = 0
        for process in processes:
            with suppress(*GONE):
                try:
                    memory += process.memory_full_info().pss
                except (psutil.AccessDenied, AttributeError):
                    memory += process.memory_info().rss
    return memory, len(processes)


@contextmanager
def ending(popen: subprocess.Popen) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process ends; None where the system has no such thing."""
    try:
        fd = os.pidfd_open(popen.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)

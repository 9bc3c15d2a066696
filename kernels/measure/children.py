"""Child processes that do a piece of work each, and what becomes of them: told, silent, killed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kernels.evidence.child_process import ROOT, environment

WORKER = (sys.executable, "-m", "kernels.measure.worker")
PATIENCE = 240.0  # seconds without a word: a first compilation of a large kernel takes a good minute
GLANCE = 0.5  # seconds of a wait: a signal that another thread was given is seen only after it
LAST_WORDS = 12  # lines of standard error that are kept
KILLED = 1.0  # seconds in which a process that was killed is gone; one that hangs in the driver may never be
SPARES = 2 if (os.cpu_count() or 1) >= 4 else 1  # started ahead: to import takes longer than many a check

Event = dict[str, Any]


class Died(Exception):
    """A child that ended without having said that it was done; the message says how."""


class TooLate(Exception):
    """The time of the whole run is up; the child was stopped."""


class Child:
    """One process, started now, that waits for its request."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._said: deque[str] = deque(maxlen=LAST_WORDS)
        self._told: queue.Queue[str | None] = queue.Queue()
        # A session of its own: Ctrl-C is the parent's to handle.
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=ROOT,
            env=dict(env),
            start_new_session=True,
        )
        # Pipes and no files: a disk that is full must not keep a child from speaking.
        for target in (self._listen, self._overhear):
            threading.Thread(target=target, daemon=True).start()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._told.put(line)
        self._told.put(None)

    def _overhear(self) -> None:
        for line in self._process.stderr or ():
            if line.strip():
                self._said.append(line.strip())

    @property
    def alive(self) -> bool:
        """Whether it still waits or works."""
        return self._process.poll() is None

    def events(self, request: Mapping[str, Any], patience: float, until: float | None) -> Iterator[Event]:
        """What it tells of `request`, without the last "done".

        patience: seconds of silence that it may need. until: when all must be over, on
        time.monotonic. Raises Died or TooLate; the process has ended then, as it has after the last.
        """
        try:
            if until is not None and time.monotonic() >= until:
                raise TooLate
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):  # it is dead already: how, is said below
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
            yield from self._answers(patience, until)
        finally:
            self.close()

    def _answers(self, patience: float, until: float | None) -> Iterator[Event]:
        while True:
            line = self._line(patience, until)
            if line is None:
                raise Died(self._end())
            try:
                event = json.loads(line)
            except ValueError:
                continue  # a line that was cut off when it died; the end follows
            if event.get("is") == "done":
                return
            yield event

    def _line(self, patience: float, until: float | None) -> str | None:
        """The next line that it tells, None at its end. Raises Died or TooLate where none comes in time."""
        late = time.monotonic() + patience
        while True:
            now = time.monotonic()
            with contextlib.suppress(queue.Empty):
                return self._told.get(timeout=max(0.0, min(GLANCE, min(late, until or late) - now)))
            if until is not None and time.monotonic() >= until:
                raise TooLate
            if time.monotonic() >= late:
                raise Died(f"it said nothing for {patience:.0f} s, and was stopped")

    def _end(self) -> str:
        code = self._process.wait()
        last = f": {self._said[-1]}" if self._said else ""
        if code >= 0:
            return f"its process ended with code {code}{last}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = " (as the system does when memory runs out)" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{hint}{last}"

    def close(self) -> None:
        """End it if it still works."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                os.killpg(self._process.pid, signal.SIGKILL)  # with a compiler that it may have started
        with contextlib.suppress(subprocess.TimeoutExpired):  # the card's driver holds it: leave it behind
            self._process.wait(KILLED)
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


class Children:
    """Starts a child for each request, the next ones ahead: their imports run while this one measures.

    command: what is started. interpret: Triton's mode in there (see child_process.environment).
    patience: seconds that a child may say nothing. spares: how many are started ahead.
    """

    def __init__(
        self,
        command: Sequence[str] = WORKER,
        *,
        interpret: bool = False,
        patience: float = PATIENCE,
        spares: int = SPARES,
    ) -> None:
        self._command, self._env, self._patience = command, environment(interpret=interpret), patience
        self._spares: deque[Child] = deque()
        self._ahead = spares

    def ask(
        self, request: Mapping[str, Any], *, until: float | None = None, ahead: bool = True
    ) -> Iterator[Event]:
        """What a child of its own tells of `request`; see Child.events.

        ahead: others may start beside it. Without, it has the machine for itself: those that were started
        are ended, as they may still import, and Python's own time is what it measures.
        """
        child = self._next()
        if not ahead:
            self.close()
        while ahead and len(self._spares) < self._ahead:
            self._spares.append(self._start())
        return child.events(request, self._patience, until)

    def _next(self) -> Child:
        """The one that has had most time to import, if it lives."""
        while self._spares:
            if (child := self._spares.popleft()).alive:
                return child
            child.close()
        return self._start()

    def _start(self) -> Child:
        return Child(self._command, self._env)

    def close(self) -> None:
        """End those that were started ahead."""
        while self._spares:
            self._spares.popleft().close()


Ask = Callable[..., Iterator[Event]]

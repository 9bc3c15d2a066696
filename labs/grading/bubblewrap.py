"""The sandbox of choice: bubblewrap, which needs no privileges, no daemon and no image.

The program gets namespaces of its own (user, process, network, mount, IPC, host name): it sees no network
device but an unconnected loopback, no process but its own, and a file system made of read-only system
folders, the Python environment, its few files and a small tmpfs. It runs as nobody, without capabilities,
and can't make namespaces of its own.

A grader that is root gives that up for the program: bubblewrap, as root, lays out the file system (so that
a Python under /root can be read) and setpriv becomes a user that nobody else is. That matters most for the
number of processes. The kernel doesn't limit root's, and a watcher that must first be scheduled loses against
a fork bomb: there is deliberately no way here to run a program with a root grader's own user id.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO

import psutil

from labs.grading import sandbox_contents, syscalls, users
from labs.grading.running_program import GONE, RunningProgram, SandboxFailed, children

DEATH = 20  # s: how long the kernel may take to end a whole process namespace
SHARED_MEMORY = 16 * 2**20  # bytes of /dev/shm
OPEN_FILES = 256
# All but the user's, which --unshare-all would try for too: a root that is shut in can't change its user.
NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
# The first process of the sandbox: it collects orphans, and the rest dies with it. It stays the grader's
# user, or --die-with-parent could not kill it. bubblewrap's own would do as well, but is itself left as an
# orphan, a zombie where nobody collects those (as in many containers).
FIRST = '"$@"; exit $?'
SLACK = 2**30  # bytes of address space that is reserved but never touched


@dataclass(frozen=True)
class Bubblewrap:
    """bwrap: its path. options: those it knows. setpriv: its path if the grader is root and gives that up."""

    bwrap: str
    options: frozenset[str]
    prlimit: str
    setpriv: str | None = None
    seccomp: bool = True

    @property
    def name(self) -> str:
        user = "started by root, run as an unused user" if self.setpriv else "with a user namespace"
        return f"bubblewrap, {user}{'' if self.seccomp else ', without a system call filter'}"

    @contextmanager
    def start(self, argv, files, env, limits) -> Iterator[RunningProgram]:
        with ExitStack() as stack:
            user = stack.enter_context(users.unused()) if self.setpriv else None
            answer, answer_in = _pipe(stack)
            status, status_in = _pipe(stack)
            data = sandbox_contents.accounts(user or sandbox_contents.NOBODY)
            if self.seccomp:
                data["seccomp"] = syscalls.program()
            texts = {at: _filled(stack, text) for at, text in data.items()}
            given = [answer_in, status_in, *texts.values()]
            fds = {at: file.fileno() for at, file in texts.items()}
            command = self.command(argv, files, limits, status_in.fileno(), fds, user)
            popen = stack.enter_context(
                subprocess.Popen(
                    command,
                    env=sandbox_contents.environment(env, answer_in.fileno()),
                    cwd="/",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[file.fileno() for file in given],
                    start_new_session=True,  # Ctrl-C at the grader's terminal is the grader's to handle
                )
            )
            for file in given:  # ours are not needed any more, and would keep the pipes open
                file.close()
            init = _Init(status.fileno(), popen)
            stack.callback(init.close)
            job = RunningProgram(
                popen, popen.stdout.fileno(), answer.fileno(), init.processes, init.kill, init.finish
            )
            stack.callback(job.kill)
            yield job

    def command(self, argv, files, limits, status: int, fds: dict[str, int], user: int | None) -> list[str]:
        """The whole command line. user: whom root becomes; None when the grader isn't root."""
        made = [self.bwrap, *NAMESPACES, "--die-with-parent", "--new-session", "--hostname", "lab"]
        made += ["--as-pid-1", "--json-status-fd", str(status), "--cap-drop", "ALL"]
        become = []
        if user is None:
            made += [
                "--unshare-user",
                "--uid",
                str(sandbox_contents.NOBODY),
                "--gid",
                str(sandbox_contents.NOBODY),
            ]
            made += ["--disable-userns"] if "--disable-userns" in self.options else []
        else:
            made += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
            become = [self.setpriv, "--reuid", str(user), "--regid", str(user), "--clear-groups"]
            become += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
        made += ["--seccomp", str(fds["seccomp"])] if "seccomp" in fds else []
        made += ["--proc", "/proc", "--dev", "/dev", *self._tmpfs("/dev/shm", SHARED_MEMORY)]
        made += self._tmpfs(sandbox_contents.SCRATCH, limits.scratch_bytes)
        for folder in (sandbox_contents.HOME, sandbox_contents.WORK):
            made += [*self._perms("0777"), "--dir", folder]
        # After these, since the environment itself may lie under /tmp.
        made += _tree(sandbox_contents.mounts(files))
        for at in ("/etc/passwd", "/etc/group"):
            made += [*self._perms("0444"), "--ro-bind-data", str(fds[at]), at]
        # bubblewrap's own tmpfs under / and /dev have no size: open, they'd be a way round the memory limit.
        made += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", sandbox_contents.WORK, "--"]
        return [*made, "/bin/sh", "-c", FIRST, "sh", *become, *self._limits(limits, user), *argv]

    def _perms(self, mode: str) -> list[str]:
        """Bubblewrap has --perms since 0.5; only a root grader needs it, and candidates() sees to that."""
        return ["--perms", mode] if "--perms" in self.options else []

    def _tmpfs(self, at: str, size: int) -> list[str]:
        sized = ["--size", str(size)] if "--size" in self.options else []
        return [*self._perms("1777"), *sized, "--tmpfs", at]

    def _limits(self, limits, user: int | None) -> list[str]:
        """What the kernel enforces by itself; set inside, where the count of processes is our own."""
        wanted = {
            "cpu": f"{limits.cpu}:{limits.cpu + 1}",  # a signal that says why, then one that can't be ignored
            "core": 0,
            "data": limits.memory_bytes + SLACK,
            "fsize": limits.scratch_bytes,
            "nofile": OPEN_FILES,
            "memlock": 0,
            "msgqueue": 0,
        }
        # Threads count here too, so it is wider than what the watching loop allows. Since Linux 5.14 a user
        # namespace has a count of its own; before, all processes of the user counted, wherever they ran.
        wanted["nproc"] = 2 * limits.processes
        if user is None and users.kernel() < (5, 14):
            wanted["nproc"] += users.tasks(os.getuid())
        return [self.prlimit, *(f"--{name}={value}" for name, value in wanted.items()), "--"]


class _Init:
    """The first process of the sandbox: when it dies, the kernel ends all others before it counts as dead."""

    def __init__(self, status: int, popen: subprocess.Popen):
        self.status, self.popen, self.fd, self.pid = status, popen, None, None
        self.report = self._line(DEATH)
        with suppress(ValueError, KeyError):
            self.pid = json.loads(self.report)["child-pid"]
        with suppress(TypeError, OSError, AttributeError, *GONE):  # gone already, or Linux before 5.3
            fd = os.pidfd_open(self.pid)
            if psutil.Process(self.pid).ppid() == popen.pid:
                self.fd = fd
            else:  # the number went to somebody else meanwhile: not ours to kill
                os.close(fd)

    def _line(self, seconds: float) -> bytes:
        """One line of bubblewrap's status; empty when it ended before."""
        line = b""
        while not line.endswith(b"\n") and select.select([self.status], [], [], seconds)[0]:
            if not (byte := os.read(self.status, 1)):
                break
            line += byte
        return line

    def processes(self):
        return children(self.pid) if self.pid else []

    def kill(self) -> None:
        if self.fd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.fd, signal.SIGKILL)
        if self.popen.poll() is None and self.fd is None:  # still setting up: nothing of the program runs yet
            for process in children(self.popen.pid):
                with suppress(Exception):
                    process.kill()
            self.popen.kill()

    def finish(self, stopped: bool) -> tuple[int, bool]:
        """Waits until all is dead. The program's exit status; SandboxFailed if it never started."""
        self.kill()  # what the program left behind
        try:
            code = self.popen.wait(DEATH)
        except subprocess.TimeoutExpired:
            code = None
        if code is None or (self.fd is not None and not select.select([self.fd], [], [], DEATH)[0]):
            raise SandboxFailed(f"bubblewrap: process {self.pid} can't be ended; restart the machine.")
        if stopped:
            return code, False
        report = self._line(0) or self._line(0)
        # Written only when the program was really started.
        if b"exit-code" not in report:
            raise SandboxFailed(f"{self.popen.args[0]} ended with status {code}:")
        return json.loads(report)["exit-code"], False

    def close(self) -> None:
        with suppress(SandboxFailed):
            self.finish(True)
        if self.fd is not None:
            os.close(self.fd)


def candidates(image: str | None, reasons: list[str]) -> Iterator[Bubblewrap]:
    """The ways to use bubblewrap here, the strictest first; what is missing is added to reasons."""
    found = {name: shutil.which(name) for name in ("bwrap", "prlimit", "setpriv")}
    if not found["bwrap"] or not found["prlimit"]:
        missing = "bwrap" if not found["bwrap"] else "prlimit (package util-linux)"
        reasons.append(f"bubblewrap: {missing} is not on the PATH")
        return
    said = subprocess.run(
        [found["bwrap"], "--help"], capture_output=True, text=True, timeout=30, encoding="utf-8"
    )
    options = frozenset(re.findall(r"^\s+(--[a-z-]+)", said.stdout + said.stderr, re.MULTILINE))
    if "--json-status-fd" not in options:
        reasons.append("bubblewrap: this version is older than 0.4; install a newer one")
        return
    setpriv = None
    if os.geteuid() == 0:
        setpriv = found["setpriv"]
        if not setpriv or "--perms" not in options:
            reasons.append(
                "bubblewrap: a grader that is root needs setpriv (package util-linux) and bubblewrap 0.5"
            )
            return
    for seccomp in (True, False) if syscalls.known() else (False,):
        yield Bubblewrap(found["bwrap"], options, found["prlimit"], setpriv, seccomp)


def _tree(mounts: list[tuple[str, str, str]]) -> list[str]:
    made = []
    # Spelled out, since bubblewrap makes the folders on the way readable to their owner only.
    links = {at for kind, _, at in mounts if kind == "link"}
    for folder in sandbox_contents.parents([at for _, _, at in mounts]):
        if folder not in links:
            made += ["--dir", folder]
    for kind, source, at in mounts:
        if kind == "link":
            made += ["--symlink", source, at]
        elif kind == "bind":
            made += ["--ro-bind", source, at]
        else:
            made += ["--tmpfs", at]
    return made


def _pipe(stack: ExitStack) -> tuple[FileIO, FileIO]:
    """(read end, write end), closed with the stack at the latest."""
    read, write = os.pipe()
    return stack.enter_context(FileIO(read, "rb")), stack.enter_context(FileIO(write, "wb"))


def _filled(stack: ExitStack, data: bytes) -> FileIO:
    """The read end of a pipe that holds data (well below a pipe's 64 KiB)."""
    read, write = _pipe(stack)
    write.write(data)
    write.close()
    return read

"""Starts the programs that check a notebook's kernels: each in a fresh process, and without a wait.

Importing torch takes more than a second, and one check runs two or three programs. So a process that
has imported torch waits beside the notebook, and forks a child for each program: what one of them does
is gone for the next. Triton is imported by the child, since its mode is another in each.

    waiting = Waiting(env)
    code, answer, errors = waiting.run(["labs.kit.run_kernels", "--compile"], question, env, seconds=120)
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence

SIZE = 8  # bytes that a number takes on the socket
GIVEN = 3  # files: standard input, the answer, standard error
SLOW = ("numpy", "torch")  # modules that take long to import, and that every program needs


class Waiting:
    """The process that waits, as the notebook sees it. It ends with the notebook.

    env: what it is started with; PYTHONPATH decides what its programs can import. modules: imported first.
    """

    def __init__(self, env: Mapping[str, str], modules: Sequence[str] = SLOW) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "labs.kit.forked_programs", str(theirs.fileno()), *modules],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # so that it and all that it forked can be ended as one
            )

    @property
    def alive(self) -> bool:
        """Can it be asked?"""
        return self._process.poll() is None

    def run(
        self, program: Sequence[str], question: bytes, env: Mapping[str, str], seconds: float
    ) -> tuple[int | None, bytes, str]:
        """(exit code, what was written to the answer channel, standard error) of one program.

        program: a module's name and arguments. The code is None if it ran longer than `seconds`, and that
        of the waiting process if that died. After both, and after any exception, nothing of it is left.
        """
        with (
            tempfile.TemporaryFile() as asked,
            tempfile.TemporaryFile() as answer,
            tempfile.TemporaryFile() as errors,
        ):
            asked.write(question)
            asked.seek(0)
            message = json.dumps({"program": list(program), "env": dict(env), "folder": os.getcwd()}).encode()
            try:
                self._socket.settimeout(seconds)
                files = [file.fileno() for file in (asked, answer, errors)]
                socket.send_fds(self._socket, [len(message).to_bytes(SIZE, "big")], files)
                self._socket.sendall(message)
                code = int.from_bytes(_exactly(self._socket, SIZE), "big", signed=True)
            except TimeoutError:
                self.close()
                code = None
            except (EOFError, OSError):
                self.close()
                code = self._process.returncode
            except BaseException:
                self.close()
                raise
            answer.seek(0)
            errors.seek(0)
            return code, answer.read(), errors.read().decode("utf-8", "replace")

    def close(self) -> None:
        """End it, with what it forked."""
        self._socket.close()
        if self._process.poll() is None:  # not waited for yet, so the number is still its own
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def main(descriptor: int, modules: Sequence[str]) -> None:
    """Fork a child for each program that is asked for on this socket, until its other end is closed."""
    for name in modules:
        with contextlib.suppress(ImportError):  # the program that needs it says so
            importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=descriptor) as notebook:
        while True:
            head, files, _, _ = socket.recv_fds(notebook, SIZE, GIVEN)
            if not head:
                return
            head += _exactly(notebook, SIZE - len(head))
            asked = json.loads(_exactly(notebook, int.from_bytes(head, "big")))
            child = os.fork()
            if not child:
                notebook.close()
                _child(asked, files)
            for file in files:
                os.close(file)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            notebook.sendall(code.to_bytes(SIZE, "big", signed=True))


def _child(asked: Mapping, files: Sequence[int]) -> None:
    """Be the program, to the end of this process."""
    code = 1
    try:
        os.dup2(files[0], 0)
        os.dup2(files[2], 2)
        os.environ.clear()
        os.environ.update(asked["env"], ROOFLINE_ANSWER_FD=str(files[1]))
        os.chdir(asked["folder"])
        sys.argv[1:] = asked["program"][1:]
        runpy.run_module(asked["program"][0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - told as an interpreter tells it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

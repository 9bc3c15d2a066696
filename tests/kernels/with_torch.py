"""`python -c`, forked from a process that has imported torch and nothing else: a second less for each.

Triton, `kernels` and all else are imported by the code itself, in its own environment, as in any process.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What `python -c code` ends with and prints, in this environment and at the root."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        asked = {"code": code, "environment": environment, "out": str(out), "err": str(err)}
        server = _server()
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        ended = int(server.stdout.readline())
        said = [path.read_text(encoding="utf-8") for path in (out, err)]
        return subprocess.CompletedProcess([sys.executable, "-c", code], ended, *said)


@functools.cache
def _server() -> Any:
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.kernels.with_torch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    atexit.register(lambda: (server.stdin.close(), server.wait(60), server.stdout.close()))
    return server


def main() -> None:
    """Answer each line of standard input, an order of `python`, with the exit code."""
    import torch  # noqa: F401 - what all of them need

    assert not [name for name in sys.modules if name.split(".")[0] in ("triton", "kernels", "book")]
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(asked: dict[str, Any]) -> None:
    """In the fork: run the code with standard output and error in files, and end."""
    writing = os.O_WRONLY | os.O_CREAT
    for number, place, how in (
        (0, os.devnull, os.O_RDONLY),
        (1, asked["out"], writing),
        (2, asked["err"], writing),
    ):
        os.dup2(os.open(place, how), number)
    os.environ.clear()
    os.environ.update(asked["environment"])
    ended: Any = 1
    try:
        exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})
        ended = 0
    except SystemExit as error:
        ended = error.code or 0
        if isinstance(ended, str):  # as Python itself does
            print(ended, file=sys.stderr)
            ended = 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended)


if __name__ == "__main__":
    main()

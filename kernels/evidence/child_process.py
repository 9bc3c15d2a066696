"""Work in the other Triton mode, in a process of its own.

Triton decides when it is first imported whether kernels are interpreted or compiled, and one
process cannot do both. So a list of requests goes, as JSON, into a child that was started in the
mode they need, and a list of answers comes back. One child answers the whole list, since starting
it (importing torch and Triton) costs more than most answers.

    answers = child.run([{"task": "compile", ...}], interpret=False)
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import inspect
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from book.say import LANGUAGE
from kernels.contract import errors, processes
from kernels.contract.processes import ROOT
from kernels.contract.versions import installed
from kernels.evidence.addresses import find

# task name -> "module:function"; the function takes the request and returns what JSON can hold
TASKS = {
    "compile": "kernels.evidence.compiled.machine_code:compile_requests",
    "execute": "kernels.evidence.executed.execution:execute_request",
    "count": "kernels.evidence.counted.counted_rows:count_request",
}
# Whose function takes all requests at once, and returns an answer or the exception for each.
TOGETHER = ("compile",)


class Child:
    """A process that answers a list of requests while this one goes on.

    interpret: True for Triton's interpreter, False for compiled kernels.
    """

    def __init__(self, requests: Sequence[dict[str, Any]], *, interpret: bool) -> None:
        self._task = requests[0].get("task")
        self._folder = tempfile.TemporaryDirectory()
        passing = Path(self._folder.name)
        self._answers, self._said = passing / "answers.json", passing / "said.txt"
        asked = passing / "requests.json"
        asked.write_text(json.dumps(list(requests)), encoding="utf-8")
        here = environment(interpret=interpret)
        here.setdefault("OMP_NUM_THREADS", "1")  # it works on small arrays, and others work beside it
        if not _writable(here.get("TRITON_CACHE_DIR")):
            here["TRITON_CACHE_DIR"] = str(passing)  # Triton compiles into files: it needs a place for them
        # Files and no pipes: nobody has to read them for the child to go on.
        with (
            asked.open(encoding="utf-8") as source,
            self._answers.open("w", encoding="utf-8") as answers,
            self._said.open("w", encoding="utf-8") as said,
        ):
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kernels.evidence.child_process"],
                stdin=source,
                stdout=answers,
                stderr=said,
                cwd=ROOT,
                env=here,
            )

    def answers(self, timeout: float = 900) -> list[dict[str, Any]]:
        """What it answered, as `main` writes it, once it has ended; RuntimeError if it broke down."""
        code = self._process.wait(timeout)
        if code:
            tail = "\n".join(self._said.read_text(encoding="utf-8").strip().splitlines()[-15:])
            raise RuntimeError(f"The child process for {self._task!r} ended with code {code}:\n{tail}")
        return json.loads(self._answers.read_text(encoding="utf-8"))

    def close(self) -> None:
        """End it if it still works, and remove its files."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def run(requests: Sequence[dict[str, Any]], *, interpret: bool, timeout: float = 900) -> list[Any]:
    """Answer `requests` in one child process and return the answers, in order.

    interpret: True for Triton's interpreter, False for compiled kernels. timeout: seconds.
    An exception inside the child is raised here again, with its own sentence.
    """
    if not requests:
        return []
    with contextlib.closing(Child(requests, interpret=interpret)) as child:
        return [_unwrap(answer) for answer in child.answers(timeout)]


def environment(*, interpret: bool) -> dict[str, str]:
    """The child's environment, see `kernels.contract.processes`, with this book's cache for Triton."""
    here = processes.environment(interpret=interpret)
    folder = cache_dir()
    if folder is not None:
        here.setdefault("TRITON_CACHE_DIR", str(folder / "triton"))
    return here


def _writable(folder: str | None) -> bool:
    """Whether files can be made there; the folder itself is made if it can be."""
    if folder is None:
        return False
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _unwrap(answer: dict[str, Any]) -> Any:
    if "error" not in answer:
        return answer["value"]
    kind = getattr(errors, answer["error"], None) or {"ValueError": ValueError}.get(answer["error"])
    raise (kind or RuntimeError)(answer["message"])


# ------------------------------------------------------------------ answers kept between runs


def cache_dir() -> Path | None:
    """The folder for answers that never change, or None where nothing can be written.

    $INFERENCE_ROOFLINE_CACHE, else inference-roofline under the user's cache folder.
    """
    chosen = os.environ.get("INFERENCE_ROOFLINE_CACHE")
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = Path(chosen) if chosen else base / "inference-roofline"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def key(request: dict[str, Any], decided: str, *, interpret: bool) -> str:
    """What the answer to a request is kept under. decided: see `decided_by`."""
    text = json.dumps([request, interpret, decided], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def decided_by(task: str, experiment: str) -> str:
    """A hash of all that decides the answers to a task about this experiment (its address).

    That is the code of both with everything that they use, and the versions of Triton, torch and NumPy,
    which does the arithmetic of what is executed. Another kernel, or the code that measures, is none of
    its business.
    """
    modules = [where.partition(":")[0] for where in (TASKS[task], experiment)]
    sources = [inspect.getsource(importlib.import_module(module)) for module in modules]
    try:
        from book.portable.dependencies import fingerprint  # late: it stays at home, see `bundle.AT_HOME`
    except ImportError:
        # We travelled in a notebook. This folder was made for that, and has its version for a name.
        text = [ROOT.name, *_versions(), *sources]
        return hashlib.sha256("\0".join(text).encode()).hexdigest()
    return fingerprint(sources, ROOT, *_versions(), *sources)


@functools.cache
def _versions() -> tuple[str, ...]:
    found = [
        f"{package} {known}" if (known := installed(package)) else f"no {package}"
        for package in ("triton", "torch", "numpy")
    ]
    return (*found, *filter(None, [LANGUAGE]))  # an answer may be a sentence


# A request that a child of `ahead` is at -> that child and the answer's place in its list.
_begun: dict[str, tuple[Child, int]] = {}


@contextlib.contextmanager
def ahead(*lists: Sequence[dict[str, Any]], interpret: bool) -> Iterator[None]:
    """Inside, a child process for each list of requests is at them while this process goes on.

    `cached` waits for the answer where it comes to such a request. What is on disk already is not asked
    for again. A child that still works at the end, because something else failed, is ended.
    """
    with contextlib.ExitStack() as stack:
        begun = []
        stack.callback(lambda: [_begun.pop(name, None) for name in begun])
        places = _places([one for some in lists for one in some], interpret=interpret)
        for some in lists:
            paths, places = places[: len(some)], places[len(some) :]
            missing = [one for one, path in zip(some, paths, strict=True) if _read(path) is None]
            if missing:
                child = stack.enter_context(contextlib.closing(Child(missing, interpret=interpret)))
                begun += [_name(one, interpret=interpret) for one in missing]
                _begun.update((_name(one, interpret=interpret), (child, i)) for i, one in enumerate(missing))
        yield


def cached(requests: Sequence[dict[str, Any]], *, interpret: bool) -> list[Any]:
    """`run`, but answers that are on disk already are read from there, and those of `ahead` waited for."""
    paths = _places(requests, interpret=interpret)
    answers = [_read(path) for path in paths]
    missing = [i for i, answer in enumerate(answers) if answer is None]
    begun = {i: found for i in missing if (found := _begun.get(_name(requests[i], interpret=interpret)))}
    for i, (child, place) in begun.items():
        answers[i] = _unwrap(child.answers()[place])
    rest = [i for i in missing if i not in begun]
    for i, value in zip(rest, run([requests[i] for i in rest], interpret=interpret), strict=True):
        answers[i] = value
    for i in missing:
        if path := paths[i]:
            write_atomically(path, json.dumps(answers[i]))
    return answers


def _name(request: dict[str, Any], *, interpret: bool) -> str:
    return json.dumps([request, interpret], sort_keys=True)


# Deciding reads code, and Python 3.11 counts the depth of what ast.parse builds for all threads together.
_deciding = threading.Lock()


def _places(requests: Sequence[dict[str, Any]], *, interpret: bool) -> list[Path | None]:
    """Where the answer to each request is kept; None where nothing can be."""
    folder = cache_dir()
    if folder is None:
        return [None] * len(requests)
    decided = functools.cache(decided_by)  # now and not for good: somebody may be editing a kernel
    with _deciding:
        return [
            folder
            / one["task"]
            / f"{key(one, decided(one['task'], one['experiment']), interpret=interpret)}.json"
            for one in requests
        ]


def _read(path: Path | None) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError):
        return None


def write_atomically(path: Path, text: str) -> None:
    """Write a temporary file beside `path`, then rename it: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def answer_all(requests: Sequence[dict[str, Any]]) -> list[Any]:
    """The answer to each request, or the exception that the parent raises again."""
    found: list[Any] = []
    for task, some in itertools.groupby(requests, key=lambda request: request["task"]):
        ask = find(TASKS[task])
        if task in TOGETHER:
            found += ask(list(some))
        else:
            found += [_attempt(ask, request) for request in some]
    return found


def _attempt(ask: Callable[[dict[str, Any]], Any], request: dict[str, Any]) -> Any:
    try:
        return ask(request)
    except Exception as error:  # noqa: BLE001 - told to the parent
        return error


def main() -> None:
    """Read requests from standard input, answer them, write the answers to standard output."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a compiler prints goes to standard error, not between the answers
    told = [
        {"error": type(answer).__name__, "message": str(answer)}
        if isinstance(answer, Exception)
        else {"value": answer}
        for answer in answer_all(json.load(sys.stdin))
    ]
    json.dump(told, out)
    out.flush()
    gc.freeze()  # all of it ends with the process: it need not be looked through once more


if __name__ == "__main__":
    main()

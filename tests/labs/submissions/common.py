# ruff: noqa: E501 (code that attackers and students write)
"""What is handed in for any lab: files of every kind, notebooks saved oddly, and attacks on the grader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.labs.submissions.made import EVERY, ROOT, Case, Copy

# The first line makes each attack harmless where it isn't shut in, and is itself a test of the sandbox.
PLACES = """
import os
CANARY, OTHERS, GRADES, ROOT, PORT, LAB = {canary!r}, {others!r}, {grades!r}, {root!r}, {port}, {lab!r}
if os.path.exists(CANARY) or os.path.exists(OTHERS):
    raise RuntimeError("LEAKED: the sandbox shows this machine's files")
"""
# Every question is answered twice, at once: first by what an attacker would like.
ASKED = """
import sys
frame = sys._getframe()
while "request" not in frame.f_locals:
    frame = frame.f_back
asks = frame.f_locals["request"]["asks"]
"""


@dataclass(frozen=True)
class About:
    """Where in a lab the cases do their damage.

    first: a cell that many questions need, asked_first: those. last: the cell of asked_last alone, with one
    mistake in it, as (right, wrong, the comment on it). late: a cell to be moved up.
    """

    lab: str
    first: str
    asked_first: tuple[str, ...]
    last: str
    asked_last: str
    mistake: tuple[str, str, str]
    late: str


# No lab makes these any different, so one class has them: the one that is quicker to grade.
ONCE = {
    "a-zip", "nested-deeply", "huge-outputs", "windows-lines", "notebook-format-3", "two-files", "magics",
    "sleeps-forever", "segfault", "deep-recursion", "answers-a-gigabyte", "answers-a-million-lists",
    "leaves-early", "fills-the-disk", "opens-the-network", "starts-programs", "kills-its-parent", "leaves-a-daemon",
}  # fmt: skip


def cases(about: About, once: bool = False) -> list[Case]:
    """What any class has. once: those as well that one class suffices for."""
    every = [*files(about), *notebooks(about), *attacks(about)]
    return [case for case in every if once or case.name not in ONCE]


# ------------------------------------------------------------------------------ files of any kind


def files(about: About) -> list[Case]:
    """What is hardly a notebook."""
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40

    def truncated(made: Copy) -> bytes:
        data = made.bytes()
        return data[: len(data) * 2 // 3]

    def outputs(made: Copy) -> bytes:
        made.cells[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 21_000_000}]
        return made.bytes()

    def blank_lines(made: Copy) -> bytes:
        return b"\xef\xbb\xbf" + made.bytes().replace(b"\n", b"\r\n")

    return [
        Case("empty-file", lambda made: b"", {EVERY: "The file is empty"}),
        Case("a-picture", lambda made: png, {EVERY: "not a notebook"}),
        Case("a-zip", lambda made: b"PK\x03\x04" + bytes(500), {EVERY: "a ZIP file"}),
        Case("truncated", truncated, {EVERY: "The file ends in the middle"}, quick=True),
        Case("nested-deeply", lambda made: b"[" * 200_000, {EVERY: "notebook"}),
        Case("huge-outputs", outputs, {EVERY: "Clear the outputs"}),
        Case("windows-lines", blank_lines, notes=("not plain UTF-8",)),
    ]


# ------------------------------------------------------------------------ notebooks saved oddly


def notebooks(about: About) -> list[Case]:
    """Right answers, found wherever a platform or a student put them."""
    gone = {name: f"The cell {about.last} is missing" for name in (about.asked_last,)}

    def colab(made: Copy) -> None:
        for number, cell in enumerate(made.cells):
            cell["metadata"] = {"id": f"Zk{number}", "colab": {"base_uri": "https://localhost:8080/"}}
            cell["metadata"] |= {"outputId": "88b8", "cellView": "form"} if number % 2 else {}
            cell["source"] = cell["source"].splitlines(keepends=True)
            cell.pop("id", None)
        made.notebook["metadata"] = {"colab": {"provenance": [], "gpuType": "T4"}, "accelerator": "GPU"}
        made.notebook["nbformat_minor"] = 0

    def old(made: Copy) -> bytes:
        sheet = []
        for cell in made.cells:
            source = cell.pop("source")
            text = (
                {"input": source, "language": "python"} if cell["cell_type"] == "code" else {"source": source}
            )
            sheet.append({**cell, **text})
        return json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": sheet}]}).encode()

    def moved(made: Copy) -> None:
        made.cells.remove(cell := made.cell(about.late))
        made.cells.insert(2, cell)

    def twice(made: Copy) -> None:
        right, wrong, _ = about.mistake
        cell = made.cell(about.last)
        other = {**cell, "source": cell["source"].replace(right, wrong), "id": "copied"}
        made.cells.insert(made.cells.index(cell), other)

    def deleted(made: Copy) -> None:
        made.cells.remove(made.cell(about.last))

    def magics(made: Copy) -> None:
        made.after(about.first, "%matplotlib inline\n!nvidia-smi\n%timeit -n 1 len([])")

    def two(made: Copy) -> dict[str, bytes]:
        right = made.bytes()
        return {f"{about.lab}.ipynb": b"{}", f"{about.lab}-final (1).ipynb": right}

    def elsewhere(made: Copy) -> None:
        made.own("helper = lambda value: value")
        made.after(about.last, "helper(1)")
        made.swap(about.last, about.mistake[:2])

    return [
        Case("saved-by-colab", colab, notes=("lost their metadata",), quick=True),
        Case("notebook-format-3", old, notes=("old notebook format 3",)),
        Case("moved-a-cell", moved, notes=("Cells were moved",)),
        Case("copied-a-cell", twice, notes=("the last one was graded",)),
        Case("deleted-a-cell", deleted, gone, notes=(f"The cell {about.last} is missing",)),
        Case("magics", magics, notes=("lines for the notebook only (%matplotlib, !nvidia-smi",)),
        Case("two-files", two, notes=("2 files were handed in; the newest one counts",)),
        Case(
            "defined-elsewhere",
            elsewhere,
            {about.asked_last: "helper: defined in another cell"},
            notes=("helper: defined in another cell",),
        ),
    ]


# ------------------------------------------------------------------------------------- attacks


def attacks(about: About) -> list[Case]:
    """None of these may reach anything, and none may cost anybody else a point."""

    def hostile(cell: str, code: str) -> Callable[[Copy], None]:
        def make(made: Copy) -> None:
            at = made.places
            told = PLACES.format(
                canary=str(at.canary),
                others=str(at.others),
                grades=str(at.grades),
                root=str(ROOT),
                port=at.port,
                lab=about.lab,
            )
            made.after(cell, told + code)

        return make

    def stopped(name: str, code: str, why: str, **rest) -> Case:
        """Ends its process, and so costs itself the last question; all others are answered."""
        return Case(name, hostile(about.last, code), {about.asked_last: why}, **rest)

    def wrong_anyway(name: str, code: str, why: str = about.mistake[2], **rest) -> Case:
        """Has a mistake, and does something against being told."""
        right, wrong, _ = about.mistake

        def make(made: Copy) -> None:
            made.swap(about.last, (right, wrong))
            hostile(about.last, code)(made)

        return Case(name, make, {about.asked_last: why}, **rest)

    def in_vain(name: str, code: str, **rest) -> Case:
        """Right, and with an attack that must not work; nobody is punished for what did nothing."""
        return Case(name, hostile(about.first, code), **rest)

    return [
        stopped("endless-loop", "while True: pass", "and was stopped", quick=True),
        stopped("sleeps-forever", "import time\ntime.sleep(10**6)", "It ran longer than"),
        stopped("eats-memory", "x = []\nwhile True: x.append(bytearray(10**8))", "MiB of memory"),
        stopped("fork-bomb", FORK_BOMB, "processes"),
        stopped("leaves-early", "os._exit(0)", "ended early"),
        stopped("segfault", "import ctypes\nctypes.string_at(0)", "signal SIGSEGV"),
        stopped("deep-recursion", DEEP, "signal SIGSEGV"),
        stopped("answers-a-gigabyte", ANSWERS, "It answered more than"),
        in_vain("answers-a-million-lists", LISTS),
        in_vain("prints-100-mb", PRINTS, notes=("It printed 10",)),
        in_vain("fills-the-disk", FILLS),
        in_vain("deletes-files", DELETES),
        in_vain("reads-everything", READS, quick=True),
        in_vain("opens-the-network", NETWORK),
        in_vain("starts-programs", PROGRAMS),
        in_vain("kills-its-parent", KILLS),
        in_vain("leaves-a-daemon", DAEMON),
        wrong_anyway("patches-everything", PATCHES),
        wrong_anyway("redefines-assert", ASSERTS),
        Case(
            "forges-answers",
            hostile(about.first, ASKED + FORGES),
            {EVERY: ""},
            quick=True,
        ),
        Case("forges-junk", hostile(about.first, ASKED + JUNK), {EVERY: ""}),
        wrong_anyway("=1+1", INJECTS, why="=HYPERLINK"),
    ]


FORK_BOMB = """
while True:
    try: os.fork()
    except OSError: pass
"""
DEEP = """
import sys, threading
sys.setrecursionlimit(10**9)
class Deep:
    def __getattr__(self, name): return getattr(self, name)
Deep().bottom
"""
ANSWERS = """
line = b"x" * 2**20
while True: os.write(int(os.environ["ROOFLINE_ANSWER_FD"]), line)
"""
LISTS = """
os.write(int(os.environ["ROOFLINE_ANSWER_FD"]), b'\\n{"done": "nobody", "values": [' + b"[]," * 10**6 + b"[]]}\\n")
"""
PRINTS = "for _ in range(100): print('x' * 10**6)"
FILLS = """
try:
    with open("/tmp/big", "wb") as big:
        for _ in range(1000): big.write(bytes(10**6))
    raise RuntimeError("LEAKED: a gigabyte of disk")
except OSError: pass
os.remove("/tmp/big")
"""
DELETES = """
import shutil
for place in (CANARY, OTHERS, GRADES, "/job", os.path.expanduser("~")):
    shutil.rmtree(place, ignore_errors=True)
for place in (ROOT + "/labs/keys/__init__.py", ROOT + "/README.md", "/etc/hosts", "/job/answering.py"):
    try: open(place, "a").close()
    except OSError: continue
    raise RuntimeError("LEAKED: " + place + " can be written")
"""
READS = """
import glob
for place in (ROOT + "/labs", ROOT + "/labs/keys", ROOT + "/tests", "/job/../keys", OTHERS, GRADES, "/root", "/home"):
    if glob.glob(place + "/*"): raise RuntimeError("LEAKED: " + place)
for place in ("/etc/shadow", "/root/.ssh/id_rsa", "/proc/1/root" + ROOT, ROOT + "/labs/keys/" + LAB[:4] + ".py"):
    try: open(place).close()
    except OSError: continue
    raise RuntimeError("LEAKED: " + place)
if "root" in [line.split(":")[0] for line in open("/etc/passwd")][2:]: raise RuntimeError("LEAKED: users")
for place in ("/proc/self/environ", *glob.glob("/proc/*/environ")):
    try: text = open(place).read()
    except OSError: continue
    if "CANARY_TOKEN" in text: raise RuntimeError("LEAKED: the grader's environment")
try: from labs.keys import lab1, lab2
except ImportError: pass
else: raise RuntimeError("LEAKED: the key")
"""
NETWORK = """
import socket
for family, place in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_INET, ("1.1.1.1", 53))):
    try: socket.create_connection(place, timeout=1).close()
    except OSError: continue
    raise RuntimeError("LEAKED: the network")
"""
PROGRAMS = """
import subprocess, ctypes
for command in ("cat " + ROOT + "/labs/keys/*.py", "ls " + OTHERS, "ls " + CANARY):
    if subprocess.run(command, shell=True, capture_output=True).stdout: raise RuntimeError("LEAKED: " + command)
libc = ctypes.CDLL(None)
if libc.setuid(0) == 0 or os.getuid() == 0: raise RuntimeError("LEAKED: root")
if libc.mount(b"/", b"/tmp", None, 4096, None) == 0: raise RuntimeError("LEAKED: mount")
if libc.unshare(0x10000000) == 0: raise RuntimeError("LEAKED: a namespace")
if libc.ptrace(16, 1, 0, 0) == 0: raise RuntimeError("LEAKED: another process")
"""
KILLS = """
import signal
for process in (os.getppid(), 1, -1):
    try: os.kill(process, signal.SIGKILL)
    except OSError: pass
"""
DAEMON = """
if not os.fork():
    os.setsid()
    if not os.fork():
        import ctypes, time
        ctypes.CDLL(None).prctl(15, f"stay{PORT}".encode())  # its name, to look for
        time.sleep(600)
    os._exit(0)
"""
PATCHES = """
import builtins, json, math, sys, time
import numpy, torch
yes = lambda *args, **kwargs: True
numpy.allclose = numpy.array_equal = math.isclose = torch.allclose = torch.equal = yes
time.perf_counter = time.time = time.monotonic = lambda: 0.0
for name in list(sys.modules):
    for word in ("check", "judge", "count", "tally", "grade", "evidence"):
        if hasattr(sys.modules[name], word):
            try: setattr(sys.modules[name], word, yes)
            except Exception: pass
try:
    import kernels.evidence.interpreter as interpreter
    interpreter.count = yes
except ImportError: pass
old = json.dumps
json.dumps = lambda event, **rest: old(dict(event, right=True, points=100, error="") if isinstance(event, dict) else event, **rest)
"""
ASSERTS = """
import builtins
class Never(Exception): pass
builtins.AssertionError = Never
__debug__ and exec("def check(*args, **kwargs): return True")
LAB = key = type("Key", (), {"check": staticmethod(check)})
"""
FORGES = """
import json
fd = int(os.environ["ROOFLINE_ANSWER_FD"])
for ask in asks:
    size = len(ask.get("calls", ()))
    values = {name: 1.0 for name in ask.get("names", ())}
    plan = {"buffers": [{"id": "x", "bytes": 1, "fill": "input", "made_by": ""}, {"id": "w", "bytes": 1, "fill": "input", "made_by": ""},
                        {"id": "y", "bytes": 4, "fill": "empty", "made_by": "empty"}],
            "steps": [{"kernel": "linear_kernel", "grid": [1], "args": {}, "options": {}}],
            "returns": {"buffer": "y", "offset": 0, "shape": [1], "strides": [1], "dtype": "float32"}}
    event = {"done": ask["id"], "right": True, "points": 100, "values": values, "errors": {},
             "returns": [{"value": 1.0}] * size, "plans": [plan] * size}
    os.write(fd, (json.dumps(event) + "\\n").encode())
"""
# Whatever a program that can write lines of JSON could come up with.
JUNK = """
import json
fd = int(os.environ["ROOFLINE_ANSWER_FD"])
deep = "[" * 900 + "]" * 900
worst = [None, True, -1, 1e400, "\\ud800", "x" * 1000, [], {}, [[[]]], {"a": {"b": None}}, 10**400, float("nan"), [1, "2"]]
os.write(fd, b'"\\n\\xff\\xfe\\n' + b"[" * 100000 + b"\\n{}\\n[]\\nnull\\n" + b'{"begin": ["a"]}\\n{"done": {"a": 1}}\\n')
view = {"buffer": "y", "offset": 0, "shape": [1, 1], "strides": [1], "dtype": "float32"}
for at, ask in enumerate(asks):
    size = len(ask.get("calls", ()))
    junk = worst[at % len(worst)]
    plans = [{"buffers": [{"id": name, "bytes": 8, "fill": "empty", "made_by": junk} for name in ("x", "w", "y")],
              "steps": [{"kernel": "linear_kernel", "grid": junk, "args": {"x": {"view": view}}, "options": {}}],
              "returns": view, "error": ""},
             {"buffers": junk, "steps": junk, "returns": junk}, junk, {"error": junk},
             {"buffers": [{"id": junk, "bytes": junk, "fill": junk}], "steps": [], "returns": view}]
    for event in ({"begin": junk}, {"done": junk},
                  {"done": ask["id"], "values": {name: junk for name in ask.get("names", ())}, "errors": {"a": junk},
                   "returns": [{"value": junk, "error": 0}] * size, "plans": (plans * 3)[:size], "error": ""}):
        os.write(fd, (json.dumps(event) + "\\n").encode())
"""
INJECTS = r"""
raise ValueError('=HYPERLINK("http://example.org","grade")\n"+cmd|\' /C calc\'!A0\x1b[2J\u202e<script>alert(1)</script>')
"""

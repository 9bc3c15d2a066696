"""Programs that are forked from a process that waits: fresh each time, and nothing of them stays."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from kernels.contract.processes import ROOT
from labs.kit.forked_programs import Waiting

PROGRAM = """
import os, signal, subprocess, sys, time
import kept
question = sys.stdin.read()
kept.list.append(question)
print("a line for nobody")
if question == "fail":
    raise ValueError("it failed")
if question == "exit":
    sys.exit(3)
if question == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
if question == "hang":
    subprocess.Popen(["sleep", "1000.25"])
    time.sleep(1000)
if question == "end the one that waits":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)
told = [kept.list, os.environ["MODE"], os.getcwd(), sys.argv[1:]]
os.write(int(os.environ["ROOFLINE_ANSWER_FD"]), repr(told).encode())
"""


@pytest.fixture
def waiting(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "kept.py").write_text("list = []", encoding="utf-8")
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    waiting = Waiting({**os.environ, "PYTHONPATH": path}, modules=("kept", "no_such_module"))
    yield waiting
    waiting.close()


def run(waiting, question, seconds=20, mode="1", words=()):
    env = {**os.environ, "MODE": mode}
    return waiting.run(["program", *words], question.encode(), env, seconds)


def below(waiting):
    return psutil.Process(waiting._process.pid).children(recursive=True)


def test_each_has_its_own_question_words_and_variables_and_nothing_of_the_last(
    waiting, tmp_path, monkeypatch
):
    here = os.getcwd()
    assert run(waiting, "one", words=["--a"]) == (0, repr([["one"], "1", here, ["--a"]]).encode(), "")
    monkeypatch.chdir(tmp_path)
    assert run(waiting, "two", mode="0") == (0, repr([["two"], "0", str(tmp_path), []]).encode(), "")
    assert below(waiting) == []


def test_how_one_ends_is_told_and_the_next_runs(waiting):
    code, answer, errors = run(waiting, "fail")
    assert (code, answer, errors.splitlines()[-1]) == (1, b"", "ValueError: it failed")
    assert run(waiting, "exit") == (3, b"", "")
    assert run(waiting, "signal")[0] == -11
    code, _, errors = waiting.run(["no_such_program"], b"", os.environ, 20)
    assert code == 1 and "no_such_program" in errors
    assert run(waiting, "one")[0] == 0 and waiting.alive


def test_one_that_hangs_is_ended_with_all_that_it_started(waiting):
    assert run(waiting, "hang", seconds=1) == (None, b"", "")
    assert not waiting.alive
    left = [p.pid for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "1000.25"]]
    assert [pid for pid in left if not ended_within(pid)] == []


def test_one_that_ends_the_process_that_waits_is_told_as_that_ended(waiting):
    assert run(waiting, "end the one that waits") == (-9, b"", "")
    assert not waiting.alive


def test_it_ends_with_the_notebook():
    code = (
        "import os; from labs.kit.forked_programs import Waiting\n"
        "print(Waiting(os.environ, ())._process.pid, flush=True); os._exit(0)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    pid = int(subprocess.check_output([sys.executable, "-c", code], env=env, cwd=ROOT))
    assert ended_within(pid)


def ended_within(pid, seconds=20):
    """A signal is sent before it arrives: the process is given time to end."""
    until = time.monotonic() + seconds
    while not ended(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return ended(pid)


def ended(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True

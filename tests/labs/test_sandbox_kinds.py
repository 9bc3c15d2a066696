"""Which sandbox is chosen, the one without walls for trusted files, and the container's command line."""

import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from labs.grading import container, sandbox
from labs.grading.running_program import SandboxFailed
from labs.grading.sandbox import Limits, NoSandbox
from labs.grading.trusted_process import TrustedProcess
from tests.labs.boxed import alive, soon

ANSWER = "import os, sys; answer = lambda x: os.write(int(os.environ['ROOFLINE_ANSWER_FD']), x)\n"


@pytest.fixture(autouse=True)
def no_image(monkeypatch):
    monkeypatch.delenv(container.IMAGE, raising=False)


def test_without_a_sandbox_only_trusted_files_run(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSandbox, match=r"apt install bubblewrap.*--trusted"):
        sandbox.find()
    assert type(sandbox.find(trusted=True)).__name__ == "TrustedProcess"


def test_root_never_runs_a_program_as_root(monkeypatch, box, tmp_path):
    for name in ("bwrap", "prlimit"):
        (tmp_path / name).symlink_to(getattr(box, name))
    monkeypatch.setenv("PATH", str(tmp_path))  # no setpriv
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(NoSandbox, match="a grader that is root needs setpriv"):
        sandbox.find()


def test_a_sandbox_that_fails_is_not_the_programs_fault(box, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'no namespaces for you' >&2; exit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(SandboxFailed, match="no namespaces for you"):
        sandbox.run([sys.executable], question=b"", sandbox=replace(box, bwrap=str(broken)))


def test_bad_input_is_named(box, tmp_path):
    with pytest.raises(ValueError, match="give an absolute one"):
        sandbox.run([sys.executable], question=b"", sandbox=box, files={"job/x": tmp_path})
    with pytest.raises(ValueError, match="does not exist"):
        sandbox.run([sys.executable], question=b"", sandbox=box, files={"/job/x": tmp_path / "gone"})
    with pytest.raises(ValueError, match="Limits.seconds is 0"):
        Limits(seconds=0)


def plainly(source, files=None, **limits):
    argv = [sys.executable, "-c", ANSWER + source, "/job/data"]
    limits = Limits(**{"seconds": 10, **limits})
    return sandbox.run(argv, question=b"?", sandbox=TrustedProcess(), files=files, limits=limits)


def test_plain_runs_trusted_files_under_the_same_limits(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    (tmp_path / "data").write_text("the data", encoding="utf-8")
    outcome = plainly(
        "answer(sys.stdin.buffer.read() + open(sys.argv[1], 'rb').read())\n"
        "answer(str('GITHUB_TOKEN' in os.environ).encode())",
        files={"/job/data": tmp_path / "data"},
    )
    assert (outcome.status, outcome.answer) == ("ok", b"?the dataFalse")
    assert plainly("while True: pass", seconds=0.3).status == "timeout"
    assert plainly("while True: pass", cpu_seconds=1).status == "timeout"
    assert plainly("x = []\nwhile True: x.append(b'x' * 10**7)", memory_bytes=100 * 2**20).status == "memory"
    assert plainly("os.kill(os.getpid(), 11)").detail == "It was ended by signal SIGSEGV."


def test_plain_leaves_no_process_and_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outcome = plainly(
        "import time\n"
        "open('kept', 'w')\n"
        "if os.fork(): answer(os.getcwd().encode()); os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork() == 0: open('pid', 'w').write(str(os.getpid())); time.sleep(98.7)\n"
    )
    assert outcome.status == "ok" and not Path(outcome.answer.decode()).exists()
    assert list(tmp_path.iterdir()) == []
    assert soon(lambda: not alive("time.sleep(98.7)"))


ENGINE = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if words[0] == "run":
    at = words.index("/bin/sh")
    env = dict(w.split("=", 1) for flag, w in zip(words, words[1:]) if flag == "--env")
    script = words[at + 3].replace("/tmp", {tmp!r})
    argv = ["/bin/sh", "-c", script, "sh", sys.executable, *words[at + 6:]]
    code = subprocess.run(argv, env=env).returncode
    open({log!r} + ".code", "w").write(str(code))
    sys.exit(code)
if words[0] == "inspect":
    print(open({log!r} + ".code").read() + {state!r})
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A stand-in for docker that notes how it was called and runs the program without any container."""
    log = tmp_path / "log"

    def make(state=" false "):
        docker = tmp_path / "bin" / "docker"
        docker.parent.mkdir(exist_ok=True)
        docker.write_text(
            ENGINE.format(python=sys.executable, log=str(log), tmp=str(tmp_path), state=state),
            encoding="utf-8",
        )
        docker.chmod(0o755)
        monkeypatch.setenv("PATH", str(docker.parent))
        return lambda: [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    return make


def test_a_container_is_next_when_an_image_is_named(engine):
    calls = engine()
    with pytest.raises(NoSandbox, match=f"no image is named; set {container.IMAGE}"):
        sandbox.find()
    assert sandbox.find(image="labs:1").image == "labs:1"
    assert calls()[0] == ["image", "inspect", "labs:1"]


def test_the_containers_command_line_shuts_everything(engine, tmp_path):
    calls = engine()
    (tmp_path / "data").write_text("x", encoding="utf-8")
    box = container.Container(str(tmp_path / "bin" / "docker"), "labs:1")
    outcome = sandbox.run(
        [
            sys.executable,
            "-c",
            ANSWER + "print('out'); print('err', file=sys.stderr); answer(sys.stdin.buffer.read())",
        ],
        question=b"?",
        files={"/job/data": tmp_path / "data"},
        limits=Limits(seconds=5, memory_bytes=2**28, processes=7),
        sandbox=box,
    )
    assert (outcome.status, outcome.answer, outcome.output) == ("ok", b"?", "err\nout\n")
    run, _, removed = calls()
    for words in (
        "--network none",
        "--read-only",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--user 65534:65534",
        "--memory 268435456",
        "--memory-swap 268435456",
        "--pids-limit 7",
        "--pull never",
        f"--mount type=bind,source={tmp_path}/data,target=/job/data,readonly",
    ):
        assert words in " ".join(run)
    assert run[run.index("labs:1") + 1 :][3] == "python3"
    assert removed == ["rm", "--force", run[run.index("--name") + 1]]


def test_a_container_out_of_memory_and_one_that_did_not_start(engine, tmp_path):
    box = container.Container(str(tmp_path / "bin" / "docker"), "labs:1")
    engine(" true ")
    assert sandbox.run([sys.executable, "-c", "exit(137)"], question=b"", sandbox=box).status == "memory"
    engine(" false no such runtime")
    with pytest.raises(SandboxFailed, match="no such runtime"):
        sandbox.run([sys.executable, "-c", "exit(127)"], question=b"", sandbox=box)


def test_a_container_that_runs_too_long_is_killed(engine, tmp_path):
    calls = engine()
    box = container.Container(str(tmp_path / "bin" / "docker"), "labs:1")
    started = time.monotonic()
    source = "import time; time.sleep(2)"
    outcome = sandbox.run(
        [sys.executable, "-c", source], question=b"", sandbox=box, limits=Limits(seconds=0.3)
    )
    assert outcome.status == "timeout" and time.monotonic() - started < 2
    assert [words[0] for words in calls()] == ["run", "kill", "rm"]

"""What a program can't do: see, reach, outstay or outgrow its sandbox. Needs bubblewrap, never skips."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from labs.grading import sandbox, sandbox_contents, syscalls
from tests.labs.boxed import alive, soon, told

MIB = 2**20


def test_a_question_goes_in_and_an_answer_and_the_output_come_out(go):
    outcome = go(
        "print('hello'); answer(sys.stdin.read()); print('there', file=sys.stderr)", question=b"x" * MIB
    )
    assert told(outcome) == "x" * MIB
    assert outcome.output.split() == ["there", "hello"] or outcome.output.split() == ["hello", "there"]
    assert outcome.printed == len("hello\nthere\n")


def test_a_question_that_nobody_reads_is_no_obstacle(go):
    assert go("os.close(0); answer(1)", question=b"x" * 4 * MIB).status == "ok"


def test_the_python_environment_is_there(go):
    assert told(go("import numpy; answer([sys.prefix, numpy.__version__])"))[0] == sys.prefix


@pytest.mark.quiet
def test_it_is_quick(box):
    argv = [sys.executable, "-I", "-S", "-c", "pass"]

    def seconds(call):
        started = time.perf_counter()
        call()
        return time.perf_counter() - started

    bare = min(seconds(lambda: subprocess.run(argv, check=True)) for _ in range(5))
    boxed = min(seconds(lambda: sandbox.run(argv, question=b"", sandbox=box)) for _ in range(5))
    assert boxed - bare < 0.1


def test_the_repository_home_and_other_submissions_are_invisible(go, tmp_path):
    other = tmp_path / "submission.ipynb"
    other.write_text("secret", encoding="utf-8")
    own = tmp_path / "own.py"
    own.write_text("own", encoding="utf-8")
    home = Path.home()
    seen = told(
        go(
            "look = lambda p: sorted(os.listdir(p)) if os.path.exists(p) else []\n"
            f"answer([look({str(sandbox_contents.ROOT)!r}), look({str(home)!r}),\n"
            f"os.path.exists({str(other)!r}),\n"
            f"os.path.exists({str(own)!r}), open('/job/own.py').read(), look('/job'), look('/')])",
            files={"/job/own.py": own},
        )
    )
    folders = sandbox_contents.python_folders()
    below = lambda top: {p.relative_to(top).parts[0] for p in folders if p.is_relative_to(top)}  # noqa: E731
    assert set(seen[0]) == below(sandbox_contents.ROOT)  # .venv and nothing else
    assert set(seen[1]) <= below(home)
    assert seen[2:6] == [False, False, "own", ["own.py"]]
    system = {
        "bin",
        "sbin",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "usr",
        "etc",
        "sys",
        "proc",
        "dev",
        "tmp",
        "job",
    }
    assert set(seen[6]) <= below(Path("/")) | system


def test_a_repository_inside_a_mounted_folder_is_covered(go, monkeypatch):
    monkeypatch.setattr(sandbox_contents, "ROOT", Path("/usr/share"))
    assert told(go("answer(os.listdir('/usr/share'))")) == []


def test_an_environment_that_is_the_repository_is_refused(monkeypatch):
    monkeypatch.setattr(sandbox_contents, "ROOT", Path(sys.prefix))
    with pytest.raises(ValueError, match="such as .venv"):
        sandbox_contents.mounts({})


def test_nothing_can_be_written_but_scratch_and_that_vanishes(go, tmp_path):
    own = tmp_path / "own.py"
    own.write_text("own", encoding="utf-8")
    own.chmod(0o666)
    places = [
        "/job/own.py",
        "/job/new",
        "/new",
        "/dev/new",
        "/etc/passwd",
        "/usr/bin/new",
        sys.prefix + "/new",
    ]
    outcome = go(
        "def can(p):\n"
        "    try: open(p, 'w').write('x')\n"
        "    except OSError: return False\n"
        "    return True\n"
        f"answer([[can(p) for p in {places!r}], can('/tmp/kept'), can('kept')])",
        files={"/job/own.py": own},
    )
    assert told(outcome) == [[False] * len(places), True, True]
    assert own.read_text(encoding="utf-8") == "own"
    assert told(go("answer([os.path.exists('/tmp/kept'), os.listdir('.')])")) == [False, []]


def test_files_may_be_shown_inside_the_scratch_folder_too(go, tmp_path):
    (tmp_path / "data").write_text("here", encoding="utf-8")
    source = "answer([open('data').read(), os.access('data', os.W_OK)])"
    assert told(go(source, files={f"{sandbox_contents.WORK}/data": tmp_path / "data"})) == ["here", False]


def test_scratch_space_is_limited(go):
    outcome = go("for i in range(9): open(f'/tmp/{i}', 'wb').write(b'x' * 2**20)", scratch_bytes=4 * MIB)
    assert outcome.status == "crashed"
    assert "No space left" in outcome.output


def test_the_network_is_out_of_reach(go):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind("\0roofline-test")
        named.listen()
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 1).close()  # from out here it can be reached
        outcome = go(
            "import socket\n"
            "def reach(family, address):\n"
            "    s = socket.socket(family); s.settimeout(1)\n"
            "    try: s.connect(address)\n"
            "    except OSError as e: return type(e).__name__\n"
            "    return 'reached'\n"
            f"answer([reach(socket.AF_INET, ('127.0.0.1', {port})),\n"
            "reach(socket.AF_UNIX, chr(0) + 'roofline-test'),\n"
            "reach(socket.AF_INET, ('192.0.2.1', 80)), socket.if_nameindex()])"
        )
    first, second, third, devices = told(outcome)
    assert (first, second, third) == ("ConnectionRefusedError", "ConnectionRefusedError", "OSError")
    assert [name for _, name in devices] == ["lo"]


def test_the_environment_is_made_up(go, monkeypatch):
    for name in ("GITHUB_TOKEN", "HTTPS_PROXY", "PYTHONPATH"):
        monkeypatch.setenv(name, "of-the-grader")
    outcome = go(
        "import glob\n"
        "readable = [p for p in glob.glob('/proc/[0-9]*/environ') if os.access(p, os.R_OK)]\n"
        "everyone = b''.join(open(p, 'rb').read() for p in readable)\n"
        "answer([dict(os.environ), everyone.count(b'of-the-grader')])",
        env={"SEED": "7"},
    )
    variables, leaked = told(outcome)
    assert leaked == 0
    assert (variables["SEED"], variables["OMP_NUM_THREADS"]) == ("7", "1")
    assert variables["HOME"] == sandbox_contents.HOME
    assert not {"GITHUB_TOKEN", "HTTPS_PROXY", "PYTHONPATH"} & set(variables)
    assert variables["TRITON_CACHE_DIR"].startswith("/tmp/")


def test_no_open_file_of_the_grader_leaks(go, tmp_path):
    with open(tmp_path / "key", "w", encoding="utf-8") as key:
        os.set_inheritable(key.fileno(), True)
        outcome = go(
            "answer([[int(n), os.readlink('/proc/self/fd/' + n)] for n in os.listdir('/proc/self/fd')\n"
            "if os.path.exists('/proc/self/fd/' + n)] + [int(os.environ['ROOFLINE_ANSWER_FD'])])"
        )
    *open_files, fd = told(outcome)
    assert sorted(n for n, _ in open_files) == [0, 1, 2, fd]
    assert all(target.startswith("pipe:") for _, target in open_files)


def test_it_is_nobody_and_stays_so(go):
    outcome = go(
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "tried = [libc.unshare(0x10000000), libc.syscall(56, 0x10000011, 0, 0, 0, 0)]\n"
        "if tried[1] == 0: os._exit(0)\n"
        "answer([os.getuid(), *(int(status[n], 16) for n in ('CapEff', 'CapPrm', 'NoNewPrivs')), tried])"
    )
    user, effective, permitted, no_new, tried = told(outcome)
    assert user not in (0, os.getuid()) and (effective, permitted, no_new) == (0, 0, 1)
    if syscalls.known() and os.uname().machine == "x86_64":  # 56 is clone there
        assert tried == [-1, -1]


@pytest.mark.parametrize(
    "source",
    [
        "import time\nif not os.fork():\n  os.setsid()\n  if not os.fork(): time.sleep(99)\n  os._exit(0)",
        "import time\nif os.fork() == 0: time.sleep(99)",
        "import subprocess; subprocess.Popen([sys.argv[1], '99'], executable='/bin/sleep', env={})",
    ],
    ids=["daemon", "grandchild with the pipes", "another program"],
)
def test_what_is_left_running_ends_with_the_program(go, source):
    outcome = go(source)  # the fixture looks for the living
    assert outcome.status == "ok" and outcome.seconds < 5


def test_closing_everything_and_ignoring_every_signal_helps_nobody(go):
    outcome = go(
        "import signal, time\n"
        "for n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "for n in range(20):\n"
        "    try: os.close(n)\n"
        "    except OSError: pass\n"
        "while True: time.sleep(1)",
        seconds=0.5,
    )
    assert outcome.status == "timeout" and outcome.seconds < 2


def test_it_can_kill_nobody_else(go):
    outcome = go(
        "for victim in (1, os.getppid(), -1):\n"
        "    try: os.kill(victim, 9)\n"
        "    except OSError: pass\n"
        "answer([p for p in os.listdir('/proc') if p.isdigit()])"
    )
    assert len(told(outcome)) == 2  # the first process and itself


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("sys.exit(3)", "It ended with exit status 3."),
        ("os.kill(os.getpid(), 11)", "It was ended by signal SIGSEGV."),
        ("1 / 0", "It ended with exit status 1."),
    ],
)
def test_a_crash_is_a_crash(go, source, detail):
    outcome = go("answer(1); " + source)
    assert (outcome.status, outcome.detail, outcome.answer) == ("crashed", detail, b"1")


def test_four_at_once_do_not_mix(go):
    source = "import time; time.sleep(0.1); answer([sys.stdin.read(), os.listdir('.')]); open('x', 'w')"
    questions = [f"question {n}" for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda q: go(source, question=q.encode()), questions))
    assert [told(o) for o in outcomes] == [[q, []] for q in questions]


def test_an_interrupted_grader_leaves_nothing(go, monkeypatch):
    def interrupted(*_):
        time.sleep(0.2)
        raise KeyboardInterrupt

    monkeypatch.setattr(sandbox, "_drive", interrupted)
    before = psutil.Process().num_fds()
    with pytest.raises(KeyboardInterrupt):
        go("import time; time.sleep(99)")
    assert psutil.Process().num_fds() == before


def test_a_killed_grader_takes_the_program_along():
    mark = f"mark{time.monotonic_ns()}x"
    argv = f"[sys.executable, '-c', 'import time; time.sleep(99)', {mark!r}]"
    source = (
        "import sys\nfrom labs.grading import sandbox\n"
        f"sandbox.run({argv}, question=b'', sandbox=sandbox.find())"
    )
    grader = subprocess.Popen([sys.executable, "-c", source], cwd=sandbox_contents.ROOT)
    try:
        assert soon(lambda: [p for p in alive(mark) if p.info["cmdline"][-1] == mark and p.name() != "bwrap"])
        os.kill(grader.pid, signal.SIGKILL)
        grader.wait()
        assert soon(lambda: not alive(mark))
    finally:
        grader.kill()
        grader.wait()

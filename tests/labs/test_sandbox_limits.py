"""What a program can't outgrow: time, memory, processes, output, answer."""

import psutil
import pytest

from labs.grading import sandbox
from labs.grading.running_program import HeadAndTail
from tests.labs.boxed import told

MIB = 2**20


def test_an_endless_loop_is_stopped(go):
    outcome = go("while True: pass", seconds=0.4)
    assert outcome.status == "timeout" and outcome.seconds < 2
    assert outcome.detail == "It ran longer than 0.4 s and was stopped."


def test_processor_time_is_limited_too(go):
    outcome = go("while True: pass", cpu_seconds=1)
    assert outcome.status == "timeout" and outcome.seconds < 5
    assert "processor time" in outcome.detail


@pytest.mark.parametrize(
    "source",
    [
        "x = []\nwhile True: x.append(b'x' * 10**7)",
        "x = []\nwhile True: x.append(bytearray(10**8))",
        "import numpy; numpy.ones(10**11)",
        "import time\nfor i in range(6):\n  if not os.fork(): x = b'x' * 5 * 10**7; break\ntime.sleep(9)",
    ],
    ids=["touched", "untouched", "at once", "by children"],
)
def test_memory_is_limited(go, source):
    outcome = go(source, memory_bytes=200 * MIB)
    assert outcome.status == "memory" and "200 MiB" in outcome.detail


def test_memory_that_no_process_owns_is_refused(go):
    assert "PermissionError" in go("os.memfd_create('hidden')").output


def test_a_fork_bomb_ends(go, monkeypatch):
    # First one that can't harm, with the watching switched off: the kernel alone must hold it. If it doesn't,
    # the real bomb must not be lit, since no watcher wins against it.
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "resident", lambda *_: (0, 0))
        source = (
            "import time; n = 0\n"
            "for i in range(100):\n"
            "    try: child = os.fork()\n"
            "    except BlockingIOError: continue\n"
            "    if not child: time.sleep(0.3); os._exit(0)\n"
            "    n += 1\n"
            "answer(n)"
        )
        assert 0 < told(go(source, processes=16)) < 32
    outcome = go("while True:\n  try: os.fork()\n  except OSError: pass", processes=16)
    assert outcome.status == "too many processes" and outcome.seconds < 5
    assert outcome.detail == "It started more than 16 processes and was stopped."


def test_a_hundred_megabytes_of_printing_are_drained(go):
    before = psutil.Process().memory_info().rss
    outcome = go("[print('x' * 2**20, flush=True) for _ in range(100)]; print('the end')", output_bytes=1000)
    assert outcome.status == "ok" and outcome.printed == 100 * (MIB + 1) + len("the end\n")
    assert len(outcome.output) < 1100 and outcome.output.endswith("the end\n")
    assert "104,856,708 bytes left out" in outcome.output
    assert psutil.Process().memory_info().rss - before < 50 * MIB


def test_what_is_kept_is_the_head_and_the_tail():
    kept = HeadAndTail(10)
    for part in (b"abc", b"defgh", b"ijkl", b"mnopqrstuvwxyz"):
        kept.add(part)
    assert kept.text() == "abcde\n[... 16 bytes left out ...]\nvwxyz"
    short = HeadAndTail(10)
    short.add(b"abcdefgh")
    assert short.text() == "abcdefgh"


def test_a_huge_answer_is_cut_off(go):
    outcome = go("while True: answer('x' * 10**5)", answer_bytes=MIB)
    assert outcome.status == "answer too large" and len(outcome.answer) == MIB and outcome.seconds < 5

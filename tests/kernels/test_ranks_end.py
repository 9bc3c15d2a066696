"""kernels.ranks.launch: whatever a rank does, the run ends, says why, and leaves no process behind."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch.distributed as dist

from kernels.contract import processes
from kernels.ranks import failures, launch
from kernels.ranks.failures import NoRanks, RankFailed, Run

SLEEP = 600  # seconds: what a rank that hangs would take
BOUND = 90  # seconds: far more than any of it takes on a busy machine, far less than SLEEP

needs_ranks = pytest.mark.skipif(
    bool(launch.why_not()) or not sys.platform.startswith("linux"), reason="needs Linux, and ranks on it"
)


def alive(mark):
    """Processes with `mark` in their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in place.read_bytes().decode(errors="replace"):
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def none_alive(mark, seconds=5.0):
    """Whether they are all gone, after a moment for the system to bury them."""
    limit = time.monotonic() + seconds
    while alive(mark) and time.monotonic() < limit:
        time.sleep(0.05)
    return not alive(mark)


# ------------------------------------------------------------- killed, raising, hanging: all at once


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """{how: (what was raised, seconds, the mark of its processes)}: three runs at the same time."""
    before, temporary = tempfile_of_tests(tmp_path_factory.mktemp("a folder with spaces"))

    def attempt(how):
        mark, start = f"{temporary}/{how}", time.monotonic()
        request = {"how": how, "mark": mark}
        try:
            launch.run("tests.kernels.rank_tasks:goes_wrong", request, ranks=2, timeout=3)
        except RankFailed as error:
            return error, time.monotonic() - start, mark
        pytest.fail(f"a rank {how}, and nothing was said")

    hows = ("is killed", "raises", "hangs")
    try:
        with ThreadPoolExecutor(len(hows)) as pool:
            yield dict(zip(hows, pool.map(attempt, hows), strict=True)), temporary
    finally:
        tempfile_of_tests(before)


def tempfile_of_tests(folder):
    """Set the folder for temporary files; returns (the one before, this one)."""
    import tempfile

    before, tempfile.tempdir = tempfile.tempdir, None if folder is None else str(folder)
    return before, folder


SENTENCES = {
    "is killed": r"^rank 1 of 2 was killed \(SIGKILL: from outside, or memory ran out\); its last words: "
    r'"the last thing I said"\. The other ranks were ended\.$',
    "raises": r"^rank 1 of 2 raised ValueError \(rank_tasks\.py, line \d+\): k = 3: two ranks can't share "
    r"it; make k even\. The other ranks were ended\.$",
    "hangs": r"^2 of 2 ranks gave no answer within 3 s: rank 0 was in all_reduce \(rank_tasks\.py, line \d+"
    r"\), rank 1 was in _hangs \(rank_tasks\.py, line \d+\)\. All ranks were ended; every rank must call",
}


@needs_ranks
@pytest.mark.parametrize("how", SENTENCES)
def test_a_rank_that_goes_wrong_ends_the_run_in_bounded_time_with_a_sentence(broken, how):
    error, seconds, _ = broken[0][how]
    assert error.__class__ is RankFailed
    with pytest.raises(RankFailed, match=SENTENCES[how]):
        raise error
    assert seconds < BOUND < SLEEP
    assert error.rank == (None if how == "hangs" else 1)


@needs_ranks
def test_no_process_is_left_of_any_of_them_nor_a_file(broken):
    marks = [mark for _, _, mark in broken[0].values()]
    assert all(none_alive(mark) for mark in [*marks, str(broken[1])])  # ranks' children, and ranks
    assert list(Path(broken[1]).iterdir()) == []


@needs_ranks
def test_the_search_for_survivors_finds_one(tmp_path):
    mark = f"{tmp_path}/to find"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", mark]) as one:
        try:
            limit = time.monotonic() + BOUND
            while not alive(mark) and time.monotonic() < limit:  # a process is there before its command line
                time.sleep(0.05)
            assert alive(mark) == [one.pid]
            assert not none_alive(mark, seconds=0.5)
        finally:
            one.kill()
    assert none_alive(mark)


@needs_ranks
def test_ranks_whose_launcher_is_killed_end_themselves(tmp_path):
    request = {"how": "hangs", "mark": f"{tmp_path}/child"}
    code = (
        "from kernels.ranks import launch\n"
        f"launch.run('tests.kernels.rank_tasks:goes_wrong', {request!r}, ranks=2, timeout={SLEEP})"
    )
    told = {**processes.environment(interpret=True), "TMPDIR": str(tmp_path)}
    launcher = subprocess.Popen([sys.executable, "-c", code], env=told, cwd=tmp_path)
    limit = time.monotonic() + BOUND
    while len(list(tmp_path.glob("ranks-*/joined-*"))) < 2 and time.monotonic() < limit:
        time.sleep(0.05)
    ranks = [pid for pid in alive(str(tmp_path)) if pid != launcher.pid]
    launcher.kill()
    launcher.wait()
    try:
        assert len(ranks) >= 2
        assert none_alive("kernels.ranks.rank\0--folder\0" + str(tmp_path))
    finally:
        for pid in alive(request["mark"]):  # the hanging rank's own child: nobody was left to end it
            os.kill(pid, signal.SIGKILL)


# ----------------------------------------------------------------------------------- torchrun


@needs_ranks
def test_the_same_program_runs_under_torchrun_with_a_home_that_cannot_be_written(tmp_path):
    request = {"parallel": "kernels.ranks.linear:row", "sizes": {"m": 3, "k": 64, "n": 48}}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command += ["--nproc-per-node", "2", "-m", "kernels.ranks.rank", "kernels.ranks.parallel:answer"]
    told = {**processes.environment(interpret=True), "HOME": "/nonexistent", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [*command, json.dumps(request)],
        env=told,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BOUND,
        encoding="utf-8",
    )
    answers = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in answers] == ["rank 0", "rank 1"]
    for line in answers:
        answer = json.loads(line.partition(": ")[2])
        assert answer["sent"] == {"y": 3 * 48 * 2}
        assert answer["relative_error"] < 1e-3


# ----------------------------------------------------------------- who is blamed, without a process


def a_run(folder, *, errors=None, answered=(), log=""):
    for rank, (kind, message, when) in (errors or {}).items():
        words = {"kind": kind, "message": message, "where": "x.py, line 1", "when": when}
        (folder / f"error-{rank}.json").write_text(json.dumps(words), encoding="utf-8")
    for rank in answered:
        (folder / f"answer-{rank}.json").write_text("1", encoding="utf-8")
    logs = {rank: folder / f"log-{rank}" for rank in range(3)}
    for path in logs.values():
        path.write_text(log, encoding="utf-8")
    return Run(folder, 3, 9, logs)


LOST = ("RuntimeError", "Connection closed by peer", 20)


@pytest.mark.parametrize(
    ("exits", "errors", "answered", "sentence"),
    [
        ({0: 1, 1: -9, 2: 1}, {0: LOST, 2: LOST}, (), r"rank 1 of 3 was killed \(SIGKILL"),
        ({0: 1, 1: -11, 2: -15}, {0: LOST}, (), r"rank 1 of 3 was ended by SIGSEGV; its last words: none"),
        ({0: 1, 1: 7, 2: -15}, {0: LOST}, (), r"rank 1 of 3 exited with code 7 and gave no answer"),
        ({0: 1, 1: 0, 2: 0}, {0: LOST}, (1,), r"rank 2 of 3 exited with code 0 and gave no answer"),
        (
            {0: 1, 1: 1, 2: 1},
            {0: LOST, 1: ("KeyError", "'w'", 10), 2: LOST},
            (),
            r"rank 1 of 3 raised KeyError",
        ),
        ({0: -15, 1: -15, 2: -15}, {}, (), r"rank 0 of 3 was ended by SIGTERM"),
    ],
)
def test_the_rank_that_the_others_failed_for_is_named(tmp_path, exits, errors, answered, sentence):
    error = failures.first(a_run(tmp_path, errors=errors, answered=answered), exits)
    with pytest.raises(RankFailed, match=sentence):
        raise error


def test_ranks_that_never_joined_are_named(tmp_path):
    (tmp_path / "joined-1").touch()
    error = failures.late(a_run(tmp_path, log="no space left on device\n"), 120)
    with pytest.raises(RankFailed, match=r'rank 0 and rank 2 of 3 did not join within 120 s.*"no space left'):
        raise error


def test_a_rank_that_does_not_say_where_it_was(tmp_path):
    for rank in range(3):
        (tmp_path / f"joined-{rank}").touch()
    error = failures.late(a_run(tmp_path, answered=(0, 1)), 120)
    with pytest.raises(RankFailed, match="1 of 3 ranks gave no answer within 9 s: rank 2 did not say where"):
        raise error


# ------------------------------------------------------------------------- where there are no ranks


@pytest.mark.parametrize(
    ("broken_part", "arguments", "sentence"),
    [
        (
            "is_available",
            {},
            r"torch\.distributed = missing: this build of torch .* use torch of PyPI on Linux",
        ),
        ("is_gloo_available", {}, r"backend = 'gloo': this build of torch .* has none; use torch of PyPI"),
        ("is_nccl_available", {"backend": "nccl"}, r"backend = 'nccl': this build of torch .* has none"),
    ],
)
def test_a_platform_without_it_says_what_is_missing(monkeypatch, broken_part, arguments, sentence):
    monkeypatch.setattr(dist, broken_part, lambda: False)
    with pytest.raises(NoRanks, match=sentence):
        launch.run("tests.kernels.rank_tasks:linears", ranks=2, **arguments)


def test_nccl_needs_a_gpu_for_each_rank(monkeypatch):
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(
        NoRanks, match="ranks = 2: NCCL needs a GPU for each, and here are 1; use backend='gloo'"
    ):
        launch.run("tests.kernels.rank_tasks:linears", ranks=2, backend="nccl")


def test_one_gpu_for_two_ranks_means_gloo(monkeypatch):
    monkeypatch.setattr(launch.devices, "device", lambda: "cuda")
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert [launch.backend_here(ranks) for ranks in (1, 2)] == ["nccl", "gloo"]

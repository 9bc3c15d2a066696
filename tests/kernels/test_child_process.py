"""Work in the other Triton mode: answers come back, are kept, and are asked for again when code changed."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernels.contract import versions
from kernels.evidence import child_process, compiled
from kernels.evidence.addresses import address
from tests.kernels.toy import experiment as toy


@pytest.fixture
def started(tmp_path, monkeypatch):
    """How many requests each child process was given; none is started, and nothing is kept for good."""
    monkeypatch.setenv("INFERENCE_ROOFLINE_CACHE", str(tmp_path))
    asked = []
    monkeypatch.setattr(child_process, "run", lambda some, **_: asked.append(len(some)) or [[7]] * len(some))
    return asked


REQUESTS = [{"task": "compile", "experiment": address(toy), "n": i} for i in range(2)]


def test_answers_are_kept_and_read_back(started):
    for _ in range(2):
        assert child_process.cached(REQUESTS, interpret=False) == [[7], [7]]
    assert started == [2, 0]
    child_process.cached([REQUESTS[1], REQUESTS[0] | {"n": 5}], interpret=False)
    assert started == [2, 0, 1]


def test_an_answer_is_asked_for_again_when_its_code_changed(started, monkeypatch):
    child_process.cached(REQUESTS, interpret=False)
    monkeypatch.setattr(child_process.inspect, "getsource", lambda module: "changed = True")
    child_process.cached(REQUESTS, interpret=False)
    assert started == [2, 2]


@pytest.mark.parametrize("package", ["triton", "torch", "numpy"])
def test_an_answer_is_asked_for_again_with_another_version_of_what_computes_it(started, monkeypatch, package):
    child_process.cached(REQUESTS, interpret=False)
    theirs = versions.version
    newer = {package: "999"}
    monkeypatch.setattr(versions, "version", lambda name: newer.get(name) or theirs(name))
    child_process._versions.cache_clear()
    child_process.cached(REQUESTS, interpret=False)
    child_process._versions.cache_clear()
    assert started == [2, 2]


def test_another_version_of_rocm_s_triton_is_another_version(monkeypatch):
    """torch for AMD cards brings Triton under another name, and none under its own."""
    known = {"pytorch-triton-rocm": "3.6.0+rocm7", "torch": "2.11.0+rocm7"}

    def version(name):
        if name not in known:
            raise versions.PackageNotFoundError(name)
        return known[name]

    monkeypatch.setattr(versions, "version", version)
    child_process._versions.cache_clear()
    assert child_process._versions()[:3] == ("triton 3.6.0+rocm7", "torch 2.11.0+rocm7", "no numpy")
    child_process._versions.cache_clear()


def test_in_a_notebook_the_version_that_travelled_decides(started, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "book.portable.dependencies", None)  # it stays at home
    for folder in ("1.0+aaaa", "1.0+aaaa", "1.0+bbbb"):
        monkeypatch.setattr(child_process, "ROOT", tmp_path / folder)
        child_process.cached(REQUESTS, interpret=False)
    assert started == [2, 0, 2]


def test_an_error_in_the_child_arrives_with_its_own_sentence():
    with pytest.raises(ValueError, match="not known here"):
        request = {"task": "compile", "experiment": address(toy), "dtype": "fp16", "sizes": {}}
        child_process.run([request | {"target": "sm_1"}], interpret=False)


def compiling(**changed):
    """A request to compile the toy, as `compiled.requests` makes it."""
    (one,) = compiled.requests([(toy, "sm_90", {"m": 16, "k": 64, "n": 64})])
    return one | changed


def test_a_child_that_began_ahead_gives_its_answers_and_they_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_ROOFLINE_CACHE", str(tmp_path))
    real = child_process.run
    monkeypatch.setattr(
        child_process, "run", lambda some, **_: [pytest.fail("a second child")] if some else []
    )
    with child_process.ahead([compiling()], [compiling(target="sm_1")], interpret=False):
        (answer,) = child_process.cached([compiling()], interpret=False)
        with pytest.raises(ValueError, match="sm_1.: not known here"):  # its own sentence, for this one only
            child_process.cached([compiling(target="sm_1")], interpret=False)
    assert answer[0]["instruction"] == "mma.sync"
    assert child_process.cached([compiling()], interpret=False) == [answer]
    monkeypatch.setattr(child_process, "run", real)
    monkeypatch.setattr(child_process, "Child", lambda *_, **__: pytest.fail("what is kept needs no child"))
    with child_process.ahead([compiling()], interpret=False):
        assert child_process.cached([compiling()], interpret=False) == [answer]


def test_a_child_that_began_ahead_ends_with_what_it_was_for(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_ROOFLINE_CACHE", str(tmp_path))
    started, start = [], subprocess.Popen
    monkeypatch.setattr(
        child_process.subprocess, "Popen", lambda *a, **k: started.append(start(*a, **k)) or started[-1]
    )
    with pytest.raises(KeyError), child_process.ahead([compiling()], interpret=False):
        assert started[0].poll() is None
        raise KeyError
    assert started[0].poll() is not None and child_process._begun == {}


def test_threads_decide_one_after_another(monkeypatch, tmp_path):
    """Python 3.11 counts the depth of what ast.parse builds for all threads together."""
    monkeypatch.setattr(child_process, "cache_dir", lambda: tmp_path)
    inside, most = [], []

    def slowly(task, experiment):
        inside.append(experiment)
        most.append(len(inside))
        time.sleep(0.02)
        inside.remove(experiment)
        return "decided"

    monkeypatch.setattr(child_process, "decided_by", slowly)
    requests = [[{"task": "count", "experiment": f"a:{i}"}] for i in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda asked: child_process._places(asked, interpret=True), requests))
    assert most == [1] * 4

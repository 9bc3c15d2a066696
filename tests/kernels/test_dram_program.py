"""The program that `ncu` profiles: each request once between the profiler's start and stop."""

import io
import json
import sys

import pytest
import torch

from kernels import noop
from kernels.evidence.timed import dram
from tests.kernels import toy
from tests.kernels.fake_cuda import FakeCuda

TOY = "tests.kernels.toy:experiment"
SIZES = {"m": 1, "k": 64, "n": 64}


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda(available=False)
    monkeypatch.setattr(torch, "cuda", fake)
    run = noop.noop
    monkeypatch.setattr(noop, "noop", lambda x: (fake.log.append(("mark",)), run(x)))
    return fake


def ran(monkeypatch, *requests):
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(requests)))
    dram.main("cpu")


def request(**changes):
    return {"experiment": TOY, "dtype": "fp16", "sizes": SIZES, **changes}


def test_a_mark_stands_before_each_request_and_all_is_waited_for_before_the_profiler_stops(cuda, monkeypatch):
    ran(monkeypatch, request(), request(sizes={**SIZES, "m": 16}))
    counted = [("profiler", "start"), ("mark",), ("synchronize",), ("profiler", "stop"), ("empty_cache",)]
    assert cuda.log == [("mark",), *[("synchronize",), *counted] * 2]  # the first one only compiles


def test_what_is_counted_is_the_run_and_nothing_before_it(cuda, monkeypatch):
    run, profiled = toy.toy, []

    def watched(x, w):
        inside = [one[1] for one in cuda.log if one[0] == "profiler"][-1:] == ["start"]
        profiled.append(inside)
        return run(x, w)

    monkeypatch.setitem(vars(toy.experiment), "run", watched)
    ran(monkeypatch, request())
    assert profiled == [False, True], "compiled outside, run once inside"


def test_a_request_that_fails_keeps_its_place(cuda, monkeypatch, capsys):
    ran(monkeypatch, request(experiment="kernels.nowhere:experiment"), request())
    assert capsys.readouterr().out.startswith("failed 0: ModuleNotFoundError: No module named")
    assert cuda.log.count(("mark",)) == 3 and cuda.log.count(("profiler", "stop")) == 2


def test_torch_has_the_profiler_that_is_asked_for():
    assert callable(torch.cuda.profiler.start) and callable(torch.cuda.profiler.stop)

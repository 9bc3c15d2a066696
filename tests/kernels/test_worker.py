"""The process that measures one kernel: it tells what it has, and survives what can be survived."""

import dataclasses
import sys
import types

import pytest
import torch

from kernels.contract import devices
from kernels.contract.errors import Unsupported
from kernels.evidence import launch_overhead, timed
from kernels.evidence.recorded import write
from kernels.evidence.timed import baselines
from kernels.evidence.timed.clocks import GraphClock
from kernels.measure import bench, worker
from tests.kernels import fakes
from tests.kernels.fakes import CARD, Memory

TOPS = write.ceilings_as_record(timed.Ceilings("fp16", 3e12, "copy", 7e14, "matmul", {}, {}))


@pytest.fixture(autouse=True)
def whole_card():
    yield
    Memory.lost = ""


def told(task, experiment="tests.kernels.toy:experiment", **asked):
    """What it tells, in order, without the "done" at the end."""
    events = []
    request = {"task": task, "bench": "tests.kernels.fakes:bench", "experiment": experiment, "dtype": "fp16"}
    request["kernels"] = [{"experiment": experiment, "dtype": "fp16"}]
    worker.answer({**request, **asked}, lambda kind, **what: events.append({"is": kind, **what}))
    assert events[-1] == {"is": "done"}
    return events[:-1]


def points(which, rows=(1, 16, 64), k=64):
    sizes = [{"m": m, "k": k, "n": 64} for m in rows]
    asked = {"sizes": sizes, "ceilings": TOPS, "budget": 0.1}
    return told("points", f"tests.kernels.faulty_runs:{which}", **asked)


def kinds(events):
    return [(event["is"], event["sizes"]["m"] if "sizes" in event else "") for event in events]


def test_each_size_is_begun_and_told_as_soon_as_it_is_timed():
    events = points("large")
    assert [event["is"] for event in events] == ["at", "point"] * 3
    point = events[1]["point"]
    assert point["sizes"] == {"m": 1, "k": 64, "n": 64} and point["seconds"] == 1e-3
    assert point["plan"] == {"BM": 16, "BN": 64, "BK": 64}
    assert events[1]["ended"] >= events[1]["began"] > 0


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("memory", "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("launch", "OutOfResources: out of resource: shared memory, Required: 240000"),
    ],
)
def test_a_size_that_raises_is_told_with_the_first_line_and_the_next_one_is_timed(which, reason):
    events = points(which)
    assert kinds(events) == [("at", 1), ("point", ""), ("at", 16), ("failed", 16), ("at", 64), ("point", "")]
    assert events[3]["reason"].startswith(reason) and "\n" not in events[3]["reason"]
    assert not events[3]["wrong"]


def test_after_an_illegal_access_it_ends_as_the_card_answers_no_more():
    events = points("access")
    assert kinds(events) == [("at", 1), ("point", ""), ("at", 16), ("failed", 16), ("lost", "")]
    assert events[-1]["reason"] == "CUDA error: an illegal memory access was encountered"


def test_a_wrong_result_is_told_as_one():
    events = points("result")
    assert [e["wrong"] for e in events if e["is"] == "failed"] == [True]
    assert "relative error" in events[3]["reason"] and kinds(events)[-1] == ("point", "")


def test_a_size_that_does_not_fit_is_left_out_with_its_numbers():
    events = points("large", rows=(2**20, 16), k=256)
    assert kinds(events)[:2] == [("at", 2**20), ("left_out", 2**20)]
    assert events[1]["memory"] and "GB are free" in events[1]["reason"]
    assert kinds(events)[-1] == ("point", "")


def test_a_size_is_told_before_a_vendor_s_kernel_is_tried_and_again_with_its_time():
    sizes = [{"m": m, "k": 64, "n": 64} for m in (1, 4)]
    asked = {"sizes": sizes, "ceilings": TOPS, "budget": 0.1}
    events = told("points", "kernels.linear:experiment", **asked)
    assert [event["is"] for event in events] == ["at", "point", "beside", "point"] * 2
    assert events[1]["point"]["baseline"] is None and events[2]["sizes"] == sizes[0]
    assert events[3]["point"]["baseline"]["name"] == "torch.matmul"
    events = told("points", "kernels.linear:experiment", **asked, baselines=False)
    assert [event["is"] for event in events] == ["at", "point"] * 2


def test_a_vendor_s_illegal_access_is_told_and_the_rest_is_another_process_s(monkeypatch):
    def illegal(*_):
        Memory.lost = "CUDA error: an illegal memory access was encountered"
        return None, ["theirs could not be timed beside it"]

    monkeypatch.setattr(baselines, "beside", illegal)
    sizes = [{"m": m, "k": 64, "n": 64} for m in (1, 4)]
    events = told("points", "kernels.linear:experiment", sizes=sizes, ceilings=TOPS, budget=0.1)
    assert [event["is"] for event in events] == ["at", "point", "beside", "point", "lost"]


def test_a_check_runs_every_counted_size_and_says_what_multiplies():
    events = told("check")
    assert kinds(events)[:3] == [("begins", ""), ("at", 1), ("at", 64)]
    assert events[-1]["outcome"]["verdict"] == "correct" and events[-1]["outcome"]["runs"] == 2
    assert events[-1]["arithmetic"] == "fp16"


def test_a_check_that_raises_is_told():
    begins, failed = told("check", "tests.kernels.nowhere:experiment")
    assert begins["is"] == "begins"
    assert (failed["is"], failed["sizes"]) == ("failed", None)
    assert "ModuleNotFoundError" in failed["reason"]


def test_kernels_are_checked_one_after_another_until_the_card_answers_no_more():
    names = ("tests.kernels.nowhere:experiment", "tests.kernels.toy:experiment")
    kernels = [{"experiment": name, "dtype": "fp16"} for name in names]
    events = told("check", kernels=kernels)
    assert [e["is"] for e in events] == ["begins", "failed", "begins", "at", "at", "checked"]
    Memory.lost = "CUDA error: an illegal memory access was encountered"
    assert [e["is"] for e in told("check", kernels=kernels)] == ["begins", "failed", "lost"]


def test_ceilings_come_with_how_a_cold_cache_was_made(monkeypatch):
    monkeypatch.setattr(timed, "ceilings", lambda device, dtype, clock: write.ceilings_of(TOPS))
    (event,) = told("ceilings")
    assert event["ceilings"] == TOPS and event["clock"] == {"kept": "pretended"}


def test_the_cost_of_a_launch_is_asked_with_the_bandwidth_just_measured(monkeypatch):
    asked = {}

    def gpu(device, **options):
        asked.update(options)
        line = launch_overhead.Line("noop", "graph", (1, 2), (3e-6, 5e-6))
        law = launch_overhead.Law("graph", 32, (512, 1024), (1e-5, 4e-5), (3e-5, 6e-5))
        return launch_overhead.Overhead(device.name, *options["bandwidth"], (line,), (law,))

    monkeypatch.setattr(launch_overhead, "gpu", gpu)
    cold = {"kept": "clean"}
    (event,) = told("launches", bandwidth=[3e12, "torch copy"], quick=True, cold=cold)
    assert isinstance(asked.pop("on"), Memory), "on the card of the bench, whichever that is"
    assert asked == {"bandwidth": (3e12, "torch copy"), "quick": True, "cold": "clean"}
    assert event["overhead"]["lines"][0]["work"] == "noop"


class Driver:
    """Triton's, which is built when it is first asked for."""

    def __init__(self, fails):
        self.fails = fails

    @property
    def active(self):
        if self.fails:
            raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.")
        return types.SimpleNamespace(get_current_target=lambda: "cuda:90")


@pytest.mark.parametrize(
    ("fails", "lacks", "says"),
    [
        (True, "There is no C compiler here: install gcc.", "There is no C compiler here: install gcc"),
        (True, "", "Triton's driver can't be built or loaded here (Failed to find C compiler. Please"),
        (False, "", ""),
        (False, "There is no C compiler here.", ""),  # built by an earlier run, and kept by Triton
    ],
)
def test_a_machine_on_which_triton_can_build_no_driver_says_so_before_anything(
    monkeypatch, fails, lacks, says
):
    card = dataclasses.replace(CARD, torch_device="cuda")
    monkeypatch.setattr(fakes, "describe", lambda: (card, ""))
    monkeypatch.setitem(sys.modules, "triton.runtime", types.SimpleNamespace(driver=Driver(fails)))
    monkeypatch.setattr(worker, "no_compiler", lambda: lacks)
    (event,) = told("describe", describe="tests.kernels.fakes:describe")
    assert event["reason"].startswith(says) and bool(event["reason"]) is bool(says)
    assert event["device"]["name"] == "Pretended H100"


def test_a_card_on_which_all_is_there_is_described_without_a_reason(monkeypatch):
    (event,) = told("describe", describe="tests.kernels.fakes:describe")
    assert event["reason"] == "" and event["device"]["sm_count"] == 132


# ----------------------------------------------------------------------------------- the bench


def test_the_bench_of_a_real_card_has_a_clock_of_its_own_and_takes_a_decision_of_before(monkeypatch):
    card = dataclasses.replace(CARD, torch_device="cuda")
    monkeypatch.setattr(bench, "describe", lambda: (card, ""))
    found = types.SimpleNamespace(as_record=lambda: {"kept": "clean"})
    monkeypatch.setattr(bench, "gpu_clock", lambda device, gpu: (GraphClock(gpu, "clean"), found))
    here = bench.here()
    assert here.facts == {"kept": "clean"} and here.clock() is here.clock()
    before = bench.here({"kept": "overwritten", "clean": 1e-5})
    assert before.facts == {"kept": "overwritten", "clean": 1e-5}
    assert isinstance(before.clock(), GraphClock)


def test_a_bench_with_no_card_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(bench, "describe", lambda: (None, "no GPU here"))
    with pytest.raises(Unsupported, match="Nothing to measure: no GPU here"):
        bench.here()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_with_no_gpu_there_is_no_card_to_describe():
    device, reason = bench.describe()
    assert device is None and reason.startswith("no GPU here")
    assert devices.device() == "cpu"

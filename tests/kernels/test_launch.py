"""kernels.noop and evidence.launch_overhead: steps of n launches, and the lines through their times."""

import math

import pytest
import torch

from book.serving import step_law
from kernels import noop
from kernels.contract.errors import Unsupported
from kernels.evidence import counted, launch_overhead
from kernels.evidence.timed.clocks import StepClock, Timing
from kernels.evidence.timed.gpu import TorchGpu
from tests.kernels.compiling import told
from tests.kernels.fakes import CARD

needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


class Pretended:
    """A clock for steps that are numbers of seconds already."""

    def time(self, work, budget=0.3):
        return Timing(1.5 * work, work, 2 * work, 7)


def test_the_kernel_that_does_nothing_runs_one_program_and_touches_nothing():
    x = torch.ones(4)
    with counted.count() as tally:
        noop.noop(x)
    assert (tally.programs, tally.reads(), tally.writes()) == (1, {}, {})
    assert torch.equal(x, torch.ones(4))


def test_a_step_starts_n_works_and_the_next_goes_on_from_there():
    seen = []
    step = noop.repeated([lambda i=i: seen.append(i) for i in range(3)], 4)
    step(), step()
    assert seen == [0, 1, 2, 0, 1, 2, 0, 1]
    with pytest.raises(ValueError, match="n = 0: a size must be a whole number of at least 1"):
        noop.repeated([], 0)


@needs_no_gpu
def test_a_graph_needs_a_gpu():
    with pytest.raises(Unsupported, match="CUDA graphs need a GPU.*run the step eagerly"):
        TorchGpu("cpu").captured(lambda: None)


def test_slope_and_intercept_of_more_launches():
    line = launch_overhead.line("noop", "eager", lambda n: 5e-6 * n + 20e-6, (8, 16, 64), Pretended(), 0.1)
    assert math.isclose(line.per_launch, 5e-6) and math.isclose(line.per_step, 20e-6)
    assert line.counts == (8, 16, 64)


def test_the_step_law_of_larger_layers():
    floor = lambda size: 1e-9 * size  # noqa: E731
    step = lambda size: 32 * 1e-9 * size / 0.8 + 32 * 3e-6  # noqa: E731
    law = launch_overhead.law("graph", step, (512, 1024, 4096), floor, Pretended(), 0.1)
    assert math.isclose(law.fit.efficiency, 0.8) and math.isclose(law.fit.overhead, 96e-6)
    assert isinstance(law.fit, step_law.Fit)


def test_a_step_is_timed_with_its_launches_and_until_the_device_is_done():
    at, done = [0.0], []

    def spend(seconds, name):
        at[0] += seconds
        done.append(name)

    clock = StepClock(wait=lambda: spend(2, "wait"), before=lambda: spend(100, "before"), now=lambda: at[0])
    timing = clock.time(lambda: spend(1, "work"), budget=0)
    assert (timing.seconds, timing.runs) == (3, 5)
    assert done[:5] == ["work", "before", "wait", "work", "wait"]


@pytest.fixture(scope="module")
def on_this_cpu():
    return launch_overhead.cpu(budget=0.001)


def test_on_a_cpu_it_is_torchs_and_says_so(on_this_cpu):
    assert on_this_cpu.rung == "timed" and on_this_cpu.where.startswith("this CPU, torch (")
    assert all(seconds > 0 for line in on_this_cpu.lines for seconds in line.seconds)
    assert [line.way for line in on_this_cpu.lines] == ["eager", "eager"]
    floors = on_this_cpu.laws[0].floors
    assert math.isclose(floors[0], 32 * (64 * 64 + 2 * 64) * 4 / on_this_cpu.bandwidth)


@needs_no_gpu
def test_what_a_gpu_would_show_is_not_measured_yet(on_this_cpu):
    assert on_this_cpu.status["timed, on a GPU"] == "not measured yet: no GPU here"
    assert "not measured yet: no GPU here" in on_this_cpu._repr_html_()
    with pytest.raises(Unsupported, match="not measured yet: no GPU here; on a CPU use launch_overhead.cpu"):
        launch_overhead.gpu()
    with pytest.raises(Unsupported, match="not measured yet"):
        launch_overhead.gpu(CARD.__class__("gpu", "Old", "cuda"))


def test_the_figure_says_what_a_launch_adds(on_this_cpu):
    figure = on_this_cpu.figure()
    assert "add to one number, eager: " in figure.get_label()
    assert "launches a step" in figure.axes[0].get_xlabel()


def test_records_without_it_have_none():
    assert launch_overhead.recorded([{"device": {"name": "x"}, "date": "2026-01-01"}]) == ()


COMPILE = """
import torch
from kernels import noop
from kernels.contract import targets
from kernels.evidence.compiled import machine_code
from kernels.evidence.stand_in import activate
target = targets.target("sm_90")
activate(target)
(one,) = noop.launches(torch.empty(1, device="meta"))
made = one.kernel.warmup(*one.args, grid=one.grid, **one.options)
print(machine_code.read(made, target)["loads"])
"""


def test_the_kernel_that_does_nothing_compiles_and_loads_nothing():
    assert told("-c", COMPILE) == 0

"""`rehearsal.stream`: the simulated card behaves as a card does, and goes wrong as one does."""

import dataclasses

import pytest
import torch
from triton.runtime.errors import OutOfResources

from kernels import linear, noop
from kernels.contract import devices
from kernels.evidence import launch_overhead
from kernels.evidence.rehearsal import stream
from kernels.evidence.rehearsal.stream import Costs, Faults, Kernel, SimulatedGpu
from kernels.evidence.timed import cold_cache
from kernels.evidence.timed.clocks import GraphClock
from kernels.evidence.timed.gpu import NotCaptured
from tests.kernels.fakes import CARD

US = 1e-6
EXACT = Costs(noise=0.0, resolution=0.0)


def test_the_card_goes_on_while_the_host_does_something_else():
    gpu = SimulatedGpu(costs=EXACT)
    gpu.launch(100 * US)
    gpu.pause(60 * US)
    gpu.synchronize()
    assert gpu.now() == pytest.approx(EXACT.launch + 100 * US + EXACT.wake)


def test_the_host_does_not_wait_for_what_it_launches_until_the_queue_is_full():
    gpu = SimulatedGpu(costs=EXACT)
    for _ in range(stream.QUEUE):
        gpu.launch(1e-3)
    assert gpu.now() == pytest.approx(stream.QUEUE * EXACT.launch)
    gpu.launch(1e-3)
    gpu.launch(1e-3)
    assert gpu.now() > 1e-3


def test_a_card_that_waits_for_python_is_as_slow_as_python():
    gpu = SimulatedGpu(costs=EXACT)
    start, end = gpu.event(), gpu.event()
    gpu.record(start)
    gpu.work(*[1 * US] * 10, launch=20 * US)()
    gpu.record(end)
    gpu.synchronize()
    assert gpu.elapsed(start, end) == pytest.approx(10 * 20 * US + 1 * US, rel=0.01)


def test_a_graph_starts_its_kernels_at_once():
    gpu = SimulatedGpu(costs=EXACT)
    step = gpu.captured(gpu.work(*[1 * US] * 10, launch=20 * US))
    start, end = gpu.event(), gpu.event()
    gpu.overwrite()
    gpu.record(start)
    step()
    gpu.record(end)
    gpu.synchronize()
    assert gpu.elapsed(start, end) == pytest.approx(10 * US)


def test_what_is_recorded_in_a_graph_does_not_run_until_it_is_replayed():
    gpu = SimulatedGpu()
    step = gpu.captured(gpu.work(3 * US))
    assert gpu.launched == [3 * US]  # the warm-up's
    step()
    assert gpu.launched == [3 * US] * 2


@pytest.mark.parametrize("waits", [SimulatedGpu.synchronize, SimulatedGpu.overwrite])
def test_a_work_that_may_not_be_recorded_is_refused_and_leaves_the_card_usable(waits):
    gpu = SimulatedGpu()
    with pytest.raises(NotCaptured, match="stream is capturing"):
        gpu.captured(lambda: waits(gpu))
    gpu.launch(1 * US)
    gpu.synchronize()


def test_an_event_that_the_card_has_not_come_to_has_no_time():
    gpu = SimulatedGpu()
    start, end = gpu.event(), gpu.event()
    with pytest.raises(RuntimeError, match="must be recorded"):
        gpu.elapsed(start, end)
    gpu.record(start), gpu.launch(1e-3), gpu.record(end)
    with pytest.raises(RuntimeError, match="not ready"):
        gpu.elapsed(start, end)


def test_events_are_read_in_steps_of_their_resolution():
    gpu = SimulatedGpu(costs=Costs(noise=0.0, resolution=0.5 * US))
    read = GraphClock(gpu).time(gpu.work(4.1 * US))
    assert {round(t / US, 3) for t in (read.low, read.seconds, read.high)} <= {4.0, 4.5}


def test_a_seed_decides_the_noise():
    def read(seed):
        gpu = SimulatedGpu(costs=Costs(noise=0.05), seed=seed)
        return GraphClock(gpu).time(gpu.work(1e-3))

    assert read(1) == read(1) != read(2)
    assert read(1).spread > 0.02


def test_a_written_cache_is_paid_for_by_who_comes_next():
    gpu = SimulatedGpu(costs=EXACT, bandwidth=1e12, l2_bytes=50 * 10**6)
    kernel = Kernel(20 * US, 20 * 10**6, "w")
    gpu.overwrite()
    assert gpu._true(kernel) == pytest.approx(40 * US)  # as many bytes go back as come in
    gpu.clean()
    assert gpu._true(kernel) == pytest.approx(20 * US)
    assert gpu._true(kernel) == 0.0  # all of it is there


def test_what_the_cache_has_no_room_for_pushes_out_the_oldest():
    gpu = SimulatedGpu(costs=EXACT, bandwidth=1e12, l2_bytes=50 * 10**6)
    first, second = (Kernel(30 * US, 30 * 10**6, name) for name in ("first", "second"))
    assert [gpu._true(k) for k in (first, second)] == [30 * US] * 2
    assert gpu._true(first) == pytest.approx(10 * US)  # 20 of its 30 MB were left
    large = Kernel(1e-3, 10**9, "large")
    assert gpu._true(large) == gpu._true(dataclasses.replace(large, data="other")) == 1e-3


def test_cleaning_takes_as_long_as_writing_and_reading_a_buffer():
    gpu = SimulatedGpu(costs=EXACT, bandwidth=1e12)
    gpu.overwrite()
    gpu.synchronize()
    one = gpu.now()
    gpu.clean()
    gpu.synchronize()
    assert 2 < (gpu.now() - one) / one < 2.3


# -------------------------------------------------------------------------------------- what goes wrong


def test_memory_that_is_used_up_is_refused_as_torch_refuses_it():
    gpu = SimulatedGpu(memory=100)
    gpu.allocate(60)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory. Tried to allocate"):
        gpu.allocate(50)
    assert (gpu.free_bytes(), gpu.total_bytes()) == (40, 100)


def test_memory_that_is_kept_for_later_is_free_only_once_it_is_released():
    gpu = SimulatedGpu(memory=100)
    gpu.allocate(60)
    gpu.free(60)
    assert gpu.free_bytes() == 40
    gpu.allocate(50)  # of what was kept
    assert gpu.free_bytes() == 40
    gpu.release()
    assert gpu.free_bytes() == 50


def test_the_nth_allocation_can_fail_and_the_next_be_served():
    gpu = SimulatedGpu(faults=Faults(allocation=2))
    gpu.allocate(1)
    with pytest.raises(torch.OutOfMemoryError):
        gpu.allocate(1)
    gpu.allocate(1)


def test_an_illegal_access_comes_out_later_and_nothing_works_after_it():
    gpu = SimulatedGpu(lambda name: 1 * US, faults=Faults(illegal=lambda name: name == "bad"))
    gpu.launch("good")
    gpu.synchronize()
    gpu.launch("bad")  # nobody knows yet
    for call in (gpu.synchronize, gpu.overwrite, lambda: gpu.record(gpu.event()), lambda: gpu.launch("good")):
        with pytest.raises(RuntimeError, match="illegal memory access"):
            call()


def test_an_illegal_access_in_a_graph_is_no_failed_capture():
    gpu = SimulatedGpu(lambda name: 1 * US, faults=Faults(illegal=lambda name: name == "bad"))
    with pytest.raises(RuntimeError, match="illegal memory access") as found:
        GraphClock(gpu).time(gpu.work("bad"))
    assert not isinstance(found.value, NotCaptured)


def test_a_refused_launch_is_said_at_once_and_survived():
    too_large = OutOfResources(300_000, 232_448, "shared memory")
    gpu = SimulatedGpu(lambda name: 1 * US, faults=Faults(refused={"large": too_large}.get))
    with pytest.raises(OutOfResources, match="Required: 300000, Hardware limit: 232448"):
        GraphClock(gpu).time(gpu.work("large"))
    gpu.launch("small")
    gpu.synchronize()
    assert gpu.launched == ["small"]


# --------------------------------------------------------------------------------- with the book's kernels


def test_what_the_launchers_start_can_be_what_it_runs():
    gpu = SimulatedGpu(lambda launch: {"noop": 2 * US}[launch.label])
    x = torch.ones(4)
    with devices.observed(gpu.launch):
        timing = GraphClock(gpu).time(lambda: noop.noop(x), 1e-9)
    assert timing.seconds == pytest.approx(2 * US)
    assert timing.launch_seconds == pytest.approx(gpu.costs.launch)


def law_of_launches(monkeypatch, gpu, **options):
    """The sweep over launches, of layers that move their weights at 0.8 TB/s, and start in 1 us."""

    def layer(x, w):
        moved = 2 * w.numel()
        gpu.launch(Kernel(moved / 1e12 / 0.8, moved, start=1 * US))

    monkeypatch.setattr(noop, "noop", lambda x: gpu.launch(2 * US))
    monkeypatch.setattr(linear, "linear", layer)
    monkeypatch.setitem(launch_overhead.POOL_BYTES, "gpu", 2 * 4096**2)
    monkeypatch.setattr(launch_overhead, "GPU_SIZES", (512, 1024, 2048, 4096))
    return launch_overhead.gpu(CARD, bandwidth=(1e12, "a pretended copy"), budget=0.01, on=gpu, **options)


def test_the_cost_of_a_launch_is_found_as_it_is_set(monkeypatch):
    """Each line of the sweep over launches, on a card where both truths are known."""
    gpu = SimulatedGpu(costs=Costs(launch=9 * US, noise=0.0), bandwidth=1e12)
    found = law_of_launches(monkeypatch, gpu, cold="clean")
    slopes = {(line.work, line.way): line.per_launch for line in found.lines}
    assert slopes["noop", "eager"] == pytest.approx(9 * US, rel=0.02)
    assert slopes["noop", "graph"] == pytest.approx(2 * US, rel=0.02)
    graph = next(law for law in found.laws if law.way == "graph")
    assert graph.fit.efficiency == pytest.approx(0.8, rel=0.02)
    assert graph.fit.overhead == pytest.approx(32 * 1 * US + gpu.costs.replay + gpu.costs.wake, rel=0.2)
    assert not any(one.doubts for one in (*found.lines, graph))


class WritesThrough(SimulatedGpu):
    """A card whose cache holds no line that memory doesn't have."""

    def overwrite(self):
        super().overwrite()
        self._dirty = 0


@pytest.mark.parametrize(("kind", "kept"), [(SimulatedGpu, "clean"), (WritesThrough, "overwritten")])
def test_the_cost_of_a_launch_is_found_behind_the_cache_that_is_right_on_the_card(monkeypatch, kind, kept):
    gpu, flushed = kind(costs=Costs(noise=0.0), bandwidth=1e12), []
    buffers = [gpu.work(Kernel(50 * US, 50 * 10**6, f"buffer {i}")) for i in range(8)]
    decided = cold_cache.gpu_clock(CARD, gpu, buffers)
    monkeypatch.setattr(launch_overhead, "gpu_clock", lambda device, on: decided)
    for name in ("overwrite", "clean"):
        before = getattr(gpu, name)
        monkeypatch.setattr(gpu, name, lambda b=before, n=name: [flushed.append(n), b()])
    found = law_of_launches(monkeypatch, gpu)
    assert decided[0].cold == kept and ("clean" in flushed) == (kept == "clean")
    graph = next(law for law in found.laws if law.way == "graph")
    assert graph.fit.efficiency == pytest.approx(0.8, rel=0.01)


def test_behind_a_written_cache_the_law_of_steps_would_have_been_another(monkeypatch):
    gpu = SimulatedGpu(costs=Costs(noise=0.0), bandwidth=1e12)
    graph = next(
        law for law in law_of_launches(monkeypatch, gpu, cold="overwritten").laws if law.way == "graph"
    )
    assert abs(graph.fit.overhead - 32 * US - gpu.costs.replay - gpu.costs.wake) > 5 * US

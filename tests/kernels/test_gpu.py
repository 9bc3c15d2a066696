"""`timed.gpu`: each line that talks to torch.cuda, against a module that refuses what torch would."""

import contextlib
import gc
import inspect
import weakref

import pytest
import torch

from kernels.contract import devices
from kernels.evidence.timed import cold_cache, gpu
from kernels.evidence.timed.ceilings import FREE_SHARE, room
from kernels.evidence.timed.clocks import GraphClock
from kernels.evidence.timed.gpu import NotCaptured, TorchGpu
from tests.kernels.fake_cuda import FakeCuda
from tests.kernels.fakes import CARD


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(torch, "cuda", fake)
    monkeypatch.setattr(gpu, "FLUSH_AT_LEAST", 4096)  # the buffers lie on this CPU
    return fake


def test_a_work_is_captured_on_a_stream_of_its_own_after_it_ran_there(cuda):
    TorchGpu("cpu").captured(cuda.work())
    assert cuda.log == [
        ("wait", "aside", "main"),  # its inputs are there
        *[("ran", "aside")] * gpu.WARM_UPS,
        ("synchronize",),
        ("synchronize",),  # torch's own, as a capture begins
        ("capture", "aside", "thread_local"),
        ("recorded", "aside"),
        ("wait", "main", "aside"),
    ]
    assert cuda.current is cuda.main


def test_a_replay_starts_the_graph_on_the_current_stream_and_runs_no_python(cuda):
    step = TorchGpu("cpu").captured(cuda.work())
    cuda.log.clear()
    step()
    assert cuda.log == [("replay", "main")]


def test_results_in_the_graph_s_memory_live_as_long_as_the_replay(cuda):
    made = []

    def result():
        one = torch.empty(3)
        made.append(weakref.ref(one))
        return one

    step = TorchGpu("cpu").captured(cuda.work(result))
    gc.collect()
    assert [ref() is not None for ref in made] == [False] * gpu.WARM_UPS + [True]
    assert step() is made[-1]()
    del step
    gc.collect()
    assert made[-1]() is None


def test_a_work_that_waits_is_not_captured_and_leaves_the_stream_as_it_was(cuda):
    with pytest.raises(NotCaptured, match="not permitted when stream is capturing$"):  # its first line
        TorchGpu("cpu").captured(cuda.synchronize)
    assert cuda.current is cuda.main


@pytest.mark.parametrize("handled", [False, True])
def test_why_a_capture_failed_is_what_the_work_said_and_not_how_torch_ended_it(cuda, monkeypatch, handled):
    """torch raises again from capture_end, "previous error", and hides the reason in a context."""
    graph = cuda.graph

    @contextlib.contextmanager
    def invalidated(*args, **options):
        with graph(*args, **options):
            try:
                yield
            finally:
                raise RuntimeError("CUDA error: operation failed due to a previous error during capture")

    monkeypatch.setattr(cuda, "graph", invalidated)

    def waits():
        if not handled:
            return cuda.synchronize()
        try:
            raise KeyError("a look into a cache")
        except KeyError:
            return cuda.synchronize()

    with pytest.raises(NotCaptured, match="not permitted when stream is capturing$"):
        TorchGpu("cpu").captured(waits)
    with pytest.raises(NotCaptured, match="due to a previous error during capture$"):
        TorchGpu("cpu").captured(cuda.work())  # nothing else was said


def test_what_is_wrong_with_the_work_itself_is_no_failed_capture(cuda):
    def fails():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal memory access") as found:
        TorchGpu("cpu").captured(fails)
    assert not isinstance(found.value, NotCaptured)
    assert cuda.current is cuda.main


def test_without_a_gpu_nothing_is_captured(cuda):
    cuda.available = False
    with pytest.raises(NotCaptured, match="CUDA graphs need a GPU"):
        TorchGpu("cpu").captured(cuda.work())
    assert cuda.log == []


def test_events_keep_time_in_seconds_and_only_once_the_card_came_to_them(cuda):
    card = TorchGpu("cpu")
    start, end = card.event(), card.event()
    card.record(start), card.record(end)
    with pytest.raises(RuntimeError, match="completed"):
        card.elapsed(start, end)
    card.synchronize()
    assert card.elapsed(start, end) == 2e-3
    assert cuda.log == [("event", "main"), ("event", "main"), ("synchronize",)]


def test_overwriting_writes_one_buffer_and_cleaning_reads_another(cuda):
    card = TorchGpu("cpu", l2_bytes=8192)
    card.overwrite()
    written, read, total = card._scratch()
    assert written.nbytes == read.nbytes == 2 * 8192
    written.fill_(1.0), total.fill_(5.0)
    card.overwrite()
    assert not written.any()
    unread = read._version
    written.fill_(1.0)
    card.clean()
    assert not written.any() and total == 0.0
    assert read._version == unread  # a line of it that was written would have to go back


def test_nothing_is_a_launch_of_the_kernel_that_does_nothing(cuda):
    started = []
    with devices.observed(started.append):
        card = TorchGpu("cpu")
        card.nothing(), card.nothing()
    assert [one.label for one in started] == ["noop", "noop"]


def test_memory_is_what_the_driver_says(cuda):
    card = TorchGpu("cpu")
    card.release()
    assert (card.free_bytes(), card.total_bytes(), cuda.log) == (*cuda.memory, [("empty_cache",)])


def test_the_room_for_a_measurement_is_a_share_of_what_is_free(cuda):
    assert room(type(CARD)("gpu", "Some card", "cuda")) == int(cuda.memory[0] * FREE_SHARE)
    assert cuda.log == [("empty_cache",)]


def test_the_clock_for_the_card_that_is_here_is_decided_once(cuda):
    cold_cache._torch_clock.cache_clear()
    card = type(CARD)("gpu", "Some card", "cpu", l2_bytes=2**14)
    clock, found = cold_cache.gpu_clock(card)
    assert isinstance(clock.gpu, TorchGpu) and clock.gpu._flush_bytes == 2**15
    assert found.bytes_read == 2**14
    assert cuda.log[-1] == ("empty_cache",)
    cuda.log.clear()
    assert cold_cache.gpu_clock(card) == (clock, found)
    assert cuda.log == []
    cold_cache._torch_clock.cache_clear()


def test_the_host_s_clock_goes_on():
    card = TorchGpu("cpu")
    assert 0 <= card.now() <= card.now()


def test_the_clock_runs_on_torch_s_events_from_end_to_end(cuda):
    timing = GraphClock(TorchGpu("cpu")).time(cuda.work(), 1e-9)
    assert timing.seconds == 2e-3  # of the fake: two milliseconds an event
    assert timing.way == "graph"
    assert cuda.log[-4:] == [("event", "main"), ("replay", "main"), ("event", "main"), ("synchronize",)]


def test_torch_has_what_is_asked_of_it():
    graph = inspect.signature(torch.cuda.graph.__init__)
    graph.bind(None, "graph", stream=None, capture_error_mode="thread_local")
    inspect.signature(torch.cuda.Event.__new__).bind(torch.cuda.Event, enable_timing=True)
    asked = {name for name in vars(FakeCuda) if not name.startswith("_")} - {"work"}
    fields = {"available", "log", "milliseconds", "done", "capturing", "memory"}
    assert {name for name in asked - fields if not hasattr(torch.cuda, name)} == set()
    assert hasattr(torch.cuda.CUDAGraph, "replay") and hasattr(torch.cuda.Stream, "wait_stream")

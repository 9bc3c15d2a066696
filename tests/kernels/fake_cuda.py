"""In the place of torch.cuda: it does nothing, remembers what it was asked, and refuses what torch would."""

import contextlib
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Stream:
    cuda: Any
    name: str = "aside"

    def wait_stream(self, other):
        self.cuda.log.append(("wait", self.name, other.name))


@dataclass(eq=False)
class Event:
    cuda: Any
    enable_timing: bool
    at: float | None = None

    def record(self):
        self.cuda.milliseconds += 2.0
        self.at = self.cuda.milliseconds
        self.cuda.log.append(("event", self.cuda.current.name))

    def elapsed_time(self, other):
        """Milliseconds, as torch's."""
        if not (self.enable_timing and other.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if None in (self.at, other.at) or not self.cuda.done:
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return other.at - self.at


@dataclass(eq=False)
class Graph:
    cuda: Any
    captured: bool = False

    def replay(self):
        assert self.captured, "a graph that was never recorded has nothing to start"
        self.cuda.log.append(("replay", self.cuda.current.name))


@dataclass
class FakeCuda:
    """log: what happened, in order, with the stream it happened on. available: whether there is a GPU."""

    available: bool = True
    log: list[tuple[str, ...]] = field(default_factory=list)
    milliseconds: float = 0.0
    done: bool = True
    capturing: bool = False
    memory: tuple[int, int] = (30 * 2**20, 80 * 2**20)  # free, and all

    def __post_init__(self):
        self.main = self.current = Stream(self, "main")

    def is_available(self):
        return self.available

    def current_stream(self):
        return self.current

    def Stream(self):  # noqa: N802 - torch's name
        return Stream(self)

    def Event(self, enable_timing=False):  # noqa: N802 - torch's name
        self.done = False
        return Event(self, enable_timing)

    def CUDAGraph(self):  # noqa: N802 - torch's name
        return Graph(self)

    def synchronize(self):
        if self.capturing:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore words")
        self.done = True
        self.log.append(("synchronize",))

    @contextlib.contextmanager
    def stream(self, one):
        before, self.current = self.current, one
        try:
            yield
        finally:
            self.current = before

    @contextlib.contextmanager
    def graph(self, cuda_graph, stream=None, capture_error_mode="global"):
        """As torch's: where a capture fails, the capturing stream stays the current one."""
        self.synchronize()
        before, self.current, self.capturing = self.current, stream or Stream(self, "torch's own"), True
        self.log.append(("capture", self.current.name, capture_error_mode))
        try:
            yield
        finally:
            self.capturing = False
        cuda_graph.captured = True
        self.current = before

    def mem_get_info(self):
        return self.memory

    def empty_cache(self):
        self.log.append(("empty_cache",))

    def work(self, result=None):
        """A work that says on which stream it ran, and whether it was only recorded."""

        def run():
            self.log.append(("recorded" if self.capturing else "ran", self.current.name))
            return result() if result else None

        return run

"""All that a clock asks of a GPU, as one small object: torch's, or one that is simulated.

Nothing else of this rung talks to a card while it times, so that a simulated stream
(`kernels.evidence.rehearsal.stream`) can take the card's place and every line can be tried without one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kernels.contract.errors import Unsupported

FLUSH_AT_LEAST = 256 * 2**20  # larger than the last-level cache of every card but MI300X's
WARM_UPS = 2  # runs of a work on the stream that it will be captured on: the first one may compile

Work = Callable[[], Any]


class NotCaptured(Unsupported):
    """A work that can't be recorded in a CUDA graph; the message says why."""


class Gpu(Protocol):
    """A card with one stream of work, and the clock of the host that fills it. Times are in seconds."""

    def now(self) -> float:
        """The host's clock."""

    def event(self) -> Any:
        """A mark that can be set on the stream."""

    def record(self, event: Any) -> None:
        """Set `event` behind all that the stream was given so far."""

    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds of the card's time between two events that it has reached."""

    def synchronize(self) -> None:
        """Wait until the card has done all that it was given; its errors come out here."""

    def nothing(self) -> None:
        """Start a kernel that does nothing: what a clock reads of it is the start's and the clock's own."""

    def captured(self, work: Work) -> Work:
        """The launches of `work`, recorded once, as something that starts them all at once.

        Raises NotCaptured, saying why, for a work that waits for its own results, say.
        """

    def overwrite(self) -> None:
        """Leave nothing of earlier work in the last-level cache: it is full of lines to write back."""

    def clean(self) -> None:
        """As `overwrite`, and then leave only lines that need not be written back."""

    def free_bytes(self) -> int:
        """Memory that a tensor could still have."""

    def total_bytes(self) -> int:
        """Memory of the card."""

    def release(self) -> None:
        """Give back memory that nobody uses, and that is only kept for later."""


def flush_bytes(l2_bytes: int | None) -> int:
    """Bytes to overwrite so that nothing of the last run is left in the last-level cache."""
    return max(FLUSH_AT_LEAST, 2 * (l2_bytes or 0))


def _told(work: Work, refused: list[Exception]) -> Any:
    """The results of `work`; what it raises goes into `refused`, too."""
    try:
        return work()
    except Exception as error:
        refused.append(error)
        raise


@dataclass(frozen=True)
class Replay:
    """A captured work. Its results lie in the graph's own memory, and are kept as long as this is."""

    graph: Any
    results: Any

    def __call__(self) -> Any:
        """Start all launches; the results are those of the latest start."""
        self.graph.replay()
        return self.results


class TorchGpu:
    """The GPU that torch calls `device`, on torch's current stream; CUDA's and ROCm's alike."""

    def __init__(self, device: str = "cuda", l2_bytes: int | None = None) -> None:
        import torch  # here and not above: who only reads records or plans needs none

        self._torch, self._device = torch, device
        self._flush_bytes = flush_bytes(l2_bytes)
        self._buffers: tuple[Any, Any, Any] | None = None
        self._one: Any = None  # what the kernel that does nothing is given

    def now(self) -> float:
        return time.perf_counter()

    def event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def record(self, event: Any) -> None:
        event.record()

    def elapsed(self, start: Any, end: Any) -> float:
        return start.elapsed_time(end) / 1e3

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def nothing(self) -> None:
        from kernels import noop  # as late as torch

        if self._one is None:
            self._one = self._torch.zeros(1, device=self._device)
        noop.noop(self._one)

    def captured(self, work: Work) -> Work:
        """See Gpu. Warm and compiled before it is recorded, on a stream of its own, as torch asks for."""
        cuda = self._torch.cuda
        if not cuda.is_available():
            raise NotCaptured("CUDA graphs need a GPU, and there is none here; run the step eagerly.")
        here, aside = cuda.current_stream(), cuda.Stream()
        aside.wait_stream(here)
        graph = cuda.CUDAGraph()
        # torch leaves its capturing stream the current one where a capture fails; this puts it back.
        with cuda.stream(aside):
            for _ in range(WARM_UPS):
                work()
            cuda.synchronize()  # what is wrong with the work itself comes out here, not as a failed capture
            refused: list[Exception] = []
            try:
                # Other threads may go on allocating: only what this one does counts.
                with cuda.graph(graph, stream=aside, capture_error_mode="thread_local"):
                    results = _told(work, refused)
            except RuntimeError as error:
                # As the capture ends torch says that something failed in it; what it was came before.
                reason = next(iter(refused), error)
                raise NotCaptured(str(reason).strip().partition("\n")[0]) from error
        here.wait_stream(aside)
        return Replay(graph, results)

    def overwrite(self) -> None:
        self._scratch()[0].zero_()

    def clean(self) -> None:
        self.overwrite()
        _, untouched, total = self._scratch()
        self._torch.sum(untouched, dim=0, out=total)

    def free_bytes(self) -> int:
        return int(self._torch.cuda.mem_get_info()[0])

    def total_bytes(self) -> int:
        return int(self._torch.cuda.mem_get_info()[1])

    def release(self) -> None:
        self._torch.cuda.empty_cache()

    def _scratch(self) -> tuple[Any, Any, Any]:
        """One buffer to write, one that is only ever read, and a place for its sum."""
        if self._buffers is None:
            torch, count = self._torch, self._flush_bytes // 4
            written = torch.empty(count, dtype=torch.float32, device=self._device)
            read = torch.zeros(count, dtype=torch.float32, device=self._device)
            self._buffers = written, read, torch.empty((), dtype=torch.float32, device=self._device)
        return self._buffers

"""Where a child process measures: the card that is here, its clock, and what talks to it.

Which bench, is a name in the request, so that a card that is pretended can take the place of this one
in tests and in a rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from kernels.contract.errors import Unsupported
from kernels.evidence.timed.clocks import Clock, GraphClock
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.gpu import Gpu, TorchGpu
from kernels.evidence.timed.machine import Device, gpu_here, no_gpu, why_not_timed

HERE = "kernels.measure.bench:here"


@dataclass(frozen=True)
class Bench:
    """A device with its clock. gpu: see kernels.evidence.timed.gpu. facts: what a record keeps of the clock.

    make_clock: the clock is made when it is first needed, as it takes memory and measures by itself.
    inside: a block in which this card is the one of this process. timing: one in which nobody reads results.
    """

    device: Device
    make_clock: Callable[[], tuple[Clock, dict[str, Any]]]
    gpu: Gpu
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext
    timing: Callable[[], AbstractContextManager[Any]] = nullcontext
    made: list[Any] = field(default_factory=list)

    def clock(self) -> Clock:
        """Its clock, made once."""
        if not self.made:
            self.made.append(self.make_clock())
        return self.made[0][0]

    @property
    def facts(self) -> dict[str, Any]:
        """What making the clock found out: how a cold cache is made."""
        self.clock()
        return dict(self.made[0][1])

    def lost(self) -> str:
        """Why nothing more can be done in this process, the driver's words; "" if it can.

        After an illegal access every call fails, until the process ends.
        """
        try:
            self.gpu.synchronize()
            self.gpu.release()
        except Exception as error:  # noqa: BLE001 - whatever it is, the context is gone
            return str(error).strip().partition("\n")[0] or type(error).__name__
        return ""


def describe() -> tuple[Device | None, str]:
    """The card that is here, and why nothing can be timed on it, or ""."""
    device = gpu_here()
    return device, why_not_timed(device) if device else no_gpu()


def here(cold: Mapping[str, Any] | None = None) -> Bench:
    """The first GPU that torch can use. Raises Unsupported where nothing can be timed.

    cold: what another process of this run found a cold cache to be (see timed.cold_cache), if one did.
    """
    device, reason = describe()
    if device is None or reason:
        raise Unsupported(f"Nothing to measure: {reason}.")
    gpu = TorchGpu(device.torch_device, device.l2_bytes)

    def clock() -> tuple[Clock, dict[str, Any]]:
        if cold:
            return GraphClock(gpu, cold["kept"]), dict(cold)
        made, found = gpu_clock(device, gpu)
        return made, found.as_record()

    return Bench(device, clock, gpu)

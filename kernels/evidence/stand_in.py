"""A stand-in for Triton's driver: it says which chip there is, and there is none."""

from __future__ import annotations

import re
from typing import Any

from kernels.contract.targets import Target


class StandIn:
    """As much of a Triton driver as compiling asks for."""

    def __init__(self, target: Target) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(target.backend, target.arch, target.warp_size)
        self._device = int(re.sub(r"\D", "", str(target.arch)))  # one JIT cache for each target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return self._device

    def get_current_stream(self, device: int | None = None) -> int:
        return 0


def activate(target: Target) -> None:
    """Have Triton compile for `target` from now on in this process, whatever is here."""
    from triton.runtime import driver

    driver.set_active(StandIn(target))

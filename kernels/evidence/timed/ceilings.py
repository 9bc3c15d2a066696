"""The two ceilings of a GPU, measured in the same run as the kernels that are held against them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from book import roofline
from kernels.contract.experiment import Experiment
from kernels.evidence.timed.clocks import Clock
from kernels.evidence.timed.machine import Device

STREAM_BYTES = 2**30  # of each tensor that the bandwidth ceiling moves
MATMUL_SIZE = 8192  # rows, columns and depth of the arithmetic ceiling's product
FREE_SHARE = 0.7  # of the free memory that a measurement may take


@dataclass(frozen=True)
class Ceilings:
    """What this device can do, measured now: bytes/s and FLOP/s, each with what reached it.

    bandwidths, peaks: every candidate by name; `bandwidth` and `peak` are the best of them.
    """

    dtype: str
    bandwidth: float
    bandwidth_by: str
    peak: float
    peak_by: str
    bandwidths: Mapping[str, float]
    peaks: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def roof(self, name: str) -> roofline.Roof:
        """The measured roof, for the figures."""
        return roofline.Roof(name, self.peak, self.bandwidth)


def ceilings(device: Device, dtype: str, clock: Clock) -> Ceilings:
    """Measure this GPU's bandwidth and its arithmetic in `dtype`, by torch and by our kernels.

    Bandwidth: copy and triad and a plain read. Arithmetic: torch.matmul, and our `matmul` where
    Triton has matrix instructions; for fp32 the multiply-add chain as well. The best one counts.
    """
    bandwidths = _bandwidths(device, clock)
    peaks, notes = _peaks(device, dtype, clock)
    best_bandwidth, best_peak = max(bandwidths, key=bandwidths.get), max(peaks, key=peaks.get)
    return Ceilings(
        dtype,
        bandwidths[best_bandwidth],
        best_bandwidth,
        peaks[best_peak],
        best_peak,
        bandwidths,
        peaks,
        tuple(notes),
    )


def _bandwidths(device: Device, clock: Clock) -> dict[str, float]:
    import torch

    bytes_each = min(STREAM_BYTES, room(device) // 4)
    a, b, y = (torch.randn(bytes_each // 4, device=device.torch_device) for _ in range(3))
    works: dict[str, tuple[Callable[[], Any], int]] = {
        "torch copy": (lambda: y.copy_(a), 2),
        "torch triad": (lambda: torch.add(a, b, alpha=3.0, out=y), 3),
        "torch read": (lambda: a.sum(), 1),
    }
    return {name: tensors * bytes_each / clock.time(work).seconds for name, (work, tensors) in works.items()}


def _peaks(device: Device, dtype: str, clock: Clock) -> tuple[dict[str, float], list[str]]:
    import torch

    size, notes = MATMUL_SIZE, []
    while 3 * size * size * 8 > room(device) and size > 512:
        size //= 2
    if size < MATMUL_SIZE:
        notes.append(f"Little memory is free: the arithmetic ceiling's product is {size} wide.")
    peaks = {}
    torch_dtype = getattr(torch, {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[dtype])
    x, w = (torch.randn(size, size, device=device.torch_device).to(torch_dtype) for _ in range(2))
    peaks[f"torch.matmul {size}"] = 2 * size**3 / clock.time(lambda: x @ w).seconds
    ours = _ours("kernels.matmul")
    if device.target == "sm_75":
        notes.append("Triton has no tensor-core code for sm_75: the arithmetic ceiling is torch.matmul's.")
    elif ours is None:
        notes.append("This notebook carries no matmul of ours: the arithmetic ceiling is torch.matmul's.")
    elif dtype in ours.dtypes:
        peaks.update(_kernel_peak(ours, device, dtype, clock, dict.fromkeys(ours.sizes, size)))
    chain = _ours("kernels.fma_chain") if dtype == "fp32" else None
    if chain is not None:
        peaks.update(_kernel_peak(chain, device, dtype, clock, {"n": 2**24, "k": 512}))
    return peaks, notes


def _ours(module: str) -> Experiment | None:
    """A kernel of this repository; None in a lab's notebook that asks for a kernel like it."""
    if importlib.util.find_spec(module) is None:
        return None
    return importlib.import_module(module).experiment


def _kernel_peak(experiment: Experiment, device: Device, dtype: str, clock: Clock, sizes: dict) -> dict:
    inputs = experiment.inputs(**sizes, dtype=dtype, device=device.torch_device, seed=0)
    seconds = clock.time(lambda: experiment.run(**inputs)).seconds
    return {f"kernels.{experiment.name}": experiment.cost(**sizes, itemsize=4).flops / seconds}


def room(device: Device) -> int:
    """Bytes that a measurement on this GPU may take."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0] * FREE_SHARE)
    return int(device.free_bytes * FREE_SHARE)

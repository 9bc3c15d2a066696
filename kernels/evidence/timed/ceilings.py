"""The two ceilings of a GPU, measured in the same run as the kernels that are held against them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from book import roofline
from book.say import say
from kernels.contract.errors import Unsupported
from kernels.contract.experiment import Experiment
from kernels.evidence.timed import torch_products
from kernels.evidence.timed.clocks import Clock
from kernels.evidence.timed.gpu import TorchGpu
from kernels.evidence.timed.launched import OneRun
from kernels.evidence.timed.machine import Device

STREAM_BYTES = 2**30  # of each tensor that the bandwidth ceiling moves
MATMUL_SIZE = 8192  # rows, columns and depth of the arithmetic ceiling's product
FREE_SHARE = 0.7  # of the free memory that a measurement may take
DATASHEET = say("the datasheet, not measured")  # what a peak is by that no product of torch's could show


@dataclass(frozen=True)
class Ceilings:
    """What this device can do, measured now: bytes/s and FLOP/s, each with what reached it.

    dtype: of the arithmetic, which need not be what tensors are stored in. bandwidths, peaks: every
    candidate by name; `bandwidth` and `peak` are the best of them. Where no product can be timed in
    this dtype, `peaks` is empty, `peak` the card's dense datasheet and `peak_by` says so.
    """

    dtype: str
    bandwidth: float
    bandwidth_by: str
    peak: float
    peak_by: str
    bandwidths: Mapping[str, float]
    peaks: Mapping[str, float]
    notes: tuple[str, ...] = ()

    @property
    def peak_measured(self) -> bool:
        """Whether `peak` was reached here, and isn't the datasheet's."""
        return self.peak_by != DATASHEET

    def roof(self, name: str) -> roofline.Roof:
        """The measured roof, for the figures; its name says so where the peak was not measured."""
        if not self.peak_measured:
            name = say("{roof} (peak of the datasheet)", roof=name)
        return roofline.Roof(name, self.peak, self.bandwidth)


def ceilings(device: Device, dtype: str, clock: Clock) -> Ceilings:
    """Measure this GPU's bandwidth and its arithmetic in `dtype`, by torch and by our kernels.

    dtype: of the arithmetic; what computes on vector units asks for fp32, whatever it stores.
    Bandwidth: copy and triad and a plain read. Arithmetic: torch.matmul for floats of 16 and 32
    bits, torch._scaled_mm for fp8, torch._int_mm for int8, and our `matmul` where Triton has matrix
    instructions; for fp32 the multiply-add chain as well. The best one counts. Where torch has no
    product in `dtype`, a note says so and the peak is the datasheet's.

    Raises Unsupported, before anything is timed, for a dtype that the card has no arithmetic for,
    and catalog.UnknownName for a name that is no dtype.
    """
    if not device.has(dtype):
        raise Unsupported(
            f"dtype = {dtype!r}: {device.name} has no arithmetic for it; choose {', '.join(device.dtypes)}."
        )
    bandwidths = _bandwidths(device, clock)
    peaks, notes = _peaks(device, dtype, clock)
    if not peaks:
        peak, note = _datasheet(device, dtype, notes)
        by, notes = DATASHEET, [*notes, note]
    else:
        by = max(peaks, key=peaks.get)
        peak = peaks[by]
    fastest = max(bandwidths, key=bandwidths.get)
    return Ceilings(dtype, bandwidths[fastest], fastest, peak, by, bandwidths, peaks, tuple(notes))


def _datasheet(device: Device, dtype: str, notes: Sequence[str]) -> tuple[float, str]:
    """The dense peak of the card's row, FLOP/s, and a sentence that says whose number it is."""
    card = device.card()
    if card is None:
        raise Unsupported(
            f"dtype = {dtype!r}: nothing says how fast {device.name} is in it: {' '.join(notes)} And the "
            "catalog has no row of that card: add one, or choose another dtype."
        )
    peak = card.peak(dtype)
    return peak, say(
        "The arithmetic ceiling in {dtype} is the datasheet's {peak:.4g} FLOP/s of {card}.",
        dtype=dtype,
        peak=peak,
        card=card.short_name,
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
    size, notes = MATMUL_SIZE, []
    while 3 * size * size * 8 > room(device) and size > 512:
        size //= 2
    if size < MATMUL_SIZE:
        notes.append(
            say("Little memory is free: the arithmetic ceiling's product is {size} wide.", size=size)
        )
    works, note = torch_products.products(device, dtype, size)
    notes += [note] if note else []
    peaks: dict[str, float] = {}
    for name, work in works.items():
        try:
            peaks[f"{name} {size}"] = 2 * size**3 / clock.time(work).seconds
        except (RuntimeError, ValueError) as error:  # torch refuses a layout or a card in its own words
            if dtype in torch_products.PLAIN:
                raise
            reason = str(error).strip().partition("\n")[0]
            notes.append(
                say("{name} could not be timed in {dtype}: {reason}", name=name, dtype=dtype, reason=reason)
            )
    ours = _ours("kernels.matmul")
    if device.target == "sm_75" and peaks:
        notes.append(say("Triton has no tensor-core code for sm_75: the arithmetic ceiling is torch's."))
    elif ours is None and peaks:
        notes.append(say("This notebook carries no matmul of ours: the arithmetic ceiling is torch's."))
    elif ours is not None and device.target != "sm_75" and dtype in ours.dtypes:
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
    seconds = clock.time(OneRun(experiment, inputs, dtype, sizes)).seconds
    return {f"kernels.{experiment.name}": experiment.cost(**sizes, itemsize=4).flops / seconds}


def room(device: Device) -> int:
    """Bytes that a measurement on this GPU may take."""
    if device.torch_device == "cpu":  # a pretended card
        return int(device.free_bytes * FREE_SHARE)
    gpu = TorchGpu(device.torch_device)
    gpu.release()
    return int(gpu.free_bytes() * FREE_SHARE)

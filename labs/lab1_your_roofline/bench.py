"""The measuring bench of lab 1: seconds of five pieces of work on the machine that is here.

On a GPU the work is Triton kernels (yours for the dial), timed with events and the cache flushed.
On a CPU it is torch in fp32, timed with a wall clock. The bench gives seconds and sizes; turning
them into rates is the student's work. It remembers the best of each for the figure and the record.

    machine = bench.look()
    run = machine.copy()          # run.n, run.itemsize, run.seconds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from book import catalog, cost
from book.say import say
from kernels.contract import devices
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence import timed
from kernels.evidence.timed import cpu
from kernels.evidence.timed.ceilings import Ceilings, ceilings
from kernels.evidence.timed.clocks import Clock, WallClock
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.machine import Device, cpu_here, gpu_here, why_not_timed
from labs.kit import record

LINKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # of the dial, on a GPU
GPU_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
CPU_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SCALE, SHIFT = 0.984375, 0.015625  # of the dial: every element stays near 1
COUNTED = 2**14  # elements of the dial when its operations are counted


@dataclass
class Bench:
    """device, clock: what is timed and with what. dtype: of matrices; on a CPU everything is fp32.

    largest: bytes that one tensor may take. What was measured is kept in `bandwidths`, `peaks` (by
    dtype) and `sweeps`.
    """

    device: Device
    clock: Clock
    dtype: str
    largest: int
    bandwidths: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, dict[str, float]] = field(default_factory=dict)
    sweeps: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The catalogue's name of the card, "cpu", or what the driver calls a card that it lacks."""
        return self.device.accelerator or (self.device.name if self.on_gpu else "cpu")

    @property
    def itemsize(self) -> int:
        """Bytes of one number of a matrix."""
        return int(catalog.itemsize(self.dtype))

    @property
    def on_gpu(self) -> bool:
        """Is a GPU timed?"""
        return self.device.kind == "gpu"

    # ------------------------------------------------------------------------------ the two walls

    def copy(self) -> SimpleNamespace:
        """Time y = x on fp32 vectors larger than any cache: n, itemsize, seconds."""
        return self._stream("copy", 2)

    def triad(self) -> SimpleNamespace:
        """Time y = a + 3 b on fp32 vectors: n, itemsize, seconds."""
        return self._stream("triad", 3)

    def _stream(self, name: str, tensors: int) -> SimpleNamespace:
        if self.on_gpu:
            from kernels import stream

            n = min(2**28, self.largest // 4)
            experiment = {"copy": stream.experiment, "triad": stream.triad_experiment}[name]
            inputs = experiment.inputs(n=n, dtype="fp32", device=self.device.torch_device)
            timing = self.clock.time(lambda: experiment.run(**inputs))
        else:
            n = min(cpu.STREAM, self.largest // 4)
            timings = cpu.stream(self.clock, n=n)
            timing = timings[name]
            self.bandwidths["read"] = n * 4 / timings["read"].seconds
        self.bandwidths[name] = tensors * n * 4 / timing.seconds
        return SimpleNamespace(n=n, itemsize=4, seconds=timing.seconds)

    def matmul(self) -> SimpleNamespace:
        """Time a large product x[m, k] @ w[k, n] by torch: m, k, n, itemsize, seconds."""
        import torch

        size = 8192 if self.on_gpu else 2048
        while size * size * self.itemsize > self.largest:
            size //= 2
        where = self.device.torch_device
        x, w = (torch.randn(size, size, device=where).to(devices.TORCH_DTYPES[self.dtype]) for _ in range(2))
        seconds = self.clock.time(lambda: x @ w).seconds
        self.peaks.setdefault(self.dtype, {})["torch.matmul"] = 2 * size**3 / seconds
        if self.on_gpu:  # the layer's own kernel is held to more than one candidate
            self._learn(ceilings(self.device, self.dtype, self.clock))
        return SimpleNamespace(m=size, k=size, n=size, itemsize=self.itemsize, seconds=seconds)

    # -------------------------------------------------------------------------- the dial, the layer

    def dial(self, launcher: Callable[..., Any]) -> list[dict[str, Any]]:
        """Turn the dial from the slope to the roof; one point for each setting.

        On a GPU: `launcher(x, links)` is checked and timed. On a CPU: torch multiplies groups of
        numbers by small matrices, which is a dial too, and the launcher is not run.
        """
        if self.on_gpu:
            n = min(2**26, self.largest // 4)
            points, name, axis = self._turned(launcher, n), "own fma_chain", "k"
        else:
            points = [cpu.dial(self.clock, width) for width in cpu.WIDTHS]
            name, axis = "torch dial", "k"
        return self._kept(name, axis, "fp32", points)

    def _turned(self, launcher: Callable[..., Any], n: int) -> list[dict[str, Any]]:
        import torch

        short = torch.randn(1001, device=self.device.torch_device)
        want = short.double()
        for _ in range(3):
            want = want * SCALE + SHIFT
        if not torch.allclose(launcher(short, 3).double(), want, atol=1e-5):
            raise PhysicsDisagrees("The dial is not right at n = 1,001: its times would mean nothing.")
        x, points = torch.randn(n, device=self.device.torch_device), []
        for links in LINKS:
            timing = self.clock.time(lambda links=links: launcher(x, links))
            points.append(cpu.timed_point(cost.fma_chain(n, links, 4), timing, n=n, k=links))
        return points

    def linear(self, width: int, rows: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Time a linear layer with k = n = width at these row counts; one point for each."""
        if not self.on_gpu:
            points = cpu.linear(self.clock, width, rows or CPU_ROWS)
            return self._kept("torch linear", "m", self.dtype, points)
        if self.device.target == "sm_75":  # no tensor-core code from Triton
            points = [self._torch_linear(width, m) for m in rows or GPU_ROWS]
            return self._kept("torch linear", "m", self.dtype, points)
        from kernels import linear

        tops = self.ceilings(self.dtype)
        sizes = [{"m": m, "k": width, "n": width} for m in rows or GPU_ROWS]
        made = [timed.measure(linear.experiment, self.device, self.dtype, s, self.clock, tops) for s in sizes]
        points = [{**one.as_record(), **one.sizes} for one in made]
        return self._kept("linear", "m", self.dtype, points)

    def _torch_linear(self, width: int, m: int) -> dict[str, Any]:
        import torch

        where, dtype = self.device.torch_device, devices.TORCH_DTYPES[self.dtype]
        x, w = (torch.randn(rows, width, device=where).to(dtype) for rows in (m, width))
        timing = self.clock.time(lambda: torch.nn.functional.linear(x, w))
        return cpu.timed_point(cost.linear(m, width, width, self.itemsize), timing, m=m, k=width, n=width)

    def count(self, launcher: Callable[..., Any], links: Sequence[int] = (1, 4, 16, 64)) -> list[dict]:
        """Run the dial in Triton's interpreter; each point's "intensity" is counted FLOPs over counted bytes.

        [] where kernels are compiled, or where there is no Triton.
        """
        if devices.MODE != "interpreted":
            return []
        import torch

        from kernels.evidence.counted.interpreter import count

        x, points = torch.randn(COUNTED), []
        for k in links:
            with count() as tally:
                launcher(x, k)
            moved = sum(t.unique for t in (*tally.reads().values(), *tally.writes().values()))
            points.append({"n": COUNTED, "k": k, "intensity": tally.alu_flops / moved, "flops_per_s": None})
        return points

    # ------------------------------------------------------------------------ picture and record

    def ceilings(self, dtype: str = "") -> Ceilings:
        """The best that was measured here in `dtype` (the matrices' own if left out)."""
        dtype = dtype or self.dtype
        bandwidths, peaks = dict(self.bandwidths), dict(self.peaks.get(dtype, {}))
        if not bandwidths or not peaks:
            raise ValueError("Nothing was measured yet: run copy(), triad() and matmul() first.")
        best, top = max(bandwidths, key=bandwidths.get), max(peaks, key=peaks.get)
        return Ceilings(dtype, bandwidths[best], best, peaks[top], top, bandwidths, peaks)

    def figure(self, *names: str, counted: Sequence[Mapping[str, Any]] = ()) -> Any:
        """The measured roofs, and under them the sweeps called "dial" or "linear", as far as measured."""
        from book.drawing import figures

        series = [self._series(kept) for name, kept in self.sweeps.items() if name in names]
        if counted:
            series.append({"rung": "counted", "label": say("counted, your kernel"), "points": list(counted)})
        dtypes = [self.sweeps[name]["dtype"] for name in names if name in self.sweeps] or [self.dtype]
        roofs = [self.ceilings(d).roof(say("measured here, {dtype}", dtype=d)) for d in dict.fromkeys(dtypes)]
        roof = roofs[0]
        alt = say(
            "The roofline of {device} as measured here: {bandwidth:.3g} GB/s, {peak:.3g} GFLOP/s, "
            "ridge at {ridge:.3g} FLOP/byte.",
            device=self.device.name,
            bandwidth=roof.bandwidth / 1e9,
            peak=roof.peak / 1e9,
            ridge=roof.ridge,
        )
        return figures.roofline(roofs, series, alt=alt)

    def _series(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        words = {"torch dial": say("the dial, torch"), "own fma_chain": say("your dial")}
        label = words.get(kept["experiment"], f"{kept['experiment']}, {kept['dtype']}")
        return {"rung": "timed", "label": label, "accelerator": None, "points": _possible(kept["points"])}

    def export(self, path: str | Path = "my-roofline.json", command: str = "lab1-your-roofline") -> Path:
        """Write what was measured as a record of the book; where it lies."""
        dtypes = dict.fromkeys([self.dtype, *(kept["dtype"] for kept in self.sweeps.values())])
        notes = (
            []
            if self.on_gpu
            else [
                say(
                    "{label}: torch's kernels in fp32, not this repository's.",
                    label=cpu.LABEL,
                )
            ]
        )
        tops = {dtype: self.ceilings(dtype) for dtype in dtypes}
        return record.export(path, self.device, tops, self.sweeps.values(), command=command, notes=notes)

    def _kept(self, name: str, axis: str, dtype: str, points: list[dict]) -> list[dict]:
        short = "linear" if name.endswith("linear") else "dial"
        self.sweeps[short] = {"experiment": name, "axis": axis, "dtype": dtype, "points": points}
        for p in _possible(points):
            at = f"{name}, {axis} = {p[axis]}"
            self.bandwidths[at] = p["bytes_per_s"]
            self.peaks.setdefault(dtype, {})[at] = p["flops_per_s"]
        return points

    def _learn(self, tops: Ceilings) -> None:
        self.bandwidths.update(tops.bandwidths)
        self.peaks.setdefault(tops.dtype, {}).update(tops.peaks)


def _possible(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that no alarm calls impossible."""
    return [p for p in points if not p.get("alarms")]


def look(device: Device | None = None, clock: Clock | None = None) -> Bench:
    """The bench for the GPU that is here, else for this CPU. device, clock: in their place (tests)."""
    import kernels

    gpu = device or gpu_here()
    if gpu is None or (device is None and why_not_timed(gpu)):
        return Bench(cpu_here(), clock or WallClock(), "fp32", 2**28)
    clock = clock or gpu_clock(gpu)[0]
    return Bench(gpu, clock, kernels.default_dtype(), int(gpu.free_bytes * 0.15))

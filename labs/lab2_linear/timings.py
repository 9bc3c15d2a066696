"""Lab 2: the student's kernel and torch, timed on this machine against its measured ceilings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from book import catalog, cost, roofline
from book.drawing import figures
from book.drawing.number_text import si
from book.drawing.tables import Column, Table, table
from book.say import say
from kernels.contract.experiment import Experiment
from kernels.contract.tensors import Tensor
from kernels.evidence import timed as on_gpu
from kernels.evidence.cpu import cpu_roofline
from kernels.evidence.timed import machine
from kernels.evidence.timed.ceilings import Ceilings, ceilings
from kernels.evidence.timed.cold_cache import gpu_clock
from kernels.evidence.timed.machine import Device
from labs.kit import record
from labs.kit.this_machine import ThisMachine
from labs.lab2_linear.cases import ITEMSIZE

Launcher = Callable[..., torch.Tensor]

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
WIDTH, OLD_CARDS_WIDTH = 8192, 4096
CPU_ROWS, CPU_WIDTHS = (1, 2, 8, 32, 128), (256,)


@dataclass(frozen=True)
class Timings:
    """A sweep of rows on this machine, against its measured ceilings.

    yours, torchs: points with m, k, n, seconds, intensity, FLOP/s and bytes/s; `yours` is empty where
    there is no GPU, since the interpreter's time means nothing. swept: the same as a record keeps them.
    """

    device: Device
    tops: Ceilings
    yours: Sequence[Mapping[str, Any]]
    torchs: Sequence[Mapping[str, Any]]
    swept: Mapping[str, Sequence[Any]]

    def _table(self) -> Table:
        yours = {p["m"]: p["seconds"] for p in self.yours}
        rows = []
        for p in self.torchs:
            work = cost.linear(p["m"], p["k"], p["n"], catalog.itemsize(self.tops.dtype))
            floor = roofline.time(work.flops, work.bytes, self.tops.peak, self.tops.bandwidth)
            own = yours.get(p["m"])
            rows.append(
                {
                    "m": p["m"],
                    "floor": si(floor, "s"),
                    "torch": si(p["seconds"], "s"),
                    "yours": si(own, "s") if own else say("not timed here"),
                    "share": f"{floor / (own or p['seconds']):.0%}",
                }
            )
        share = say("share of the roof, yours") if self.yours else say("share of the roof, torch")
        columns = [
            "m",
            Column("floor", say("floor, measured roof")),
            Column("torch", say("torch")),
            Column("yours", say("yours")),
            Column("share", share),
        ]
        width, tops = self.torchs[0]["k"], self.tops
        words = (
            f"{self.device.name}, {tops.dtype}, k = n = {width:,}: "
            f"{si(tops.bandwidth, 'B/s')} ({tops.bandwidth_by}), {si(tops.peak, 'FLOP/s')} ({tops.peak_by})"
        )
        return table(rows, columns, words)

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def __repr__(self) -> str:
        return repr(self._table())

    def figure(self) -> Any:
        """The measured roof, torch's points and yours."""
        series = [("torch", self.torchs), (say("your kernel"), self.yours)]
        kind = "GPU" if self.device.kind == "gpu" else "CPU"
        return figures.roofline(
            [self.tops.roof(say("this {kind}, measured", kind=kind))],
            [{"rung": "timed", "label": name, "points": list(points)} for name, points in series if points],
            alt=(
                say(
                    "The measured roofline of {device} with a linear layer at {count} row counts: from "
                    "{low:.3g} to {high:.3g} FLOP/byte torch goes from {slow} to {fast}.",
                    device=self.device.name,
                    count=len(self.torchs),
                    low=self.torchs[0]["intensity"],
                    high=self.torchs[-1]["intensity"],
                    slow=si(self.torchs[0]["flops_per_s"], "FLOP/s"),
                    fast=si(self.torchs[-1]["flops_per_s"], "FLOP/s"),
                )
            ),
        )

    def export(self, path: str | Path) -> str:
        """Keep what a GPU did as a record of the book, and say where it lies."""
        if not self.yours:
            return say(
                "No GPU, so your kernel has no times to keep. On a GPU this writes a record of the book."
            )
        tops = {self.tops.dtype: self.tops}
        return say(
            "Kept in {path}.",
            path=record.export(path, self.device, tops, self._sweeps(), command="lab2-linear"),
        )

    def _sweeps(self) -> list[dict[str, Any]]:
        fixed = {"k": self.torchs[0]["k"], "n": self.torchs[0]["n"]}
        common = {"axis": "m", "dtype": self.tops.dtype, "fixed": fixed}
        return [{"experiment": name, "points": list(points), **common} for name, points in self.swept.items()]


def timed(launcher: Launcher, here: ThisMachine) -> Timings:
    """Time `launcher` and torch from 1 to 4,096 rows on the GPU; without one, torch's linear on the CPU."""
    device = machine.gpu_here() if here.mode == "gpu" else None
    if device is None:
        cpu = cpu_roofline(size=WIDTH, rows=CPU_ROWS, widths=CPU_WIDTHS, budget=0.1)
        return Timings(machine.cpu_here(), cpu.ceilings, (), cpu.linear, {"torch linear": cpu.linear})
    clock, _ = gpu_clock(device)
    tops = ceilings(device, here.dtype, clock)
    small = device.target == "sm_75" or here.largest < 2 * ITEMSIZE * WIDTH**2
    wide = dict.fromkeys(("k", "n"), OLD_CARDS_WIDTH if small else WIDTH)
    with warnings.catch_warnings():  # the result is checked in torch's deterministic mode, which cuBLAS minds
        warnings.filterwarnings("ignore", message="(?is).*deterministic")
        swept = {
            f"{whose} linear": [
                on_gpu.measure(experiment(run), device, here.dtype, {"m": m, **wide}, clock, tops, 0.2)
                for m in ROWS
            ]
            for whose, run in (("torch", torch.matmul), ("own", launcher))
        }
    points = {name: [{**vars(p), **p.sizes} for p in its] for name, its in swept.items()}
    return Timings(device, tops, points["own linear"], points["torch linear"], swept)


def experiment(run: Launcher | None = None) -> Experiment:
    """The linear layer with somebody's launcher in it: nobody knows its plan, nor what it will launch."""
    return Experiment(
        name="linear",
        sizes=("m", "k", "n"),
        axis="m",
        tensors={"x": Tensor("m k"), "w": Tensor("k n"), "y": Tensor("m n", out=True)},
        run=run if run is None else lambda x, w: run(x, w),
        reference=lambda x, w: x.double() @ w.double(),
        cost=cost.linear,
        plan=lambda **_: None,
        issued=lambda _, **sizes: cost.linear(**sizes),
        launches=lambda *_, **__: (),
        sweep={},
    )

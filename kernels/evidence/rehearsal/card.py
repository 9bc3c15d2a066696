"""A card to rehearse on: kernels are executed as compiled on this CPU, and how long they take is made up.

Triton starts them through its own launcher on an imaginary driver (`executed.imaginary_card`), torch's
operations run on the CPU, and a simulated stream (`stream.SimulatedGpu`) is told of both. While a clock
times, nobody reads results, so nothing is computed: each start only takes its time on that stream. Races
that the execution shows are raised, as wrong results are; fences that Triton leaves out are the rung
"executed"'s to name.

How long is true: the longer of bytes over the bandwidth and FLOPs over the dense peak, both of the
datasheet times a share of it, and on top what starting a kernel takes. Of a run of an experiment bytes
and FLOPs are the formula's, shared out evenly among its launches; of other launches, and of torch's
operations, the bytes are those of the tensors that they are given.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from book import catalog, roofline
from kernels.contract.errors import PhysicsDisagrees
from kernels.contract.targets import target
from kernels.evidence.executed.imaginary_card import Launched, card
from kernels.evidence.executed.races import UNFENCED
from kernels.evidence.rehearsal.stream import Costs, Faults, Kernel, SimulatedGpu
from kernels.evidence.rehearsal.torch_work import Operation, TorchWork
from kernels.evidence.timed import peak_of
from kernels.evidence.timed.clocks import Clock, Timing
from kernels.evidence.timed.launched import OneRun
from kernels.evidence.timed.machine import Device

FREE = 2**30  # bytes that measurements may take: tensors lie in this machine's memory


@dataclass(frozen=True)
class Truth:
    """How long things take. kernels, torch: share of the datasheet's rates that ours and torch's reach.

    start: s of the card for starting a kernel, be it one that does nothing.
    """

    kernels: float = 0.75
    torch: float = 0.8
    start: float = 2e-6


@dataclass(frozen=True)
class Started(Kernel):
    """What the simulated card is given. label: whose launch; shapes: of its tensors, by argument."""

    label: str = ""
    shapes: Mapping[str, tuple[int, ...]] | None = None


class RehearsalCard:
    """A card of the chip `name` (of `executed.EXECUTABLE`). truth: how long things take; faults: what fails;
    costs: of the host's calls.

    gpu: its simulated stream, host and cache. `here` makes it the card of this process.
    """

    def __init__(self, name: str, truth: Truth, faults: Faults, costs: Costs) -> None:
        self.target, self.truth = target(name), truth
        self.row = catalog.accelerator(self.target.accelerator)
        self.gpu = SimulatedGpu(
            lambda started: started,
            bandwidth=truth.torch * self.row.bandwidth,
            l2_bytes=self.row.l2_bytes or 2**25,
            memory=FREE,
            faults=faults,
            costs=dataclasses.replace(costs, nothing=costs.nothing or truth.start),
        )
        self._timing = False
        self._heard: int | None = None  # launches of a work that is only listened to
        self._run: tuple[Kernel, ...] = ()  # what each launch of the run that is timed takes, in order
        self._next = 0  # of these

    @property
    def device(self) -> Device:
        """The card as the rest of the book sees it."""
        return Device(
            "gpu",
            f"imaginary {self.row.short_name}",
            "cpu",
            self.row.id,
            self.target.name,
            self.row.usable,
            FREE,
            self.row.l2_bytes,
            self.row.sm_count or 0,
            architecture=self.target.name,
            imaginary=True,
        )

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Inside, kernels are planned for it, and started on it."""
        with card(self.target, count=False, starts=self._starts, ended=self._ended) as imagined:
            self._launched = imagined.launched
            yield

    @contextlib.contextmanager
    def timing(self, work: Callable[[], Any] | None = None) -> Iterator[None]:
        """Inside, nobody reads results: what is started takes its time and computes nothing."""
        before, self._timing = self._timing, True
        try:
            with TorchWork(self._torch, self.gpu.synchronize):
                self._run, self._next = self._launches_of(work) if isinstance(work, OneRun) else (), 0
                yield
        finally:
            self._timing, self._run = before, ()

    def _launches_of(self, run: OneRun) -> tuple[Kernel, ...]:
        """What each launch of this run takes: it is started once, and only listened to."""
        self._heard = 0
        try:
            run()
            count = self._heard
        finally:
            self._heard = None
        cost = run.experiment.formula(run.dtype, **run.sizes)
        peak, share = peak_of(run.experiment, self.row, run.dtype), self.truth.kernels
        flops = cost.flops if peak else 0
        whole = roofline.time(flops, cost.bytes, (peak or 1.0) * share, self.row.bandwidth * share)
        return tuple(
            Kernel(whole / count, int(cost.bytes / count), f"{run.experiment.key} {i}", self.truth.start)
            for i in range(count)
        )

    def _starts(self, label: str, tensors: Mapping[str, torch.Tensor]) -> bool:
        """A launch of ours; whether it is to be executed."""
        if self._heard is not None:
            self._heard += 1
            return False
        shapes = {name: tuple(x.shape) for name, x in tensors.items()}
        known = self._of_run() if self._run else self._moving(tensors)
        self.gpu.launch(Started(**vars(known), label=label, shapes=shapes))
        return not self._timing

    def _of_run(self) -> Kernel:
        """The next launch of the run that is timed, which starts over again."""
        self._next += 1
        return self._run[(self._next - 1) % len(self._run)]

    def _moving(self, tensors: Mapping[str, torch.Tensor]) -> Kernel:
        """What a launch takes that moves all of these tensors once."""
        sizes = {x.data_ptr(): x.numel() * x.element_size() for x in tensors.values()}
        moved = sum(sizes.values())
        seconds = moved / (self.truth.kernels * self.row.bandwidth)
        return Kernel(seconds, moved, str(max(sizes, key=sizes.__getitem__, default="")), self.truth.start)

    def _torch(self, one: Operation) -> None:
        """An operation of torch's."""
        if self._heard is not None:
            return
        peak = self.row.peaks.get(one.dtype, self.row.peaks["fp32"]) * self.truth.torch
        seconds = roofline.time(one.flops, one.moved, peak, self.gpu.bandwidth)
        self.gpu.launch(Started(seconds, one.moved, one.data, self.truth.start, one.name))

    def _ended(self, one: Launched) -> None:
        self._launched.clear()  # nobody counts here, and each keeps its kernel
        if races := [race for race in one.outcome.races if UNFENCED not in race]:
            raise PhysicsDisagrees(f"{one.label}: {len(races)} data races, the first: {races[0]}")


class RehearsalClock:
    """A clock of a card that is rehearsed on: what it times is started, and not computed."""

    def __init__(self, card: RehearsalCard, clock: Clock) -> None:
        self.card, self.clock = card, clock

    def time(self, work: Callable[[], Any], budget: float = 0.3) -> Timing:
        """As `clock` does."""
        with self.card.timing(work):
            return self.clock.time(work, budget)

"""A card that is not there, for Triton's own launch path: its driver compiles, refuses and "runs" kernels.

`kernel[grid](...)` binds, specialises and compiles as on a card; what Triton then hands to the driver is
executed by `machine.launch` on tensors that live on the CPU. No C compiler and no CUDA are needed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kernels.contract import devices
from kernels.contract.errors import CardRefuses
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.evidence.compiled.machine_code import StandIn
from kernels.evidence.executed import machine, ptx
from kernels.evidence.executed.forms import decode
from kernels.evidence.executed.memory import GlobalMemory
from kernels.evidence.executed.ptx import NotExecutable

MAX_GRID = (2**31 - 1, 65_535, 65_535)  # CUDA C++ programming guide, "Technical specifications"
MAX_THREADS = 1024  # of a program


@dataclass(frozen=True)
class Launched:
    """One launch that ran: what it was called, how many programs, what they left."""

    label: str
    programs: int
    outcome: machine.Outcome


@dataclass
class Card:
    """A card that is imagined. launched: what ran on it so far; the rest are options of `machine.launch`.

    named: tensors that are known beforehand, by the names that their bytes go by; others are called after
    the kernel argument that first saw them, or as their launch says (`Launch.names`).
    change(text) -> text: of the PTX before it is decoded, for tests that take a synchronisation out.
    """

    target: Target
    order: str = "forward"
    seed: int = 0
    count: bool = True
    races: bool = True
    change: Any = None
    launched: list[Launched] = field(default_factory=list)
    _names: dict[int, str] = field(default_factory=dict)  # of storages, by where they begin
    _starting: list[Launch] = field(
        default_factory=list
    )  # the newest is the one that comes to the driver next

    def know(self, named: Mapping[str, Any]) -> None:
        """Tensors among these go by these names from now on."""
        for name, tensor in named.items():
            if isinstance(tensor, torch.Tensor):
                self._names.setdefault(tensor.untyped_storage().data_ptr(), name)


# The cards that are imagined, the innermost last. Triton keeps a compiled kernel with its launcher, so a
# launcher asks here whose it is now.
_cards: list[Card] = []


@contextlib.contextmanager
def card(target: Target, **options: Any) -> Iterator[Card]:
    """Inside, kernels run on an imaginary card of this architecture.

    Raises NotExecutable for an architecture that none of this is known of.
    """
    if target.backend != "cuda" or target.name == "sm_75":
        raise NotExecutable(
            f"target = {target.name!r}: only code for sm_80 and later NVIDIA chips runs here."
        )
    if devices.MODE != "compiled":
        raise RuntimeError(
            f"Triton's mode = {devices.MODE}: compiled code is executed where kernels are compiled; use "
            "`executed.run`, whose child process is, or set TRITON_INTERPRET=0 before Triton is imported."
        )
    from triton.runtime import driver

    here = Card(target, **options)
    before = driver._active
    driver.set_active(_Driver(target))
    _cards.append(here)
    try:
        with devices.imagined(target), devices.observed(here._starting.append):
            yield here
    finally:
        _cards.remove(here)
        driver._active = before  # also where Triton had not looked for one yet


class _Driver(StandIn):
    """What Triton asks of a driver when it launches, beyond what it asks when it compiles."""

    launcher_cls: Any

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.utils = _Utils(target)
        self.launcher_cls = _Launcher


class _Utils:
    """The card's limits, and modules that are nothing but a name."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {
            "max_shared_mem": self.target.max_shared_per_block,
            "max_num_regs": self.target.registers,
            "multiprocessor_count": self.target.sm_count,
            "warpSize": self.target.warp_size,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        return object(), name, 0, 0, MAX_THREADS  # module, function, registers, spills, most threads


class _Launcher:
    """What CompiledKernel calls with a grid and the arguments."""

    def __init__(self, source: Any, metadata: Any) -> None:
        from triton.runtime.cache import get_cache_manager

        path = get_cache_manager(metadata.hash).get_file(f"{metadata.name}.ptx")
        if path is None:
            raise NotExecutable(f"{metadata.name}: Triton's cache has no PTX of it; let it write its cache.")
        self.text, self.metadata = Path(path).read_text(encoding="utf-8"), metadata
        names = source.fn.arg_names
        signature = {(n if isinstance(n, str) else names[n]): kind for n, kind in source.signature.items()}
        self.passed = [name for name in names if signature.get(name, "constexpr") != "constexpr"]
        self.names = names

    def __call__(self, x: int, y: int, z: int, *rest: Any) -> None:
        grid, values = (x, y, z), rest[len(rest) - len(self.names) :]
        for size, most, axis in zip(grid, MAX_GRID, "xyz", strict=True):
            if size > most:
                raise CardRefuses(
                    f"{self.metadata.name}: {size:,} programs along {axis}; a card takes {most:,} at most."
                )
        if not all(grid):
            return  # no programs: Triton launches nothing
        here = _cards[-1]
        one = here._starting[-1] if here._starting else None
        memory, where = GlobalMemory(), {}
        arguments: list[int | float] = []
        for name, value in zip(self.names, values, strict=True):
            if name not in self.passed:
                continue
            if isinstance(value, torch.Tensor):
                short = name.removesuffix("_ptr")
                here.know({one.names.get(short, short) if one else short: value})
                value = _address(memory, where, here._names, value)
            arguments.append(value)
        outcome = machine.launch(
            decoded(here.change(self.text) if here.change else self.text),
            memory,
            grid,
            [*arguments, 0, 0],  # scratch memory, which no kernel here asks for
            self.metadata.shared,
            order=here.order,
            seed=here.seed,
            count=here.count,
            races=here.races,
        )
        for start, raw in where.values():
            raw[:] = memory.get(start, raw.size)
        label = one.label if one and one.label else self.metadata.name
        here.launched.append(Launched(label, x * y * z, outcome))


@functools.lru_cache(maxsize=512)
def decoded(text: str) -> ptx.Kernel:
    """The kernel of a PTX text, ready to run. Raises NotExecutable, naming all instructions not known."""
    return decode(ptx.read(text))


def _address(memory: GlobalMemory, where: dict, names: Mapping[int, str], tensor: torch.Tensor) -> int:
    """Where a tensor begins in the card's memory; its storage is copied there once."""
    store = tensor.untyped_storage()
    if store.data_ptr() not in where:
        raw = torch.empty(0, dtype=torch.uint8).set_(store, 0, (store.nbytes(),)).numpy()  # type: ignore[call-overload]
        where[store.data_ptr()] = memory.put(names[store.data_ptr()], raw), raw
    start: int = where[store.data_ptr()][0]
    return start + tensor.storage_offset() * tensor.element_size()

"""A card that is not there, for Triton's own launch path: its driver compiles, refuses and "runs" kernels.

`kernel[grid](...)` binds, specialises and compiles as on a card; what Triton then hands to the driver is
executed by `machine.launch` on tensors that live on the CPU. No C compiler and no CUDA are needed.
"""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernels.contract import devices
from kernels.contract.errors import CardRefuses
from kernels.contract.launch import Launch
from kernels.contract.targets import MAX_THREADS, TENSOR_COLUMNS, Target, occupancy
from kernels.evidence.executed import machine, not_executable, ptx
from kernels.evidence.executed.forms import decode
from kernels.evidence.executed.memory import GlobalMemory, own_bytes
from kernels.evidence.executed.ptx import NotExecutable
from kernels.evidence.stand_in import StandIn

MAX_GRID = (2**31 - 1, 65_535, 65_535)  # CUDA C++ programming guide, "Technical specifications"
REMEDY = {
    "shared memory": "take smaller tiles, or fewer stages (num_stages)",
    "tensor memory": "take smaller tiles",
    "threads": "take fewer warps (num_warps)",
}


@dataclass(frozen=True)
class Launched:
    """One launch that ran: what it was called, its code, how many programs, what they left."""

    label: str
    kernel: ptx.Kernel
    programs: int
    outcome: machine.Outcome


@dataclass
class Card:
    """A card that is imagined. launched: what ran on it so far; the rest are options of `machine.launch`.

    Tensors that are known beforehand (`know`) go by their names; others are called after the kernel argument
    that first saw them, or as their launch says (`Launch.names`).
    change(text) -> text: of the PTX before it is decoded, for tests that take a synchronisation out.
    starts(label, {argument: tensor}) -> bool: is told of each launch that a card would start; False: it is
    not executed, and what it would write stays as it was. ended: is told of each that was executed.
    """

    target: Target
    order: str = "forward"
    seed: int = 0
    count: bool = True
    races: bool = True
    change: Any = None
    starts: Callable[[str, Mapping[str, torch.Tensor]], bool] | None = None
    ended: Callable[[Launched], None] | None = None
    launched: list[Launched] = field(default_factory=list)
    _names: dict[int, str] = field(default_factory=dict)  # of storages, by where they begin
    _given: dict[int, list[torch.Tensor]] = field(default_factory=dict)  # the tensors known, by storage
    # The newest is the one that comes to the driver next; older ones would keep their tensors alive.
    _starting: deque[Launch] = field(default_factory=lambda: deque(maxlen=1))

    def know(self, named: Mapping[str, Any]) -> None:
        """Tensors among these go by these names from now on, and launches may touch all of them."""
        for name, tensor in named.items():
            if isinstance(tensor, torch.Tensor):
                self.call(name, tensor)
                self._given.setdefault(_storage(tensor), []).append(tensor)

    def call(self, name: str, tensor: torch.Tensor) -> None:
        """The bytes of this tensor go by this name, unless they have one."""
        self._names.setdefault(_storage(tensor), name)

    def lay_out(
        self, memory: GlobalMemory, tensors: Iterable[torch.Tensor]
    ) -> dict[int, tuple[int, np.ndarray]]:
        """Copies the storages of these arguments into a launch's memory: storage -> (address, its bytes)."""
        views: dict[int, list[torch.Tensor]] = {}
        for tensor in tensors:
            views.setdefault(_storage(tensor), []).append(tensor)
        places = {}
        for store, some in views.items():
            whole = some[0].untyped_storage()
            raw = torch.empty(0, dtype=torch.uint8).set_(whole, 0, (whole.nbytes(),)).numpy()  # type: ignore[call-overload]
            own = own_bytes([*some, *self._given.get(store, [])], raw.size)
            places[store] = memory.put(self._names[store], raw, own), raw
        return places


# The cards that are imagined, the innermost last. Triton keeps a compiled kernel with its launcher, so a
# launcher asks here whose it is now.
_cards: list[Card] = []


@contextlib.contextmanager
def card(target: Target, **options: Any) -> Iterator[Card]:
    """Inside, kernels run on an imaginary card of this architecture.

    Raises NotExecutable for one whose instructions nobody has tried here.
    """
    if reason := not_executable(target):
        raise NotExecutable(reason)
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

        refuse_too_large(metadata, _cards[-1].target)
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
        # of this launch only: one that nobody announced must not go by the name of the last
        one = here._starting.pop() if here._starting else None
        passed = {n: value for n, value in zip(self.names, values, strict=True) if n in self.passed}
        tensors = {name: value for name, value in passed.items() if isinstance(value, torch.Tensor)}
        label = one.label if one and one.label else self.metadata.name
        if here.starts and not here.starts(label, tensors):
            return
        for name, tensor in tensors.items():
            short = name.removesuffix("_ptr")
            here.call(one.names.get(short, short) if one else short, tensor)
        memory = GlobalMemory()
        where = here.lay_out(memory, tensors.values())
        for name, tensor in tensors.items():
            start, _ = where[_storage(tensor)]
            passed[name] = start + tensor.storage_offset() * tensor.element_size()
        kernel = decoded(here.change(self.text) if here.change else self.text)
        outcome = machine.launch(
            kernel,
            memory,
            grid,
            [*passed.values(), 0, 0],  # scratch memory, which no kernel here asks for
            self.metadata.shared,
            resident=resident(self.metadata, here.target),
            order=here.order,
            seed=here.seed,
            count=here.count,
            races=here.races,
        )
        for start, raw in where.values():
            raw[:] = memory.get(start, raw.size)
        here.launched.append(Launched(label, kernel, x * y * z, outcome))
        if here.ended:
            here.ended(here.launched[-1])


@functools.lru_cache(maxsize=512)
def decoded(text: str) -> ptx.Kernel:
    """The kernel of a PTX text, ready to run. Raises NotExecutable, naming all instructions not known."""
    return decode(ptx.read(text))


def refuse_too_large(metadata: Any, target: Target) -> None:
    """Raises CardRefuses for a kernel that asks for more than a block may have there, before Triton does.

    Triton's own OutOfResources is no error that this book knows, and names no kernel.
    """
    asked = {
        "shared memory": (metadata.shared, target.max_shared_per_block, " bytes"),
        "tensor memory": (getattr(metadata, "tmem_size", 0) or 0, TENSOR_COLUMNS, " columns"),
        "threads": (metadata.num_warps * target.warp_size, MAX_THREADS, ""),
    }
    for what, (size, most, unit) in asked.items():
        if size > most:
            raise CardRefuses(
                f"{metadata.name}: {what} = {size:,}{unit} a block; {target.name} has {most:,} at most; "
                f"{REMEDY[what]}."
            )


def resident(metadata: Any, target: Target) -> int:
    """Programs of a kernel that a card holds at once, at most: PTX does not say what registers they take."""
    one = occupancy(
        target,
        registers=1,
        shared_bytes=metadata.shared,
        warps=metadata.num_warps,
        tensor_columns=getattr(metadata, "tmem_size", 0) or 0,
    )
    return max(1, one.blocks) * target.sm_count


def _storage(tensor: torch.Tensor) -> int:
    """What tells the memory that a tensor is a view of from others: where it begins."""
    return int(tensor.untyped_storage().data_ptr())

"""The contract that every kernel file ends with: one `experiment`, used by everything.

The tests ask it whether the kernel is right, counts what it should and compiles; the chapter asks
it for evidence; the lab's checker and the GPU benchmark run the same object. A kernel file says
what is its own: a table of tensors, the launcher, the plan, the launches, the reference, the cost.
All that follows from the table (random inputs, tensors for the compiler, refusals, compulsory
bytes, a definition for others) is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch

from book import catalog
from book.catalog import Accelerator
from book.cost import Cost
from book.say import say
from kernels.contract import checks, devices
from kernels.contract import tensors as tables
from kernels.contract.axes import axes, names
from kernels.contract.errors import Unsupported
from kernels.contract.launch import Launch
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor

REMEMBERED = 4096  # calls of a launcher whose tensors were found right
UNPACKED = ("int8", "int4", "mxfp4", "nvfp4")  # bits that a kernel turns into numbers by itself
TOLERANCE = {"fp32": 1e-5, "fp16": 2e-3, "bf16": 1e-2, "fp8": 5e-2, "int8": 0.0}


@dataclass(frozen=True)
class Mixed:
    """A dtype of an experiment whose tensors are not all stored alike.

    arithmetic: what products are computed in, the first that the device has; it is also how tensors
    of no slot are stored. storage: slot -> dtype of the tensors of that slot.
    """

    arithmetic: tuple[str, ...]
    storage: Mapping[str, str]


@dataclass(frozen=True)
class Experiment:
    """One kernel and everything that can be asked of it. `sizes` are its problem's named sizes.

    name: the module's name under `kernels`.
    sizes: the names of the problem's sizes, in order, for example ("m", "k", "n"). One that is no
        axis of a tensor (how often, how many) is an argument of `run`, `reference` and `launches`.
    axis: the size that a sweep varies.
    tensors: the table, see `kernels.contract.tensors`.
    run(**inputs) -> tensor(s): the public launcher.
    reference(**inputs) -> tensor(s): plain torch in float64; all that is written, also in place, in the
        table's order.
    cost(**sizes, itemsize) -> Cost: the formula, compulsory bytes only. A slot of the table has an
        argument of its own, as "kv" has kv_itemsize.
    plan(**sizes, dtype, target) -> Any: the tiles and splits that `run` will choose there.
    issued(plan, **sizes, itemsize) -> Cost: what that plan issues; equals `cost` but for padded
        FLOPs and the named workspace.
    launches(plan, **tensors) -> [Launch]: what is started on these tensors, outputs included.
    sweep: {"counted": {size: values}, "timed": {...}, "compiled": {...}}: sizes per rung; at most
        the axis is a list, the others are single numbers.
    unit: what multiplies and adds, the "matrix" units or the "vector" units (in fp32 there).
    dtypes: the dtypes that it can run in, best first. mixed: how those are stored that name no one
        dtype. derived: sizes that follow from the others, for shapes of what is read.
    conditions: {condition on sizes: why}; tolerance: dtype -> relative error allowed, where it is
        another than TOLERANCE of what it computes in. edges: sizes worth a test of their own.
    variant: what tells it from the main experiment of its file, "triad" in "stream.triad".
    """

    name: str
    sizes: tuple[str, ...]
    axis: str
    tensors: Mapping[str, Tensor]
    run: Callable[..., Any]
    reference: Callable[..., Any]
    cost: Callable[..., Cost]
    plan: Callable[..., Any]
    issued: Callable[..., Cost]
    launches: Callable[..., Sequence[Launch]]
    sweep: Mapping[str, Mapping[str, Any]]
    unit: Literal["matrix", "vector"] = "matrix"
    dtypes: tuple[str, ...] = ("bf16", "fp16", "fp32")
    mixed: Mapping[str, Mixed] = field(default_factory=dict)
    derived: Mapping[str, Callable[..., int]] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    tolerances: Mapping[str, float] = field(default_factory=dict)
    edges: tuple[tuple[int, ...], ...] = ()
    variant: str = ""

    def __post_init__(self) -> None:
        known = {*self.sizes, *self.derived}
        for name, tensor in self.tensors.items():
            named = (tensor.packed, tensor.fan_in, *tensor.within)
            for shape in (tensor.shape, tensor.reads or "", tensor.writes or "", tensor.stored, *named):
                if unknown := {n for axis in axes(shape) for n in names(axis)} - known:
                    raise ValueError(
                        f"experiment {self.name}: {name} has the axis {min(unknown)}, which is none of its "
                        f"sizes {', '.join(self.sizes)}."
                    )

        for rung, swept in self.sweep.items():
            if set(swept) != set(self.sizes):
                raise ValueError(
                    f"experiment {self.name}: sweep[{rung!r}] = {', '.join(swept)}: give each of its sizes "
                    f"{', '.join(self.sizes)} a value, and nothing else."
                )
        if self.axis not in self.sizes:
            raise ValueError(
                f"experiment {self.name}: axis = {self.axis!r}: a sweep varies one of its sizes, "
                f"{', '.join(self.sizes)}."
            )
        for condition in self.conditions:
            if unknown := set(compile(condition, "", "eval").co_names) - known:
                raise ValueError(
                    f"experiment {self.name}: the condition {condition!r} names {min(unknown)}; it is none "
                    f"of its sizes {', '.join(self.sizes)}."
                )

    @property
    def key(self) -> str:
        """What records call it: "stream", or "stream.triad" for a variant."""
        return f"{self.name}.{self.variant}" if self.variant else self.name

    # ------------------------------------------------------------------------- storage and arithmetic

    def arithmetic(self, dtype: str) -> str:
        """What `dtype` is computed in: on vector units fp32, else the dtype or, if it is mixed, its own."""
        return "fp32" if self.unit == "vector" else self.operands(dtype)

    def operands(self, dtype: str) -> str:
        """How tensors of no slot are stored in `dtype`, which is what products take."""
        if dtype not in self.mixed:
            return dtype
        here, allowed = devices.default_dtype(), self.mixed[dtype].arithmetic
        return here if here in allowed else allowed[0]

    def storage(self, dtype: str) -> tables.Storage:
        """tensor of the table -> the dtype that it is stored in."""
        slots = self.mixed[dtype].storage if dtype in self.mixed else {}
        own = {tensor.dtype for tensor in self.tensors.values()} & set(self._slots())

        def stored(tensor: Tensor) -> str:
            return slots.get(tensor.dtype, self.operands(dtype)) if tensor.dtype in own else tensor.dtype

        return stored

    def _slots(self) -> list[str]:
        """The names that stand for a dtype in the table: "", and whatever a mixed dtype stores otherwise."""
        return list(dict.fromkeys(["", *(slot for mix in self.mixed.values() for slot in mix.storage)]))

    def itemsizes(self, dtype: str) -> dict[str, int | float]:
        """The arguments of `cost` and `issued`: itemsize, and kv_itemsize for a slot "kv"."""
        slots = self.mixed[dtype].storage if dtype in self.mixed else {}
        wide = catalog.itemsize(self.operands(dtype))
        named = {slot: catalog.itemsize(slots[slot]) if slot in slots else wide for slot in self._slots()}
        return {f"{slot}_itemsize".lstrip("_"): size for slot, size in named.items()}

    def tolerance(self, dtype: str) -> float:
        """||out - reference|| / ||reference|| that is allowed in `dtype`; ValueError if nobody said it."""
        allowed = self.tolerances.get(dtype, TOLERANCE.get(self.operands(dtype)))
        if allowed is None:
            raise ValueError(
                f"tolerances = {sorted(self.tolerances)}: {self.name} says no relative error allowed in "
                f"{dtype}, and there is none for all kernels; add it."
            )
        return allowed

    def why_not(self, where: Target | Accelerator, dtype: str | None = None) -> str:
        """Why it can't run there in `dtype` (or in any): a sentence, or ""."""
        usable = [d for d in self.dtypes if not self._lacking(where, d)]
        if isinstance(where, Target):
            card = f"{where.name} ({catalog.accelerator(where.accelerator).short_name})"
        else:
            card = where.short_name
        if dtype is None:
            if usable:
                return ""
            lacking = self._lacking(where, self.dtypes[0])
            return say(
                "dtype = {own}: {name} runs in nothing else, and {card} has no {lacking}; "
                "choose another card.",
                own=checks.either(map(repr, self.dtypes)),
                name=self.name,
                card=card,
                lacking=lacking,
            )
        if dtype not in self.dtypes:
            return say(
                "dtype = {dtype!r}: {name} does not run in it; choose {known}.",
                dtype=dtype,
                name=self.name,
                known=checks.either(self.dtypes),
            )
        if dtype not in usable:
            return say(
                "dtype = {dtype!r}: {card} has none; choose {known}.",
                dtype=dtype,
                card=card,
                known=checks.either(usable),
            )
        return ""

    def _lacking(self, where: Target | Accelerator, dtype: str) -> str:
        """The first format that `dtype` takes and that can't be computed in, or read, there; or ""."""
        has = where.has if isinstance(where, Target) else where.peaks.__contains__
        mix = self.mixed.get(dtype, Mixed((dtype,), {}))
        stored = next((d for d in mix.storage.values() if not (d in UNPACKED or has(d))), "")
        computed = "" if any(map(has, mix.arithmetic)) else mix.arithmetic[0]
        return stored or computed

    def best_dtype(self, where: Target | Accelerator) -> str:
        """Its first dtype that can be run there. Raises Unsupported, with a sentence, if there is none."""
        for dtype in self.dtypes:
            if not self._lacking(where, dtype):
                return dtype
        raise Unsupported(self.why_not(where))

    # ---------------------------------------------------------------------------- what it should cost

    def formula(self, dtype: str, **sizes: int) -> Cost:
        """`cost` at these sizes, with the itemsizes of `dtype`."""
        return self.cost(**sizes, **self.itemsizes(dtype))

    def issued_by(self, plan: Any, dtype: str, **sizes: int) -> Cost:
        """`issued` for this plan, with the itemsizes of `dtype`."""
        return self.issued(plan, **sizes, **self.itemsizes(dtype))

    def compulsory(self, dtype: str, **sizes: int) -> Cost:
        """The bytes of each tensor by the table alone, with no formula: they must equal `cost`'s."""
        return tables.compulsory(self.tensors, self.storage(dtype), self._all(sizes))

    def _all(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {**sizes, **{name: make(**sizes) for name, make in self.derived.items()}}

    # ------------------------------------------------------------------------------ tensors and runs

    @property
    def arguments(self) -> tuple[str, ...]:
        """Its sizes that no tensor shows: `run` takes them beside the tensors."""
        shown = {n for t in self.tensors.values() for axis in axes(t.shape) for n in names(axis)}
        return tuple(name for name in self.sizes if name not in shown)

    def inputs(
        self, *, dtype: str | None = None, device: str = "cpu", seed: int = 0, **sizes: int
    ) -> dict[str, Any]:
        """What `run` takes, random, the same for the same seed. dtype: by default `default_dtype()`."""
        dtype = dtype or self.default_dtype()
        made = tables.random_inputs(self.tensors, self.storage(dtype), self._all(sizes), device, seed)
        return {**made, **{name: sizes[name] for name in self.arguments}}

    def default_dtype(self) -> str:
        """The first dtype that this process computes rightly: no bf16 in the interpreter or on a T4."""
        able = [d for d in self.dtypes if self.operands(d) != "bf16" or devices.default_dtype() == "bf16"]
        return able[0] if able else self.dtypes[0]

    def meta_launches(self, plan: Any, dtype: str, **sizes: int) -> Sequence[Launch]:
        """The launches of `plan` on tensors that only the compiler looks at."""
        made = tables.meta(self.tensors, self.storage(dtype), self._all(sizes))
        return self.launches(plan, **made, **{name: sizes[name] for name in self.arguments})

    def check(self, **given: Any) -> tuple[dict[str, int], str]:
        """(sizes, dtype) of a call's tensors; raises TypeError or ValueError, with the remedy.

        What was accepted once is known again by shape, strides, dtype and device.
        """
        asked = tuple(
            (x.shape, x.stride(), x.dtype, x.device) if isinstance(x, torch.Tensor) else type(x)
            for x in given.values()
        )
        known = self._accepted.get(asked)
        if known is None:
            known = checks.refuse(self.run.__name__, self.tensors, given, self._kinds, self.conditions)
            if len(self._accepted) >= REMEMBERED:
                self._accepted.clear()
            self._accepted[asked] = known
        return dict(known[0]), known[1]

    @cached_property
    def _accepted(self) -> dict[tuple[Any, ...], tuple[dict[str, int], str]]:
        return {}

    @cached_property
    def _kinds(self) -> dict[str, dict[str, Sequence[str]]]:
        """dtype -> slot -> the dtypes that a tensor of that slot may have then."""
        slots = self._slots()
        kinds: dict[str, dict[str, Sequence[str]]] = {}
        for dtype in self.dtypes:
            mix = self.mixed.get(dtype, Mixed((dtype,), {}))
            stored = {slot: (kind,) for slot, kind in mix.storage.items()}
            kinds[dtype] = {slot: stored.get(slot, mix.arithmetic) for slot in slots}
        return kinds

    def results(self, inputs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
        """Run it: all that is written, in the table's order."""
        return tables.outputs(self.tensors, inputs, self.run(**inputs))

    def expected(self, inputs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
        """The same from the reference, in float64; called before a run that writes in place."""
        wanted = self.reference(**inputs)
        return wanted if isinstance(wanted, tuple) else (wanted,)

"""Hooks that tally what a kernel does in Triton's interpreter. `counted` is the way in.

Every load, store and dot of an interpreted kernel is a method call on one object, the interpreter's
builder, so instance attributes that wrap those methods see all of them and vanish on exit. A pointer
also has to be traced to the tensor it was made from: an address alone can't tell an access past the
end of x from one to w that happens to lie behind it. Signatures differ between Triton 3.6 and 3.9;
the wrappers look at the arguments they need and pass the others on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernels import devices

SECTOR = 32  # bytes: the least that L2 and DRAM exchange on NVIDIA and AMD cards

_FLOPS = {np.add, np.subtract, np.multiply}
# what other units than the adders and multipliers do: exponentials and their like, and divisions
_SPECIAL = {np.divide, np.exp, np.exp2, np.log, np.log2, np.sqrt, np.sin, np.cos}
# what the interpreter's builder does to a pointer on its way from an argument to a load
_POINTER_STEPS = (
    "create_addptr",
    "create_splat",
    "create_broadcast",
    "create_expand_dims",
    "create_reshape",
    "create_trans",
)


class OutOfBounds(IndexError):
    """A kernel touched memory outside the tensor that its pointer came from."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of one tensor in one direction; `counted` says what the four mean."""

    unique: int
    block: int
    issued: int
    sector: int


class _Tensor:
    """One tensor argument: where it lies and which of its elements were read and written."""

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        self.name, self.shape = name, tuple(tensor.shape)
        self.itemsize, self.base = tensor.element_size(), tensor.data_ptr()
        strides = zip(self.shape, tensor.stride(), strict=True)
        self.extent = 1 + sum((size - 1) * stride for size, stride in strides)
        self.gaps = None  # for a strided view: which elements in between are not its own
        if self.extent != tensor.numel():
            self.gaps = torch.ones(self.extent, dtype=torch.bool)
            self.gaps.as_strided(tensor.shape, tensor.stride()).fill_(False)
            self.gaps = self.gaps.numpy()
        self.touched: dict[str, np.ndarray] = {}
        self.totals: dict[str, list[int]] = {}

    def record(self, verb: str, addresses: np.ndarray, program: Any) -> None:
        """Tally one load or store: the addresses of the lanes that its mask leaves on."""
        lanes = addresses.size
        offsets = addresses.astype(np.int64) - self.base
        ordered = _increasing(offsets)
        first, last = int(ordered[0]), int(ordered[-1])
        elements = ordered // self.itemsize
        outside = first < 0 or last + self.itemsize > self.extent * self.itemsize
        if outside or (self.gaps is not None and self.gaps[elements].any()):
            bad = (
                elements[(elements < 0) | (elements >= self.extent)]
                if outside
                else elements[self.gaps[elements]]
            )
            raise OutOfBounds(
                f"{self.name}: program {program} {verb} element {int(bad[0])}, which is none of the tensor's "
                f"(shape {self.shape}, {self.extent} elements from first to last); mask that lane off."
            )
        if verb not in self.touched:
            self.touched[verb] = np.zeros(self.extent, dtype=bool)
            self.totals[verb] = [0, 0, 0]
        self.touched[verb][elements] = True
        sectors = ((self.base % SECTOR) + ordered) // SECTOR
        block, issued, sector = self.totals[verb]
        self.totals[verb] = [
            block + ordered.size * self.itemsize,
            issued + lanes * self.itemsize,
            sector + (1 + np.count_nonzero(np.diff(sectors))) * SECTOR,
        ]

    def traffic(self, verb: str) -> Traffic:
        unique = int(np.count_nonzero(self.touched[verb])) * self.itemsize
        block, issued, sector = self.totals[verb]
        return Traffic(unique, block, issued, int(sector))


def _increasing(offsets: np.ndarray) -> np.ndarray:
    """The distinct offsets in increasing order. Most blocks are in order already, or transposed."""
    for flat in (offsets.ravel(), offsets.T.ravel()):
        if flat.size == 1 or (flat[1:] > flat[:-1]).all():
            return flat
    return np.unique(offsets)


class Tally:
    """Running counts of every launch inside `count()`: bytes by tensor, FLOPs, programs."""

    def __init__(self) -> None:
        self.dot_flops = 0
        self.alu_flops = 0
        self.sfu_ops = 0
        self.programs = 0
        self._tensors: dict[tuple[int, int], _Tensor] = {}
        self._bases: dict[int, _Tensor] = {}
        self._program: Any = None

    def reads(self) -> dict[str, Traffic]:
        """Traffic of each tensor that was read, by the name of its pointer without `_ptr`."""
        return self._traffic("reads")

    def writes(self) -> dict[str, Traffic]:
        """Traffic of each tensor that was written."""
        return self._traffic("writes")

    def _traffic(self, verb: str) -> dict[str, Traffic]:
        return {t.name: t.traffic(verb) for t in self._tensors.values() if verb in t.totals}

    def _learn(self, named: dict[str, Any]) -> None:
        """Note a launch's tensors. A tensor keeps the name it had first; a new one gets a new name."""
        names = {t.name for t in self._tensors.values()}
        for argument, tensor in named.items():
            if not isinstance(tensor, torch.Tensor):
                continue
            key = (tensor.data_ptr(), tensor.untyped_storage().nbytes())
            if key not in self._tensors:
                name = argument.removesuffix("_ptr")
                while name in names:
                    name += "'"
                names.add(name)
                self._tensors[key] = _Tensor(name, tensor)
            self._bases[key[0]] = self._tensors[key]

    def _memory(self, verb: str, pointers: Any, mask: Any) -> None:
        addresses = np.asarray(pointers.data)
        on = np.asarray(getattr(mask, "data", mask) if not isinstance(mask, np.ndarray) else mask).astype(
            bool
        )
        if not on.all():
            addresses, on = np.broadcast_arrays(addresses, on)
            addresses = addresses[on]
        if addresses.size:
            self._owner(pointers, addresses).record(verb, addresses, self._program)

    def _owner(self, pointers: Any, addresses: np.ndarray) -> _Tensor:
        owner = getattr(pointers, "made_from", None) or self._bases.get(int(addresses.flat[0]))
        if owner is None:
            raise OutOfBounds(
                f"a pointer of program {self._program}: it leads to address {int(addresses.flat[0]):#x}, and "
                "no tensor argument it was made from is known; build pointers from the kernel's arguments."
            )
        return owner


@contextlib.contextmanager
def count() -> Iterator[Tally]:
    """Tally every kernel launched inside the `with` block; the interpreter is restored afterwards.

    `dot_flops`: 2mnk of every tl.dot. `alu_flops`: floating-point adds, subtracts and multiplies,
    element by element; tl.sum of n numbers is n - 1 adds, so a loop of `acc += tl.sum(x * w)`
    issues 2 for each pair, as a dot does. `sfu_ops`: exponentials, logarithms, roots, sines and
    divisions, one each, which are no FLOPs here. Comparisons (tl.max), conversions and scans count
    nowhere.

    Raises RuntimeError where kernels are compiled, and OutOfBounds, naming the tensor, from a
    launch that touches memory which is not its argument's.
    """
    if devices.MODE != "interpreted":
        raise RuntimeError(
            f"Triton's mode = {devices.MODE}: counting needs the interpreter; set TRITON_INTERPRET=1 before "
            "Triton is imported, or count in a child process (kernels.evidence.child)."
        )
    from triton.runtime import interpreter

    tally, builder = Tally(), interpreter.interpreter_builder
    with contextlib.ExitStack() as hooks:

        def wrap(target: Any, name: str, make: Any) -> None:
            if hasattr(target, name):
                hooks.callback(_restore, target, name, vars(target).get(name))
                setattr(target, name, make(getattr(target, name)))

        wrap(builder, "create_masked_load", lambda f: _memory(tally, "reads", f, mask_at=1))
        wrap(builder, "create_masked_store", lambda f: _memory(tally, "writes", f, mask_at=2))
        wrap(builder, "create_dot", lambda f: _dot(tally, f))
        wrap(builder, "binary_op", lambda f: _binary(tally, f))
        wrap(builder, "create_fma", lambda f: _fma(tally, f))
        wrap(builder, "unary_op", lambda f: _unary(tally, f))
        wrap(builder, "create_rsqrt", lambda f: _root(tally, f))
        wrap(interpreter.ReduceOps, "sum", lambda f: _sum(tally, f))
        wrap(builder, "set_grid_idx", lambda f: _program(tally, f))
        for step in _POINTER_STEPS:
            wrap(builder, step, lambda f: _pointer(tally, f))
        wrap(interpreter.GridExecutor, "_init_args_hst", lambda f: _arguments(tally, f))
        # Its overflow checks on 32-bit integers cost a third of the time and no kernel counts on them.
        hooks.callback(setattr, builder, "options", builder.options)
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
        yield tally


def _restore(target: Any, name: str, previous: Any) -> None:
    delattr(target, name) if previous is None else setattr(target, name, previous)


def _memory(tally: Tally, verb: str, original: Any, mask_at: int) -> Any:
    def hook(*args: Any, **options: Any) -> Any:
        tally._memory(verb, args[0], args[mask_at])
        return original(*args, **options)

    return hook


def _dot(tally: Tally, original: Any) -> Any:
    def hook(a: Any, b: Any, *rest: Any, **options: Any) -> Any:
        tally.dot_flops += 2 * math.prod(a.data.shape) * b.data.shape[-1]
        return original(a, b, *rest, **options)

    return hook


def _binary(tally: Tally, original: Any) -> Any:
    def hook(a: Any, b: Any, op: Any) -> Any:
        out = original(a, b, op)
        if op in _FLOPS and a.dtype.scalar.is_floating():
            tally.alu_flops += out.data.size
        elif op in _SPECIAL:
            tally.sfu_ops += out.data.size
        return out

    return hook


def _unary(tally: Tally, original: Any) -> Any:
    def hook(x: Any, op: Any) -> Any:
        out = original(x, op)
        if op in _SPECIAL:
            tally.sfu_ops += out.data.size
        return out

    return hook


def _root(tally: Tally, original: Any) -> Any:
    def hook(x: Any) -> Any:
        tally.sfu_ops += x.data.size
        return original(x)

    return hook


def _sum(tally: Tally, original: Any) -> Any:
    def hook(self: Any, x: Any) -> Any:
        out = original(self, x)
        if x.dtype.scalar.is_floating():
            tally.alu_flops += x.handle.data.size - out.handle.data.size
        return out

    return hook


def _fma(tally: Tally, original: Any) -> Any:
    def hook(x: Any, y: Any, z: Any) -> Any:
        out = original(x, y, z)
        if z.dtype.scalar.is_floating():
            tally.alu_flops += 2 * out.data.size
        return out

    return hook


def _program(tally: Tally, original: Any) -> Any:
    def hook(*index: int) -> Any:
        tally.programs += 1
        tally._program = index
        return original(*index)

    return hook


def _pointer(tally: Tally, original: Any) -> Any:
    def hook(*args: Any, **options: Any) -> Any:
        out = original(*args, **options)
        for handle in (*args, *options.values()):
            owner = getattr(handle, "made_from", None)
            if owner is None and getattr(getattr(handle, "dtype", None), "is_ptr", bool)():
                owner = tally._bases.get(int(handle.data.flat[0]))
            if owner is not None:
                out.made_from = owner
                break
        return out

    return hook


def _arguments(tally: Tally, original: Any) -> Any:
    def hook(self: Any, args: Any, options: Any) -> Any:
        host_args, host_options = original(self, args, options)
        tally._learn({**dict(zip(self.arg_names, host_args, strict=False)), **host_options})
        return host_args, host_options

    return hook

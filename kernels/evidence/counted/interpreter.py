"""Hooks that tally what a kernel does in Triton's interpreter. `counted` is the way in.

Every load, store and dot of an interpreted kernel is a method call on one object, the interpreter's
builder, so instance attributes that wrap those methods see all of them and vanish on exit. A pointer
also has to be traced to the tensor it was made from: an address alone can't tell an access past the
end of x from one to w that happens to lie behind it. Signatures differ between Triton 3.6 and 3.9;
the wrappers look at the arguments they need and pass the others on.

Where `count` changes what the interpreter does: programs run in the order that is asked for; lanes
that a mask leaves out, and fresh memory, hold poison; an overflow of 32 bits is not looked for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from kernels.contract import devices
from kernels.contract.launch import Launch
from kernels.evidence import poison
from kernels.evidence.counted import shortcuts
from kernels.evidence.counted.tally import Tally, mask_of

Order = Literal["in order", "reversed"] | int  # of the programs of a launch; a number is a seed

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


@contextlib.contextmanager
def count(named: Mapping[str, Any] | None = None, order: Order = "in order") -> Iterator[Tally]:
    """Tally every kernel launched inside the `with` block; the interpreter is restored afterwards.

    named: tensors that are known beforehand, by the names that their bytes go by. Others are called
    after the kernel argument that first saw them, or as their launch says (`Launch.names`). order: in
    which the programs of a launch run: "in order", "reversed", or shuffled by a seed.

    `dot_flops`: 2mnk of every tl.dot. `alu_flops`: floating-point adds, subtracts and multiplies,
    element by element; tl.sum of n numbers is n - 1 adds, so a loop of `acc += tl.sum(x * w)`
    issues 2 for each pair, as a dot does. `sfu_ops`: exponentials, logarithms, roots, sines and
    divisions, one each, which are no FLOPs here. Comparisons (tl.max), conversions and scans count
    nowhere.

    An atomic counts as a read and a write of its addresses, and as no FLOP; `atomics` has their number.
    `race` names the first race between two programs of a launch (see `races`), and the run goes on.

    Lanes of a load that are masked off and have no `other=` hold poison, and so does every new
    uninitialised tensor: NaN, or a large whole number.

    Raises RuntimeError where kernels are compiled and inside another `count()`; from a launch,
    OutOfBounds, naming the tensor, where memory is touched which is not its argument's, and NeverEnds
    where a program waits for another one that only runs after it.
    """
    if devices.MODE != "interpreted":
        raise RuntimeError(
            f"Triton's mode = {devices.MODE}: counting needs the interpreter; set TRITON_INTERPRET=1 before "
            "Triton is imported, or count in a child process (kernels.evidence.child_process)."
        )
    from triton.runtime import interpreter

    if "create_masked_load" in vars(interpreter.interpreter_builder):
        raise RuntimeError(
            "counting is under way: a launch can't be counted twice; leave the other `count()` first."
        )
    tally, builder = Tally(), interpreter.interpreter_builder
    tally.learn(named or {})
    with contextlib.ExitStack() as hooks:
        hooks.enter_context(devices.observed(lambda launch: _named(tally, launch)))

        def wrap(target: Any, name: str, make: Any) -> None:
            if hasattr(target, name):
                hooks.callback(_restore, target, name, vars(target).get(name))
                setattr(target, name, make(getattr(target, name)))

        hooks.enter_context(poison.poisoned())
        wrap(builder, "create_masked_load", lambda f: _load(tally, f, interpreter))
        wrap(builder, "create_masked_store", lambda f: _store(tally, f))
        for name, mask_at in (("create_atomic_rmw", 3), ("create_atomic_cas", None)):
            wrap(builder, name, lambda f, at=mask_at: _atomic(tally, f, at))
        wrap(builder, "create_dot", lambda f: _dot(tally, f))
        wrap(builder, "binary_op", lambda f: _binary(tally, f))
        wrap(builder, "create_fma", lambda f: _fma(tally, f))
        wrap(builder, "unary_op", lambda f: _unary(tally, f))
        wrap(builder, "create_rsqrt", lambda f: _root(tally, f))
        wrap(interpreter.ReduceOps, "sum", lambda f: _sum(tally, f))
        wrap(builder, "set_grid_dim", lambda f: _launch(tally, f))
        wrap(builder, "set_grid_idx", lambda f: _program(tally, f, builder, order))
        for step in _POINTER_STEPS:
            wrap(builder, step, lambda f: _pointer(tally, f))
        wrap(interpreter.GridExecutor, "_init_args_hst", lambda f: _arguments(tally, f))
        shortcuts.take(wrap, interpreter)
        # Its overflow checks on 32-bit integers cost a third of the time and no kernel counts on them.
        hooks.callback(setattr, builder, "options", builder.options)
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
        yield tally


def _named(tally: Tally, launch: Launch) -> None:
    """Learn a launch's tensors under the names that it gives them."""
    arguments = dict(zip(launch.kernel.arg_names, launch.args, strict=False))
    named = {argument.removesuffix("_ptr"): tensor for argument, tensor in arguments.items()}
    tally.learn({launch.names.get(name, name): tensor for name, tensor in named.items()})


def _restore(target: Any, name: str, previous: Any) -> None:
    delattr(target, name) if previous is None else setattr(target, name, previous)


def _load(tally: Tally, original: Any, interpreter: Any) -> Any:
    def hook(pointers: Any, mask: Any, other: Any, *rest: Any, **options: Any) -> Any:
        tally.access("reads", pointers, mask)
        if other is None and not mask_of(mask).all():
            kind = pointers.get_element_ty()
            dtype = interpreter._get_np_dtype(kind)
            lanes = poison.like(pointers.data, dtype, kind.is_floating())
            other = interpreter.TensorHandle(lanes, kind)
        return original(pointers, mask, other, *rest, **options)

    return hook


def _store(tally: Tally, original: Any) -> Any:
    def hook(pointers: Any, value: Any, mask: Any, *rest: Any, **options: Any) -> Any:
        tally.access("writes", pointers, mask)
        return original(pointers, value, mask, *rest, **options)

    return hook


def _atomic(tally: Tally, original: Any, mask_at: int | None) -> Any:
    """The pointers come after the operation, or first in a compare-and-swap, which has no mask."""

    def hook(*args: Any, **options: Any) -> Any:
        pointers = args[0] if mask_at is None else args[1]
        mask = np.ones(pointers.data.shape, dtype=bool) if mask_at is None else args[mask_at]
        meaning = options["sem"] if "sem" in options else args[3 if mask_at is None else 4]
        meaning = getattr(meaning, "name", str(meaning))
        tally.atomic(pointers, mask, acquires="ACQ" in meaning, releases="RELEASE" in meaning)
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


def _launch(tally: Tally, original: Any) -> Any:
    def hook(*grid: int) -> Any:
        tally.begin_launch(grid)
        return original(*grid)

    return hook


def _program(tally: Tally, original: Any, builder: Any, order: Order) -> Any:
    """Whichever program is next by the interpreter's count, that of its turn in `order` runs."""

    def hook(*index: int) -> Any:
        index = _turn(index, builder.grid_dim, order)
        tally.begin_program(index)
        return original(*index)

    return hook


def _turn(index: tuple[int, ...], grid: tuple[int, ...], order: Order) -> tuple[int, ...]:
    """The program that runs where `index` would run in program order."""
    if order == "in order":
        return index
    if order == "reversed":
        return tuple(n - 1 - i for i, n in zip(index, grid, strict=True))
    return tuple(
        int(i) for i in np.unravel_index(_shuffled(grid, order)[np.ravel_multi_index(index, grid)], grid)
    )


@functools.lru_cache(maxsize=8)
def _shuffled(grid: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(math.prod(grid))


def _pointer(tally: Tally, original: Any) -> Any:
    def hook(*args: Any, **options: Any) -> Any:
        out = original(*args, **options)
        for handle in (*args, *options.values()):
            owner = getattr(handle, "made_from", None)
            if owner is None and getattr(getattr(handle, "dtype", None), "is_ptr", bool)():
                owner = tally.tensor_at(int(handle.data.flat[0]))
            if owner is not None:
                out.made_from = owner
                break
        return out

    return hook


def _arguments(tally: Tally, original: Any) -> Any:
    def hook(self: Any, args: Any, options: Any) -> Any:
        host_args, host_options = original(self, args, options)
        tally.learn({**dict(zip(self.arg_names, host_args, strict=False)), **host_options})
        return host_args, host_options

    return hook

"""The contract that every kernel file ends with: one `experiment`, used by everything.

The tests ask it whether the kernel is right, counts what it should and compiles; the chapter asks
it for evidence; the lab's checker and the GPU benchmark run the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from book.cost import Cost


@dataclass(frozen=True)
class Launch:
    """One kernel launch as the compiler sees it: `kernel[grid](*args, **options)`.

    args are tensors (on the meta device when nothing is to be run) and scalars, in the kernel's
    order; options are its constexpr arguments with num_warps and num_stages.
    """

    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True)
class Experiment:
    """One kernel and everything that can be asked of it. `sizes` are its problem's named sizes.

    name: the module's name under `kernels`.
    sizes: the names of the problem's sizes, in order, for example ("m", "k", "n").
    axis: the size that a sweep varies.
    inputs(**sizes, dtype, device, seed) -> {argument: tensor}: random, never zeros.
    run(**inputs) -> tensor: the public launcher.
    reference(**inputs) -> tensor: plain torch in float64.
    cost(**sizes, itemsize) -> Cost: the formula, compulsory bytes only.
    plan(**sizes, dtype, target) -> Any: the tiles and splits that `run` will choose there.
    tiles(plan, **sizes, itemsize) -> Cost: what that plan issues; equals `cost` but for padded
        FLOPs and the named workspace.
    launches(plan, **sizes, dtype) -> [Launch]: on meta tensors, for the compiler.
    sweep: {"counted": {size: values}, "timed": {...}, "compiled": {...}}: sizes per rung; at most
        the axis is a list, the others are single numbers.
    dtypes: the dtypes that it can run in, best first.
    tolerance(dtype) -> relative error ||out - ref|| / ||ref|| allowed.
    """

    name: str
    sizes: tuple[str, ...]
    axis: str
    inputs: Callable[..., dict[str, Any]]
    run: Callable[..., Any]
    reference: Callable[..., Any]
    cost: Callable[..., Cost]
    plan: Callable[..., Any]
    tiles: Callable[..., Cost]
    launches: Callable[..., Sequence[Launch]]
    sweep: Mapping[str, Mapping[str, Any]]
    dtypes: tuple[str, ...] = ("bf16", "fp16", "fp32")
    tolerance: Callable[[str], float] = lambda dtype: {"fp32": 1e-5, "fp16": 2e-3, "bf16": 1e-2}[dtype]

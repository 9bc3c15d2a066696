"""What a question asks of somebody's code, and what comes back. Plain data on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Values:
    """What do these variables hold?"""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """What does this function return, for each of these lists of arguments?"""

    function: str
    calls: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Case:
    """One launch of a kernel. sizes: for the comment ("m = 17, ..."); inputs: arrays by argument name.

    An array may be a view with any positive strides; the launcher gets a tensor with the same.
    scalars: the launcher's other arguments, by name.
    """

    sizes: Mapping[str, int]
    inputs: Mapping[str, np.ndarray]
    scalars: Mapping[str, int | float] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {size:,}" for name, size in self.sizes.items())

    def specification(self) -> dict[str, dict[str, Any]]:
        """The inputs' shapes, strides (in elements) and dtypes: all that the launcher's process sees."""
        return {
            name: {
                "shape": list(a.shape),
                "strides": [s // a.itemsize for s in a.strides],
                "dtype": a.dtype.name,
            }
            for name, a in self.inputs.items()
        }

    def memory(self) -> dict[str, np.ndarray]:
        """The memory under each input, first element to last, gaps included."""
        flat = {}
        for name, a in self.inputs.items():
            length = 1 + sum((n - 1) * s // a.itemsize for n, s in zip(a.shape, a.strides, strict=True))
            flat[name] = np.lib.stride_tricks.as_strided(a, (length,), (a.itemsize,)).copy()
        return flat


@dataclass(frozen=True)
class Kernel:
    """What does this launcher compute, and what do its kernels read and write, in each of these cases?

    result: what to call the buffer that is returned ("y"). targets: chips that the kernels of the
    last case are compiled for as well, such as "sm_80".
    """

    function: str
    cases: tuple[Case, ...]
    result: str = "y"
    targets: tuple[str, ...] = ()


Ask = Values | Calls | Kernel


@dataclass(frozen=True)
class ValuesAnswer:
    """values by name; errors: a sentence for each name that holds no number; error: nothing came at all."""

    values: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class CallsAnswer:
    """One (value, error) for each call; error: nothing came at all."""

    returns: tuple[tuple[Any, str], ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Run:
    """One case: what the kernels put out (float64) and what they touched.

    traffic: {buffer: {"reads" or "writes": {"unique", "block", "issued", "sector"}}} in bytes (see
    kernels.evidence.counted, for dot_flops and alu_flops too); buffers are the inputs' names, the
    result's, and "scratch".
    launches: (kernel, grid, scalar arguments) in order. race: how two programs of a launch meet in
    memory, or that the result depends on their order; extra: why bytes were asked for more than once.
    """

    case: Case
    output: np.ndarray | None = None
    traffic: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    dot_flops: int = 0
    alu_flops: int = 0
    programs: int = 0
    launches: tuple[tuple[str, tuple[int, ...], Mapping[str, Any]], ...] = ()
    race: str = ""
    extra: tuple[str, ...] = ()
    error: str = ""

    def bytes(self, buffer: str, verb: str, kind: str = "unique") -> int:
        """Bytes of one buffer in one direction; 0 if it was not touched."""
        return int(self.traffic.get(buffer, {}).get(verb, {}).get(kind, 0))


@dataclass(frozen=True)
class KernelAnswer:
    """runs: one a case. compiled: {target: list of facts, or a sentence}; error: nothing came at all."""

    runs: tuple[Run, ...] = ()
    compiled: Mapping[str, list[dict[str, Any]] | str] = field(default_factory=dict)
    error: str = ""


Answer = ValuesAnswer | CallsAnswer | KernelAnswer

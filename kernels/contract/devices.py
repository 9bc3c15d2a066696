"""What this process can run: Triton's mode, the device, its dtypes, the chip to plan for.

Kernel files take `triton` and `tl` from here, so that Triton is imported in one place, in the right
mode, and a platform without it can still read, plan and cost every kernel.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from book.catalog.dtypes import DTYPES
from book.say import say
from kernels.contract.launch import Launch
from kernels.contract.targets import TARGETS, Target
from kernels.contract.targets import target as _named

TORCH_DTYPES = {name: getattr(torch, d.torch) for name, d in DTYPES.items() if d.storage}
STAND_IN = "sm_90"  # with no GPU, plans are made for this chip: its evidence is about a real one


class NoTriton(RuntimeError):
    """A kernel was launched where Triton is absent, or was imported in a mode that cannot run."""


def _sees_gpu() -> bool:
    return torch.cuda.is_available()  # CUDA and ROCm builds of torch both answer here


def _import_triton() -> tuple[Any, Any, str]:
    """Triton, its language, and the mode it is in: "compiled", "interpreted" or "missing"."""
    if importlib.util.find_spec("triton") is None:
        return _missing_triton, types.SimpleNamespace(constexpr=object), "missing"
    if "triton" not in sys.modules and not _sees_gpu():
        os.environ.setdefault("TRITON_INTERPRET", "1")
    import triton
    import triton.language as tl

    # The mode is fixed when triton.language is imported: its own functions show which one it is.
    mode = "compiled" if isinstance(tl.cdiv, triton.runtime.JITFunction) else "interpreted"
    return triton, tl, mode


class _NoKernel:
    """What @triton.jit makes of a function where there is no Triton."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)  # type: ignore[arg-type]  # it stands for a function

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        raise NoTriton(why_not())


_missing_triton = types.SimpleNamespace(jit=_NoKernel)
triton, tl, MODE = _import_triton()
_imagined: list[Target] = []  # cards that kernels run on as if they were here, the innermost last


@contextlib.contextmanager
def imagined(target: Target) -> Iterator[None]:
    """Inside, kernels are planned for `target` and started as on it, with their tensors on the CPU.

    What carries them out there is Triton's active driver: see `kernels.evidence.executed.imaginary_card`.
    """
    _imagined.append(target)
    try:
        yield
    finally:
        _imagined.pop()


def why_not() -> str:
    """Why kernels cannot be launched in this process: a sentence, or "" if they can."""
    if MODE == "missing":
        return say(
            "triton = not installed: this platform ({platform}) has no Triton wheels, or they were "
            "left out; on Linux run `pip install triton`, elsewhere use Colab or a Linux container.",
            platform=sys.platform,
        )
    if MODE == "compiled" and not _sees_gpu() and not _imagined:
        return say(
            "TRITON_INTERPRET = unset or 0 when Triton was imported, and this machine has no GPU: "
            "restart Python and import `kernels` before anything that imports triton, or set "
            "TRITON_INTERPRET=1."
        )
    return ""


if MODE == "compiled" and not _sees_gpu() and "TRITON_INTERPRET" not in os.environ:
    warnings.warn(why_not(), RuntimeWarning, stacklevel=3)


def device() -> str:
    """The device that tensors for the kernels live on: "cuda", or "cpu" for the interpreter."""
    return "cuda" if MODE == "compiled" and _sees_gpu() and not _imagined else "cpu"


def default_dtype() -> str:
    """The dtype that matrix kernels use here: "bf16" on sm_80 and later, else "fp16".

    The interpreter multiplies bf16 wrongly and sm_75 has none; fp16 moves the same bytes.
    """
    real = device() == "cuda" or bool(_imagined)
    return "bf16" if real and this_chip().name != "sm_75" else "fp16"


def dtype_name(dtype: torch.dtype) -> str:
    """The short name, as in fp16 for torch.float16; others, and uint8, which holds several, keep torch's."""
    named = {v: k for k, v in TORCH_DTYPES.items() if v != torch.uint8}
    return named.get(dtype, str(dtype).removeprefix("torch."))


def torch_dtype(name: str) -> torch.dtype:
    """What a tensor stored in dtype `name` is to torch: uint8 for packed numbers, torch's own for int32."""
    return TORCH_DTYPES.get(name) or getattr(torch, name)


def this_chip(index: int | None = None) -> Target:
    """The target nearest to GPU number `index`, with that GPU's multiprocessors; else the stand-in.

    Inside `imagined` it is the target that is imagined.
    """
    return _imagined[-1] if _imagined else _chip_here(index)


@functools.cache
def _chip_here(index: int | None) -> Target:
    if device() == "cpu":
        return TARGETS[STAND_IN]
    card = torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index)
    if torch.version.hip:
        # "gfx942:sramecc+:xnack-"; MI350's gfx950 runs what is planned for MI300
        kind = getattr(card, "gcnArchName", "gfx942").partition(":")[0]
        if kind not in ("gfx942", "gfx950"):
            raise ValueError(
                f"gcnArchName = {kind!r}: these kernels have no tiles for it; use an MI300 or an MI350."
            )
        return replace(TARGETS["gfx942"], multiprocessors=card.multi_processor_count)
    version = 10 * card.major + card.minor
    # sm_86 and sm_87 have the small shared memory of sm_89, so they are planned like it.
    nearest = "sm_89" if version in (86, 87) else _at_most(version)
    return replace(TARGETS[nearest], multiprocessors=card.multi_processor_count)


def _at_most(version: int) -> str:
    known = [t for t in TARGETS.values() if t.backend == "cuda" and int(t.arch) <= version]
    if not known:
        raise ValueError(
            f"compute capability = {version / 10}: Triton needs 7.5 or later; use a T4 or a newer card."
        )
    return max(known, key=lambda t: t.arch).name


def chip(target: Target | str | None) -> Target:
    """A target, however it was named. None is the device at hand."""
    if target is None:
        return this_chip()
    return target if isinstance(target, Target) else _named(target)


_observers: list[Callable[[Launch], None]] = []  # who is told of each launch just before it starts


def launch(launches: Sequence[Launch], where: torch.device) -> None:
    """Start each launch, in order, on the device that holds its tensors."""
    with torch.cuda.device(where) if where.type == "cuda" else contextlib.nullcontext():
        for one in launches:
            for tell in _observers:
                tell(one)
            one.kernel[one.grid](*one.args, **one.options)


@contextlib.contextmanager
def observed(tell: Callable[[Launch], None]) -> Iterator[None]:
    """Inside, `tell` hears of each launch just before it starts: counting asks what tensors are called."""
    _observers.append(tell)
    try:
        yield
    finally:
        _observers.remove(tell)

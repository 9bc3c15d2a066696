"""What a launcher refuses, in sentences that name the field, its value and the remedy."""

from __future__ import annotations

import torch

from book import catalog
from kernels.contract import devices
from kernels.contract.targets import Target


def sizes(**values: int) -> None:
    """Refuse sizes that are no whole number of at least 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(
                f"{name} = {value!r}: a size must be a whole number of at least 1; give {name} one."
            )


def dtype(name: str, target: Target) -> None:
    """Refuse a dtype that no kernel here takes, or that `target` has no arithmetic for."""
    card = catalog.accelerator(target.accelerator)
    usable = [d for d in devices.TORCH_DTYPES if d in card.peaks]
    if name not in devices.TORCH_DTYPES:
        raise ValueError(f"dtype = {name!r}: these kernels do not take it; use {_or(usable)}.")
    if name not in usable:
        raise ValueError(f"dtype = {name!r}: {card.short_name} ({target.name}) has none; use {_or(usable)}.")


def tensors(kernel: str, **named: torch.Tensor) -> None:
    """Refuse tensors that `kernel` cannot run on: kind, size, dtype and device, in that order."""
    for name, x in named.items():
        if not isinstance(x, torch.Tensor):
            raise TypeError(
                f"{name} = {type(x).__name__}: {kernel} needs a torch.Tensor; use torch.as_tensor."
            )
        if x.numel() == 0:
            raise ValueError(
                f"{name}.shape = {tuple(x.shape)}: every size must be at least 1; {kernel} has nothing to do."
            )
        if not x.is_floating_point() or devices.dtype_name(x.dtype) not in devices.TORCH_DTYPES:
            raise TypeError(
                f"{name}.dtype = {devices.dtype_name(x.dtype)}: {kernel} runs in "
                f"{_or(devices.TORCH_DTYPES)}; use {name}.to(torch.float16)."
            )
    first, x = next(iter(named.items()))
    for name, other in named.items():
        if other.dtype != x.dtype:
            raise TypeError(
                f"{name}.dtype = {devices.dtype_name(other.dtype)}, {first}.dtype = "
                f"{devices.dtype_name(x.dtype)}: both must be the same; use {name}.to({first}.dtype)."
            )
        if other.device != x.device:
            raise ValueError(
                f"{name}.device = {other.device}, {first}.device = {x.device}: both must be on one device; "
                f"use {name}.to({first}.device)."
            )
    _device(kernel, first, x)


def rank(kernel: str, name: str, x: torch.Tensor, shape: str) -> None:
    """Refuse a tensor without as many dimensions as `shape`, written like "[M, K]", has names."""
    wanted = shape.count(",") + 1
    if isinstance(x, torch.Tensor) and x.ndim != wanted:
        raise ValueError(
            f"{name}.shape = {tuple(x.shape)}: {kernel} needs {name}{shape}, {wanted} "
            f"{'dimension' if wanted == 1 else 'dimensions'}; reshape it."
        )


def vectors(kernel: str, **named: torch.Tensor) -> None:
    """Refuse anything but vectors of one length whose elements lie side by side."""
    tensors(kernel, **named)
    first, x = next(iter(named.items()))
    for name, other in named.items():
        rank(kernel, name, other, "[n]")
        if other.shape != x.shape:
            raise ValueError(
                f"{name}.shape = {tuple(other.shape)}, {first}.shape = {tuple(x.shape)}: {kernel} needs one "
                "length; cut the longer one."
            )
        if other.stride(0) != 1:
            raise ValueError(
                f"{name}.stride() = {other.stride()}: {kernel} streams elements that lie side by side; use "
                f"{name}.contiguous()."
            )


def _device(kernel: str, name: str, x: torch.Tensor) -> None:
    why_not = devices.why_not()
    if why_not:
        raise devices.NoTriton(why_not)
    if x.device.type != devices.device():
        raise ValueError(
            f"{name}.device = {x.device}: {kernel} runs on {devices.device()!r} here (Triton is "
            f"{devices.MODE}); use {name}.to({devices.device()!r})."
        )
    if devices.MODE == "interpreted" and x.dtype == torch.bfloat16:
        raise TypeError(
            f"{name}.dtype = bf16: Triton's interpreter multiplies bf16 wrongly; use {name}.half(): fp16 "
            "moves the same bytes (kernels.default_dtype() gives what fits the device)."
        )
    if devices.MODE == "compiled":
        dtype(devices.dtype_name(x.dtype), devices.this_chip(x.device.index)[0])


def _or(names) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last

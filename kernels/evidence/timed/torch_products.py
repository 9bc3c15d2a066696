"""torch's own matrix product in each dtype: what the arithmetic ceiling of a GPU is timed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from book import catalog
from book.say import say
from kernels.evidence.timed.machine import Device

PLAIN = ("bf16", "fp16", "fp32")  # torch.matmul takes them
Works = dict[str, Callable[[], Any]]


def products(device: Device, dtype: str, size: int) -> tuple[Works, str]:
    """{name: work}, each a product of two random [size, size] matrices in `dtype`; and a note, or "".

    The note says why there is none. Raises catalog.UnknownName for a name that is no dtype.
    """
    make = {**dict.fromkeys(PLAIN, _plain), "fp8": _fp8, "int8": _int8}.get(dtype)
    works = make(device, catalog.dtype(dtype), size) if make else {}
    if works:
        return works, ""
    return {}, say("torch has no product in {dtype} to time here.", dtype=dtype)


def _plain(device: Device, dtype: catalog.Dtype, size: int) -> Works:
    import torch

    kind = getattr(torch, dtype.torch)
    x, w = (torch.randn(size, size, device=device.torch_device).to(kind) for _ in range(2))
    return {"torch.matmul": lambda: x @ w}


def _fp8(device: Device, dtype: catalog.Dtype, size: int) -> Works:
    """Both ways of summing up: Hopper's narrow accumulator is the faster one, and on by choice."""
    import torch

    product = getattr(torch, "_scaled_mm", None)
    # MI300's matrix units take e4m3 with another bias and no negative zero; OCP's came with MI350.
    kind = getattr(torch, "float8_e4m3fnuz" if device.target == "gfx942" else dtype.torch, None)
    if product is None or kind is None:
        return {}
    x, w = (torch.randn(size, size, device=device.torch_device).to(kind) for _ in range(2))
    one = torch.ones((), device=device.torch_device)  # no scaling: the numbers have variance 1
    scales = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16}
    # The second operand must lie column by column, as a checkpoint's [n, k] does.
    return {
        "torch._scaled_mm": lambda: product(x, w.t(), **scales),
        "torch._scaled_mm, fast sums,": lambda: product(x, w.t(), **scales, use_fast_accum=True),
    }


def _int8(device: Device, dtype: catalog.Dtype, size: int) -> Works:
    import torch

    product = getattr(torch, "_int_mm", None)
    if product is None:
        return {}
    draw = {"dtype": getattr(torch, dtype.torch), "device": device.torch_device}
    x, w = (torch.randint(-127, 128, (size, size), **draw) for _ in range(2))
    return {"torch._int_mm": lambda: product(x, w.t())}

"""What the kernels that touch a KV cache refuse, in sentences that name the field, value and remedy."""

from __future__ import annotations

import torch

from kernels.contract import checks, devices

FP8 = torch.float8_e4m3fn
CACHE = "[batch, kv_heads, context, head_dim]"


def dtype_name(cache: torch.Tensor) -> str:
    """The short name of a cache's dtype, fp8 among them."""
    return "fp8" if cache.dtype == FP8 else devices.dtype_name(cache.dtype)


def attention(
    kernel: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor | None
) -> None:
    """Refuse a query and caches that do not belong together, or that `kernel` cannot read."""
    checks.rank(kernel, "q", q, "[batch, heads, head_dim]")
    checks.rank(kernel, "k", k, CACHE)
    checks.rank(kernel, "v", v, CACHE)
    # fp8 is a dtype of caches only: such k and v are not held to q's dtype.
    stored = {} if _is_fp8(k) and _is_fp8(v) else {"k": k, "v": v}
    checks.tensors(kernel, q=q, **stored)
    if q.dtype == torch.float32:
        raise TypeError(f"q.dtype = fp32: {kernel} runs in fp16 or bf16; use .half() on q, k and v.")
    same_device(q, "q", k=k, v=v)
    if v.shape != k.shape:
        raise ValueError(
            f"v.shape = {tuple(v.shape)}, k.shape = {tuple(k.shape)}: they are one cache and must be equal; "
            "cut the longer one."
        )
    if k.numel() == 0 or (k.shape[0], k.shape[3]) != (q.shape[0], q.shape[2]):
        raise ValueError(
            f"k.shape = {tuple(k.shape)}, q.shape = {tuple(q.shape)}: {kernel} needs k{CACHE} with q's batch "
            "and head_dim and at least one token; for [batch, context, kv_heads, head_dim] pass "
            "k.transpose(1, 2)."
        )
    side_by_side(kernel, q=q, k=k, v=v)
    if lengths is not None:
        table(kernel, "lengths", lengths, q)


def table(kernel: str, name: str, x: torch.Tensor, like: torch.Tensor) -> None:
    """Refuse anything but one whole number for each sequence, on the device of `like`."""
    if not isinstance(x, torch.Tensor) or x.dtype not in (torch.int32, torch.int64):
        kind = devices.dtype_name(x.dtype) if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(
            f"{name} = {kind}: {kernel} needs whole numbers; use torch.tensor({name}, dtype=torch.int32)."
        )
    if x.shape != like.shape[:1] or not x.is_contiguous():
        raise ValueError(
            f"{name}.shape = {tuple(x.shape)}: {kernel} needs one number for each of the {like.shape[0]} "
            f"sequences, side by side; give {name}[{like.shape[0]}]."
        )
    if x.device != like.device:
        raise ValueError(
            f"{name}.device = {x.device}: must be that of the others; use {name}.to({str(like.device)!r})."
        )


def side_by_side(kernel: str, **named: torch.Tensor) -> None:
    """Refuse tensors whose last dimension, a head's numbers, is strided."""
    for name, x in named.items():
        if x.stride(-1) != 1:
            raise ValueError(
                f"{name}.stride() = {x.stride()}: {kernel} reads a head's numbers side by side; use "
                f"{name}.contiguous()."
            )


def same_device(first: torch.Tensor, called: str, **named: torch.Tensor) -> None:
    """Refuse tensors that lie on another device than `first`."""
    for name, x in named.items():
        if x.device != first.device:
            raise ValueError(
                f"{name}.device = {x.device}, {called}.device = {first.device}: must be one device; use "
                f"{name}.to({called}.device)."
            )


def _is_fp8(x: torch.Tensor) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype == FP8

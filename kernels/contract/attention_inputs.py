"""The tensors of a prompt's attention: random ones, the float64 result, and what is refused.

`kernels.flash_attention` and its unfused twin share them: q[B, L, H, d], k and v[B, L, G, d].
"""

from __future__ import annotations

import math

import torch

from kernels.contract import checks, devices
from kernels.contract.targets import Target

SIZES = ("batch", "length", "heads", "kv_heads", "head_dim")
HEAD_DIMS = (64, 96, 128, 256)
DTYPES = ("fp16", "bf16")
_FARTHEST = 2**24  # a block of up to 128 tokens is addressed in 31 bits
_ROWS = 1024  # queries of the reference at a time: its scores are L * L numbers of 8 bytes


def inputs(
    *,
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    dtype: str = "fp16",
    device: str = "cpu",
    seed: int = 0,
) -> dict[str, torch.Tensor]:
    """Random q[batch, length, heads, head_dim], k and v[..., kv_heads, ...] of variance 1."""
    generator = torch.Generator(device).manual_seed(seed)

    def random(n: int) -> torch.Tensor:
        shape = (batch, length, n, head_dim)
        return torch.randn(shape, generator=generator, device=device).to(devices.TORCH_DTYPES[dtype])

    return {"q": random(heads), "k": random(kv_heads), "v": random(kv_heads)}


def meta(
    *, batch: int, length: int, heads: int, kv_heads: int, head_dim: int, dtype: str
) -> list[torch.Tensor]:
    """q, k, v and o of these sizes, that only the compiler looks at."""
    kind = {"dtype": devices.TORCH_DTYPES[dtype], "device": "meta"}
    return [torch.empty(batch, length, n, head_dim, **kind) for n in (heads, kv_heads, kv_heads, heads)]


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T / sqrt(d), causal) v in float64 by torch, some queries at a time."""
    batch, length, heads, head_dim = q.shape
    group = heads // k.shape[2]
    o = torch.empty(q.shape, dtype=torch.float64, device=q.device)
    positions = torch.arange(length, device=q.device)
    for b in range(batch):
        for h in range(heads):
            keys, values = (x[b, :, h // group].double() for x in (k, v))
            for first in range(0, length, _ROWS):
                rows = positions[first : first + _ROWS]
                scores = q[b, rows, h].double() @ keys.T / math.sqrt(head_dim)
                scores = scores.masked_fill(positions[None, :] > rows[:, None], -math.inf)
                o[b, rows, h] = scores.softmax(-1) @ values
    return o


def shapes(kernel: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[int, ...]:
    """(batch, length, heads, kv_heads, head_dim) of q, k and v, once they have been checked."""
    for name, x, wanted in (("q", q, "[B, L, H, d]"), ("k", k, "[B, L, G, d]"), ("v", v, "[B, L, G, d]")):
        checks.rank(kernel, name, x, wanted)
    checks.tensors(kernel, q=q, k=k, v=v)
    batch, length, heads, head_dim = q.shape
    if v.shape != k.shape:
        raise ValueError(
            f"v.shape = {tuple(v.shape)}, k.shape = {tuple(k.shape)}: {kernel} needs one value for each key; "
            "give both the same shape."
        )
    if (*k.shape[:2], k.shape[3]) != (batch, length, head_dim):
        raise ValueError(
            f"k.shape = {tuple(k.shape)}, q.shape = {tuple(q.shape)}: {kernel} needs the same B, L and d in "
            "both, in the order [B, L, heads, d]; use .transpose(1, 2) if heads come before tokens."
        )
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.stride(3) != 1 or x.stride(1) >= _FARTHEST:
            raise ValueError(
                f"{name}.stride() = {x.stride()}: {kernel} needs the numbers of a head side by side, and "
                f"tokens less than {_FARTHEST:,} numbers apart; use {name}.contiguous()."
            )
    refuse(batch, length, heads, k.shape[2], head_dim, devices.dtype_name(q.dtype), None)
    return batch, length, heads, k.shape[2], head_dim


def refuse(
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    dtype: str | None,
    target: Target | str | None,
) -> tuple[Target, int]:
    """The chip and its multiprocessors; raises ValueError for what there is no kernel for."""
    checks.sizes(batch=batch, length=length, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
    if head_dim not in HEAD_DIMS:
        raise ValueError(
            f"head_dim = {head_dim}: there are tiles for {', '.join(map(str, HEAD_DIMS))}; pad q, k and v "
            "with zeros to the next of these, and scale q."
        )
    if heads % kv_heads:
        raise ValueError(
            f"heads = {heads}, kv_heads = {kv_heads}: every KV head must serve equally many query heads; "
            "make heads a multiple of kv_heads."
        )
    dtype = devices.default_dtype() if dtype is None else dtype
    chip, sms = devices.chip(target)
    if dtype not in DTYPES:
        raise ValueError(f"dtype = {dtype!r}: attention multiplies in {' or '.join(DTYPES)}; use fp16.")
    checks.dtype(dtype, chip)
    return chip, sms

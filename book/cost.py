"""What one operation costs: FLOPs done and bytes moved, in plain arithmetic.

Every function here takes ints (a number comes back), NumPy arrays (a curve) or SymPy symbols
(the formula that is printed in the text). That is why the bodies hold nothing but + - * / and
why there is no second place in this book where a cost is written.

Bytes are *compulsory* traffic: every input read once, every output written once. That is the
least any implementation can move, and what an infinitely large cache would leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

Number = Any  # int, float, numpy.ndarray or sympy.Expr: anything that adds and multiplies

FP32_BYTES = 4  # partial sums are kept in fp32 whatever the operands are


@dataclass(frozen=True)
class Cost:
    """FLOPs and bytes of one operation, the bytes named by the tensor they belong to.

    flops: floating-point operations; a multiply and an add are two.
    reads, writes: bytes read from and written to memory, by tensor name.
    workspace: names of the tensors that only this implementation needs (split-K partial sums).
    workspace_flops: FLOPs spent on them. They are reported beside `flops`, never inside it.
    """

    flops: Number
    reads: Mapping[str, Number] = field(default_factory=dict)
    writes: Mapping[str, Number] = field(default_factory=dict)
    workspace: frozenset[str] = frozenset()
    workspace_flops: Number = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", MappingProxyType(dict(self.reads)))
        object.__setattr__(self, "writes", MappingProxyType(dict(self.writes)))

    @property
    def bytes(self) -> Number:
        """All bytes moved, workspace included."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def workspace_bytes(self) -> Number:
        """Bytes that a different implementation would not have moved."""
        return sum(
            terms[name] for terms in (self.reads, self.writes) for name in terms if name in self.workspace
        )

    @property
    def intensity(self) -> Number:
        """Arithmetic intensity: FLOP per byte."""
        return self.flops / self.bytes

    def __add__(self, other: Cost) -> Cost:
        """The cost of doing both, tensor by tensor; terms of the same name add up."""
        return Cost(
            self.flops + other.flops,
            _merge(self.reads, other.reads),
            _merge(self.writes, other.writes),
            self.workspace | other.workspace,
            self.workspace_flops + other.workspace_flops,
        )


def _merge(a: Mapping[str, Number], b: Mapping[str, Number]) -> dict[str, Number]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in [*a, *(n for n in b if n not in a)]}


def _positive(**sizes: Number) -> None:
    """Refuse sizes below one. Symbols have no value yet, and pass."""
    for name, value in sizes.items():
        if getattr(value, "free_symbols", None):
            continue
        smallest = value.min() if hasattr(value, "min") and hasattr(value, "shape") else value
        if not smallest > 0:
            raise ValueError(f"{name} = {smallest}: a size must be at least 1; give {name} a positive value.")


def _ceil_div(a: Number, b: Number) -> Number:
    return -(-a // b)


# ------------------------------------------------------------------------- chapter 01: the ruler


def copy(n: Number, itemsize: Number = 4) -> Cost:
    """y[n] = x[n]: no arithmetic, one read and one write of n elements of `itemsize` bytes."""
    _positive(n=n, itemsize=itemsize)
    return Cost(0, {"x": n * itemsize}, {"y": n * itemsize})


def triad(n: Number, itemsize: Number = 4) -> Cost:
    """y[n] = a[n] + scale * b[n]: two FLOPs for three elements (McCalpin's STREAM triad)."""
    _positive(n=n, itemsize=itemsize)
    return Cost(2 * n, {"a": n * itemsize, "b": n * itemsize}, {"y": n * itemsize})


def fma_chain(n: Number, k: Number, itemsize: Number = 4) -> Cost:
    """x -> x * a + c, k times in registers: 2k FLOPs an element, one read and one write.

    Intensity k / itemsize: a dial for the whole roof.
    """
    _positive(n=n, k=k, itemsize=itemsize)
    return Cost(2 * k * n, {"x": n * itemsize}, {"y": n * itemsize})


# ------------------------------------------------------------------ chapter 02: the linear layer


def linear(m: Number, k: Number, n: Number, itemsize: Number = 2) -> Cost:
    """y[m, n] = x[m, k] @ w[k, n]: a multiply and an add for each of m * k * n pairs.

    m: rows (tokens in the step); k: inputs; n: outputs; itemsize: bytes per element.
    At two bytes: intensity = m / (1 + m/k + m/n).
    """
    _positive(m=m, k=k, n=n, itemsize=itemsize)
    return Cost(2 * m * k * n, {"x": m * k * itemsize, "w": k * n * itemsize}, {"y": m * n * itemsize})


def linear_tiles(
    m: int,
    k: int,
    n: int,
    *,
    block_m: int,
    block_n: int,
    block_k: int,
    splits: int = 1,
    reduce_block: int = 1,
    itemsize: int = 2,
) -> Cost:
    """What a tiled, split-K matrix product issues for the problem `linear(m, k, n)`.

    FLOPs are those of whole tiles: edges are padded to `block_m`, `block_n`, `block_k`. With
    splits > 1 each of `splits` programs takes an equal run of k-blocks and writes an fp32 partial
    sum of the whole output, which a second kernel reads back and adds in blocks of `reduce_block`
    elements: the price of occupancy.
    """
    useful = linear(m, k, n, itemsize)
    k_blocks = _ceil_div(_ceil_div(k, block_k), splits) * splits
    flops = 2 * (_ceil_div(m, block_m) * block_m) * (_ceil_div(n, block_n) * block_n) * k_blocks * block_k
    if splits == 1:
        return replace(useful, flops=flops)
    partials = splits * m * n * FP32_BYTES
    return Cost(
        flops,
        {**useful.reads, "partials": partials},
        {**useful.writes, "partials": partials},
        frozenset({"partials"}),
        workspace_flops=splits * _ceil_div(m * n, reduce_block) * reduce_block,
    )

"""Number formats: what each takes in memory, and what can be computed in it. Their one home.

Three facts that are easily taken for one. A tensor is *stored* in a format. An experiment
*computes* in one, often another: int4 weights are multiplied as fp16. The roof follows from the
units that compute: matrix units in that format, or the vector units (`hardware.roof_peak`).

    >>> itemsize("nvfp4"), effective_bits("nvfp4")     # the numbers alone; with their scales
    (0.5, 4.5)

Sources. fp16 and fp32: IEEE 754. bf16, tf32: NVIDIA A100 whitepaper. fp8 is e4m3, of "FP8 Formats
for Deep Learning" (Micikevicius et al., 2022) and OCP's 8-bit floating point specification v1.0.
mxfp4: OCP Microscaling Formats (MX) specification v1.0 (2023), 32 elements e2m1 with one scale
e8m0. nvfp4: NVIDIA, "Introducing NVFP4 for Efficient and Accurate Low-Precision Inference" (2025),
16 elements e2m1 with one scale e4m3, and one fp32 a tensor, which no block pays for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from book.catalog.names import look_up

Accumulator = Literal["fp32", "int32"]


@dataclass(frozen=True)
class Dtype:
    """One number format.

    bits: of a number, scales left out. block, scale_bits: so many numbers share so many bits of
    scales (0, 0 where the format has none of its own). element: how a number is laid out.
    storage: tensors are kept in it. rate: the arithmetic that the catalog has a peak for, "" if
    none: int4 in groups is unpacked and multiplied in another format, so its groups have none.
    accumulator: what sums of its products are kept in. vendor: whose matrix units alone take it.
    torch: torch's name of an element in memory; numbers under a byte are packed, two in a uint8.
    """

    name: str
    bits: int
    element: str
    block: int = 0
    scale_bits: int = 0
    storage: bool = True
    rate: str = ""
    accumulator: Accumulator = "fp32"
    vendor: str = ""
    torch: str = "uint8"

    @property
    def itemsize(self) -> int | float:
        """Bytes of a number, scales left out; a fraction where several share a byte."""
        return self.bits // 8 if self.bits % 8 == 0 else self.bits / 8

    @property
    def effective_bits(self) -> int | float:
        """Bits of a number with its share of the scales."""
        return self.bits + self.scale_bits / self.block if self.block else self.bits

    @property
    def effective_itemsize(self) -> int | float:
        """Bytes of a number with its share of the scales."""
        return self.effective_bits / 8 if self.block else self.itemsize

    @property
    def arithmetic(self) -> bool:
        """Matrix or vector units multiply operands of this format."""
        return bool(self.rate)


_TABLE = (
    Dtype("fp32", 32, "e8m23", rate="fp32", torch="float32"),
    # kept in memory as fp32; the matrix units drop the low mantissa bits
    Dtype("tf32", 32, "e8m10", storage=False, rate="tf32", torch="float32"),
    Dtype("fp16", 16, "e5m10", rate="fp16", torch="float16"),
    Dtype("bf16", 16, "e8m7", rate="bf16", torch="bfloat16"),
    Dtype("fp8", 8, "e4m3", rate="fp8", torch="float8_e4m3fn"),
    Dtype("int8", 8, "integer", rate="int8", accumulator="int32", torch="int8"),
    Dtype("fp4", 4, "e2m1", rate="fp4"),
    Dtype("int4", 4, "integer", rate="int4", accumulator="int32"),
    Dtype("mxfp4", 4, "e2m1", block=32, scale_bits=8, rate="fp4"),
    Dtype("nvfp4", 4, "e2m1", block=16, scale_bits=8, rate="fp4", vendor="NVIDIA"),
    # int4 itself says nothing of scales; these are the two that checkpoints of this book have.
    Dtype("int4_g128", 4, "integer", block=128, scale_bits=16),  # GPTQ, AWQ: an fp16 scale
    Dtype("int4_g32", 4, "integer", block=32, scale_bits=32),  # gpt-fast: a bf16 scale and a bf16 zero
)

DTYPES: Mapping[str, Dtype] = MappingProxyType({d.name: d for d in _TABLE})

# The formats that a card's datasheet gives a rate for, the widest first.
RATES: tuple[str, ...] = tuple(d.name for d in _TABLE if d.rate == d.name)


def dtype(name: str) -> Dtype:
    """The format of that name. Raises UnknownName with the nearest ones."""
    return look_up("dtype", name, DTYPES)


def itemsize(name: str) -> int | float:
    """Bytes of a number of dtype `name`, scales not included. Raises UnknownName for another name."""
    return dtype(name).itemsize


def effective_bits(name: str) -> int | float:
    """Bits of a number of dtype `name` with its share of the scales. Raises UnknownName."""
    return dtype(name).effective_bits


def effective_itemsize(name: str) -> int | float:
    """Bytes of a number of dtype `name` with its share of the scales. Raises UnknownName."""
    return dtype(name).effective_itemsize

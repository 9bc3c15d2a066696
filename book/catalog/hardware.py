"""Accelerators: what each can compute and move, in SI units, dense."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from book.catalog.dtypes import dtype as format_of
from book.catalog.rows import Row, Source, read, rows, scaled

PATH = Path(__file__).with_name("accelerators.yaml")
CONFIDENCES = ("high", "medium", "low")

Unit = Literal["matrix", "vector"]
Memory = Literal["framework", "driver", "label"]
UNITS: tuple[Unit, ...] = ("matrix", "vector")


class UnsupportedDtype(ValueError):
    """The card has no rate for this dtype."""


class NoLink(ValueError):
    """The card has no link to others of its kind."""


@dataclass(frozen=True)
class Accelerator:
    """One accelerator. Bytes, bytes/s and FLOP/s throughout.

    aliases: other names by which `catalog.accelerator` finds it.
    driver_names: regular expressions for what a driver calls it (see `catalog.card_called`).
    capacity: the vendor's label (GB = 1e9 bytes), which most of them mean in GiB. Two numbers tell what
    is there, each None where nobody's was read: smi_bytes, what the driver's own tool prints
    (nvidia-smi, rocm-smi, hl-smi); framework_bytes, what torch or XLA gets (total_memory, the
    "total capacity" of an out-of-memory message), after what driver and error correction keep.
    `usable` is the one that a program may plan with, `usable_is` says which of the three that is.
    bandwidth: as printed; driver_bandwidth: from the bus width and clock the driver reports, if known.
    peaks: dense FLOP/s by dtype; the tensor or matrix rate, but of fp32 the vector rate, unless
    fp32_unit is "matrix": no rate of that card's vector units was read. matrix_units: False where there
    are none, and the rates of 16 bits are those of packed vector arithmetic (a P100).
    sparse_peaks: with 2:4 structured sparsity. They are here to be recognised in other people's
    tables, never to predict with. fast_accumulate_peaks: GeForce rates with narrow accumulation.
    interconnect: what joins it to others of its kind; interconnect_bandwidth: what it can send over all
    of its links at once, one way, None if it has none; joins: how many that link joins, where a source
    says so: the bridge of an H100 NVL makes pairs.
    unverified: names of fields that no source was read for.
    """

    id: str
    name: str
    short_name: str
    aliases: tuple[str, ...]
    driver_names: tuple[str, ...]
    vendor: str
    arch: str
    compute_capability: str
    capacity: int
    memory_type: str
    smi_bytes: int | None
    framework_bytes: int | None
    bandwidth: float
    driver_bandwidth: float | None
    peaks: Mapping[str, float]
    sparse_peaks: Mapping[str, float]
    fast_accumulate_peaks: Mapping[str, float]
    fp32_unit: Unit
    matrix_units: bool
    sparse_marketing: bool
    sm_count: int
    l2_bytes: int | None
    interconnect: str
    interconnect_bandwidth: float | None
    joins: int | None
    tdp: float | None
    derivation: str
    confidence: str
    unverified: tuple[str, ...]
    sources: tuple[Source, ...]
    notes: str

    @property
    def source(self) -> str:
        """All sources as one line."""
        return "; ".join(s.text for s in self.sources)

    @property
    def usable(self) -> int:
        """Bytes of memory that capacity is reckoned with, for every card by the same rule.

        What a framework sees, for that is what an engine shares out. Where nobody printed it, what
        the driver's tool shows, at most 3 % more. Where that is unknown too, the label in 1e9 bytes.
        A label may promise more than there is, where GDDR corrects errors or the memory is shared with
        a CPU. Only HBM parts are left with it here, and of those with a reading none had less.
        """
        return self.framework_bytes or self.smi_bytes or self.capacity

    @property
    def usable_is(self) -> Memory:
        """Whose number `usable` is: "framework", "driver" or "label"."""
        if self.framework_bytes:
            return "framework"
        return "driver" if self.smi_bytes else "label"

    def peak(self, dtype: str, unit: Unit = "matrix") -> float:
        """Dense peak of arithmetic in `dtype`, FLOP/s; of the matrix units, or of the vector units.

        unit="matrix": the rate in `peaks`. mxfp4 and nvfp4 have the fp4 rate. fp32 has one rate
        only, the vector one: what multiplies matrices in full fp32 runs there (with tf32 it doesn't).
        A card without matrix units (`matrix_units`) multiplies its matrices on the vector units: its rate
        of 16 bits is theirs, for packed numbers.
        unit="vector": the fp32 rate, whatever the dtype. Kernels here turn what they load into fp32
        and multiply and add in that. Where vendors print rates of packed 16-bit vector arithmetic
        (NVIDIA's A100 whitepaper: four times fp32 in fp16, twice in bf16), no kernel here uses it.

        Raises UnsupportedDtype naming the dtypes this card has; ValueError for another unit.
        """
        wanted = format_of(dtype)  # a misspelt dtype is not an unsupported one
        if unit not in UNITS:
            raise ValueError(f"unit = {unit!r}: not known; use 'matrix' or 'vector'.")
        there = f"Choose one that it has: {', '.join(self.peaks)}."
        if unit == "vector":
            if "fp32" not in self.peaks:
                raise UnsupportedDtype(
                    f"{self.name} has no rate of its vector units, which is fp32's. {there}"
                )
            if self.fp32_unit != "vector":
                raise UnsupportedDtype(
                    f"{self.name} has no rate of its vector units: the one printed for fp32 is its matrix "
                    f"units'. Ask for unit = 'matrix'. {there}"
                )
            return self.peaks["fp32"]
        if not wanted.arithmetic:
            raise UnsupportedDtype(
                f"{dtype} is a way to store numbers, which no unit multiplies: {self.name} has no rate "
                f"for it. Say what it is multiplied in. {there}"
            )
        if wanted.rate not in self.peaks or wanted.vendor not in ("", self.vendor):
            raise UnsupportedDtype(f"{self.name} has no {dtype} rate. {there}")
        return self.peaks[wanted.rate]

    def ridge(self, dtype: str) -> float:
        """Peak over bandwidth, FLOP/byte: the intensity at which arithmetic becomes the limit."""
        return self.peak(dtype) / self.bandwidth

    def link(self) -> float:
        """What it can send to others of its kind, bytes/s one way. Raises NoLink if it has no link."""
        if self.interconnect_bandwidth is None:
            raise NoLink(
                f"{self.name} has no link to another of its kind (interconnect: {self.interconnect}), so it "
                "works alone. Choose a card with NVLink, Infinity Fabric or PCIe, or one rank."
            )
        return self.interconnect_bandwidth

    @cached_property
    def matrix_flops_per_cycle(self) -> int | None:
        """Dense FLOP of 16 bits that one multiprocessor does a cycle, as `derivation` has it; else None."""
        found = re.match(r"\d+ (?:SM|CU) x (\d+)\b", self.derivation)
        return int(found[1]) if found else None

    @cached_property
    def clock(self) -> float | None:
        """Hz at which its multiprocessors reach the printed peak of 16 bits; None if that is not known."""
        if self.matrix_flops_per_cycle is None:
            return None
        return self.peaks[self.default_dtype] / (self.sm_count * self.matrix_flops_per_cycle)

    @cached_property
    def default_dtype(self) -> str:
        """bf16 where the card has it, else fp16: what an LLM's weights would be run in."""
        return "bf16" if "bf16" in self.peaks else "fp16"


def load_accelerators(path: Path = PATH) -> Mapping[str, Accelerator]:
    """id -> Accelerator, checked. Raises CatalogError."""
    document = read(path)
    return MappingProxyType(
        {row.data["id"]: _accelerator(row) for row in rows(document, "accelerators", path)}
    )


def _accelerator(row: Row) -> Accelerator:
    memory, link = row.row("memory"), row.row("interconnect")
    l2 = row.number("l2_mb", optional=True)
    driver_bandwidth = row.number("bandwidth_tbs_driver", optional=True)
    link_gbs = link.number("gbs_per_direction", optional=True)
    made = Accelerator(
        id=row.text("id"),
        name=row.text("name"),
        short_name=row.text("short_name"),
        aliases=tuple(str(x) for x in row.items("aliases", optional=True)),
        driver_names=_driver_names(row),
        vendor=row.text("vendor"),
        arch=row.text("arch"),
        compute_capability=row.text("compute_capability", optional=True),
        capacity=round(scaled(memory.number("capacity_gb"), 9)),
        memory_type=memory.text("type"),
        smi_bytes=_mebibytes(memory, "smi_mib"),
        framework_bytes=_mebibytes(memory, "framework_mib"),
        bandwidth=scaled(row.number("bandwidth_tbs"), 12),
        driver_bandwidth=None if driver_bandwidth is None else scaled(driver_bandwidth, 12),
        peaks=row.rates("tflops_dense", 12),
        sparse_peaks=row.rates("tflops_sparse", 12, optional=True),
        fp32_unit=row.choice("fp32_unit", UNITS, optional=True) or "vector",
        matrix_units=row.flag("matrix_units", default=True),
        fast_accumulate_peaks=row.rates("tflops_dense_fp16_accumulate", 12, optional=True),
        sparse_marketing=row.flag("sparse_marketing"),
        sm_count=row.number("sm_count", integer=True),
        l2_bytes=None if l2 is None else round(l2 * 2**20),
        interconnect=link.text("name"),
        interconnect_bandwidth=None if link_gbs is None else scaled(link_gbs, 9),
        joins=link.number("joins", optional=True, integer=True),
        tdp=row.number("tdp_w", optional=True),
        derivation=row.text("derivation", optional=True),
        confidence=row.choice("confidence", CONFIDENCES),
        unverified=tuple(str(x) for x in row.items("unverified")),
        sources=row.cited(),
        notes=row.text("notes"),
    )
    for part in (row, memory, link):
        part.finish()
    _check_rates(row, made)
    _check_memory(memory, made)
    _check_confidence(row, made)
    return made


def _mebibytes(memory: Row, name: str) -> int | None:
    """A number of MiB as bytes."""
    mib = memory.number(name, optional=True)
    return None if mib is None else round(mib * 2**20)


def _check_confidence(row: Row, made: Accelerator) -> None:
    """A card is no surer than the two numbers that every roof is drawn from."""
    unread = {"bandwidth_tbs", "tflops_dense", made.default_dtype} & set(made.unverified)
    if unread and made.confidence != "low":
        row.refuse(
            "confidence",
            made.confidence,
            f"no source was read for {', '.join(sorted(unread))}: low, till then.",
        )


def _check_memory(memory: Row, made: Accelerator) -> None:
    if made.smi_bytes and made.framework_bytes and made.framework_bytes > made.smi_bytes:
        memory.refuse(
            "framework_mib",
            made.framework_bytes / 2**20,
            f"a framework can't see more than smi_mib = {made.smi_bytes / 2**20:g}; check which is which.",
        )
    if not 0.9 * made.capacity <= made.usable <= 1.1 * made.capacity:
        memory.refuse(
            "framework_mib" if made.framework_bytes else "smi_mib",
            made.usable / 2**20,
            f"is no {made.capacity / 1e9:g} GB card's; check the unit, MiB, and that the card was whole.",
        )


def _driver_names(row: Row) -> tuple[str, ...]:
    patterns = row.items("driver_names", optional=True)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            row.refuse("driver_names", pattern, f"must be a regular expression in quotes ({error}).")
        if re.search(pattern, ""):
            row.refuse("driver_names", pattern, "fits every name; write what only this card's name has.")
    return patterns


def _check_rates(row: Row, made: Accelerator) -> None:
    if not made.peaks:
        row.refuse("tflops_dense", {}, "a card needs at least one dense rate.")
    for dtype, sparse in made.sparse_peaks.items():
        dense = made.peaks.get(dtype)
        # 2:4 sparsity at most doubles the rate; anything else means that the two were mixed up.
        if dense is None or not dense < sparse <= 2.01 * dense:
            row.refuse(
                f"tflops_sparse.{dtype}",
                sparse / 1e12,
                f"must lie above the dense {dtype} rate and at most double it; check which of the two it is.",
            )
    if made.sparse_marketing and not made.sparse_peaks:
        row.refuse("sparse_marketing", True, "then give the printed sparse rates as tflops_sparse.")

"""The chips that kernels are planned and compiled for, and the limits occupancy follows from.

NVIDIA limits: CUDA C++ programming guide, table "Technical specifications per compute capability".
AMD limits: CDNA 3 instruction set reference and ROCm hardware specifications (512 vector registers
a lane on each of 4 SIMDs, 8 waves a SIMD, 64 KiB of LDS). Peaks and bandwidths are not here: they
live in the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass

from book import catalog
from book.cost.base import ceil_div

_KIB = 1024
FP8_SINCE = 89  # the first NVIDIA architecture for which Triton compiles e4m3
MAX_THREADS = 1024  # of a block, on each of these chips
TENSOR_COLUMNS = 512  # of tensor memory, on one multiprocessor of sm_100


@dataclass(frozen=True)
class Target:
    """One architecture. arch: 80 for sm_80, "gfx942" for AMD. Sizes in bytes, or counts.

    accelerator: the catalog's card that stands for the architecture.
    registers: 32-bit registers of one multiprocessor; shared_bytes: its shared memory.
    shared_reserved: shared memory that the system keeps for itself in every block.
    multiprocessors: of the very GPU, where they were read off it.
    """

    name: str
    backend: str  # "cuda" or "hip"
    arch: int | str
    warp_size: int
    accelerator: str
    registers: int
    shared_bytes: int
    max_threads: int
    max_blocks: int
    shared_reserved: int = 0
    multiprocessors: int | None = None

    @property
    def sm_count(self) -> int:
        """Multiprocessors: those of the GPU that is here, where it was asked; else of `accelerator`."""
        return self.multiprocessors or catalog.accelerator(self.accelerator).sm_count

    @property
    def has_tensor_cores(self) -> bool:
        """Whether Triton emits matrix instructions for it (it emits none for sm_75)."""
        return self.name != "sm_75"

    def has(self, dtype: str) -> bool:
        """Whether it computes in `dtype`: its card has a rate, and Triton compiles it."""
        if dtype == "fp8" and isinstance(self.arch, int) and self.arch < FP8_SINCE:
            return False
        return dtype in catalog.accelerator(self.accelerator).peaks

    @property
    def max_shared_per_block(self) -> int:
        """Bytes of shared memory that one block may ask for."""
        return self.shared_bytes - self.shared_reserved


@dataclass(frozen=True)
class Occupancy:
    """How many blocks of a kernel live on one multiprocessor at once, and what stops more.

    blocks: resident blocks; fraction: resident threads over the most possible; limit: the
    resource that runs out first ("registers", "shared memory", "tensor memory", "threads", "blocks").
    """

    blocks: int
    fraction: float
    limit: str


TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("sm_75", "cuda", 75, 32, "t4", 65536, 64 * _KIB, 1024, 16),
        Target("sm_80", "cuda", 80, 32, "a100_80gb_sxm", 65536, 164 * _KIB, 2048, 32, _KIB),
        Target("sm_89", "cuda", 89, 32, "l4", 65536, 100 * _KIB, 1536, 24, _KIB),
        Target("sm_90", "cuda", 90, 32, "h100_sxm", 65536, 228 * _KIB, 2048, 32, _KIB),
        Target("sm_100", "cuda", 100, 32, "b200", 65536, 228 * _KIB, 2048, 32, _KIB),
        Target("sm_120", "cuda", 120, 32, "rtx5090", 65536, 100 * _KIB, 1536, 24, _KIB),
        Target("gfx942", "hip", "gfx942", 64, "mi300x", 131072, 64 * _KIB, 2048, 32),
    )
}


def target(name: str) -> Target:
    """The target called `name`; ValueError lists the known ones."""
    try:
        return TARGETS[name]
    except (KeyError, TypeError):
        raise ValueError(f"target = {name!r}: not known here; choose one of {', '.join(TARGETS)}.") from None


def occupancy(
    target: Target, *, registers: int, shared_bytes: int, warps: int, tensor_columns: int = 0
) -> Occupancy:
    """Blocks of `warps` warps that fit on one multiprocessor of `target`.

    registers: 32-bit registers a thread; shared_bytes: shared memory a block; tensor_columns: of
    the 512 columns of tensor memory that sm_100 has. Registers are handed out to whole warps in
    units of 8 a thread, and each of the 4 schedulers has its own quarter of them (CUDA occupancy
    calculator; LLVM's AMDGPU occupancy uses the same granule on CDNA 3).
    """
    granule = 8 * target.warp_size
    per_warp = ceil_div(max(registers, 1) * target.warp_size, granule) * granule
    resident_warps = target.registers // 4 // per_warp * 4
    shared = ceil_div(shared_bytes + target.shared_reserved, 128) * 128
    limits = {
        "threads": target.max_threads // target.warp_size // warps,
        "blocks": target.max_blocks,
        "registers": resident_warps // warps,
        "shared memory": target.shared_bytes // shared if shared else target.max_blocks,
    }
    if tensor_columns:
        limits["tensor memory"] = TENSOR_COLUMNS // tensor_columns
    if warps * target.warp_size > MAX_THREADS:
        limits["threads"] = 0
    limit = min(limits, key=limits.__getitem__)
    blocks = limits[limit]
    return Occupancy(blocks, blocks * warps * target.warp_size / target.max_threads, limit)

"""The chips that kernels are planned and compiled for, and the limits occupancy follows from.

Limits per multiprocessor: CUDA C++ programming guide, "Compute capabilities" (NVIDIA); CDNA3
architecture white paper (AMD). Peaks and bandwidths are not here: they live in the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass

from book import catalog


@dataclass(frozen=True)
class Target:
    """One architecture. arch: 80 for sm_80, "gfx942" for AMD. Sizes in bytes, or counts.

    accelerator: the catalog's card that stands for the architecture.
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

    @property
    def sm_count(self) -> int:
        """Multiprocessors of `accelerator`."""
        return catalog.accelerator(self.accelerator).sm_count

    @property
    def has_tensor_cores(self) -> bool:
        """Whether Triton emits matrix instructions for it (it emits none for sm_75)."""
        return self.name != "sm_75"


_KIB = 1024
TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("sm_75", "cuda", 75, 32, "t4", 65536, 64 * _KIB, 1024, 16),
        Target("sm_80", "cuda", 80, 32, "a100_80gb_sxm", 65536, 164 * _KIB, 2048, 32),
        Target("sm_89", "cuda", 89, 32, "l4", 65536, 100 * _KIB, 1536, 24),
        Target("sm_90", "cuda", 90, 32, "h100_sxm", 65536, 228 * _KIB, 2048, 32),
        Target("sm_100", "cuda", 100, 32, "b200", 65536, 228 * _KIB, 2048, 32),
        Target("sm_120", "cuda", 120, 32, "rtx5090", 65536, 100 * _KIB, 1536, 24),
        Target("gfx942", "hip", "gfx942", 64, "mi300x", 131072, 64 * _KIB, 2048, 32),
    )
}

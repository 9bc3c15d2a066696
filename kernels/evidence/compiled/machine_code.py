"""Compile kernels ahead of time for chips that are not here, and read the machine code.

Runs in a child process in compiled mode (`kernels.evidence.child_process`); no GPU is needed. Triton is
told of a target by a stand-in driver, `kernel.warmup` compiles with tensors that have a shape and
no memory, and the disassembler from Triton's own wheel shows what came out.
"""

from __future__ import annotations

import collections
import functools
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from kernels.contract.targets import Target, occupancy
from kernels.contract.targets import target as find_target
from kernels.evidence.addresses import find

# What the hardware's documentation calls them, and the opcode that shows it in the listing.
MATRIX = {
    "tcgen05.mma": r"\bUTC\w*MMA[\w.]*",
    "wgmma": r"\b(?:H|I|Q|D)GMMA[\w.]*",
    "mma.sync": r"\b(?:H|I|Q|D|O)MMA[\w.]*",
    "mfma": r"\bv_mfma_\w+",
}


class StandIn:
    """As much of a Triton driver as compiling asks for."""

    def __init__(self, target: Target) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(target.backend, target.arch, target.warp_size)
        self._device = int(re.sub(r"\D", "", str(target.arch)))  # one JIT cache for each target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return self._device

    def get_current_stream(self, device: int | None = None) -> int:
        return 0


def compile_request(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Compile one experiment for one target: a list of facts, one entry a kernel launch.

    request: {"experiment": "module:name", "target": "sm_90", "dtype": "bf16", "sizes": {...}}.
    """
    experiment = find(request["experiment"])
    target, dtype, sizes = find_target(request["target"]), request["dtype"], request["sizes"]
    plan = experiment.plan(**sizes, dtype=dtype, target=target)
    activate(target)
    facts = []
    for launch in experiment.meta_launches(plan, dtype, **sizes):
        kernel = launch.kernel.warmup(*launch.args, grid=launch.grid, **launch.options)
        facts.append({"kernel": launch.label or launch.kernel.__name__, **read(kernel, target)})
    return facts


def activate(target: Target) -> None:
    """Have Triton compile for `target` from now on in this process, whatever is here."""
    from triton.runtime import driver

    driver.set_active(StandIn(target))


def read(kernel: Any, target: Target) -> dict[str, Any]:
    """Facts of one compiled kernel: instruction, registers, spills, memory, occupancy."""
    if target.backend == "hip":
        facts = read_amd(kernel.asm["amdgcn"])
    else:
        usage, listing = _disassemble(kernel.asm["cubin"])
        facts = read_nvidia(usage, listing)
    warps, shared = kernel.metadata.num_warps, kernel.metadata.shared
    columns = getattr(kernel.metadata, "tmem_size", 0) or 0
    fits = occupancy(
        target, registers=facts["registers"], shared_bytes=shared, warps=warps, tensor_columns=columns
    )
    return {
        **facts,
        "shared_bytes": shared,
        "tensor_memory_columns": columns,
        "warps": warps,
        "stages": getattr(kernel.metadata, "num_stages", None),
        "blocks_per_sm": fits.blocks,
        "occupancy": fits.fraction,
        "limited_by": fits.limit,
    }


@functools.lru_cache(maxsize=64)  # sizes that share their code come one after another
def _disassemble(cubin: bytes) -> tuple[str, str]:
    """The resource table and the SASS listing of a cubin, by the tools in Triton's wheel."""
    import triton.backends.nvidia as nvidia

    tools = Path(nvidia.__file__).parent / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()

        def call(*command: str) -> str:
            return subprocess.run(
                command, capture_output=True, text=True, check=True, encoding="utf-8"
            ).stdout

        return (
            call(str(tools / "cuobjdump"), "--dump-resource-usage", file.name),
            call(str(tools / "nvdisasm"), "-c", "-ndf", file.name),  # no data flow: nothing here asks for it
        )


def read_nvidia(usage: str, listing: str) -> dict[str, Any]:
    """Facts from cuobjdump's resource table and a SASS listing.

    spill_bytes: the stack of one thread. Triton's kernels have no other use for one.
    """
    registers, stack = map(int, re.search(r"REG:(\d+)\s+STACK:(\d+)", usage).groups())
    return {
        **_matrix(listing),
        "registers": registers,
        "spill_bytes": stack,
        "spill_instructions": _count(r"\b(?:LDL|STL)\b", listing),
        "wide_loads": _count(r"\bLDG\.E\.128|\bLDGSTS\.E\.(?:\w+\.)*128", listing),
        "loads": _count(r"\bLDG\.E|\bLDGSTS\.E|\bUTMALDG", listing),
    }


def read_amd(assembly: str) -> dict[str, Any]:
    """Facts from the assembly text of an AMD kernel and the metadata at its end.

    registers: vector registers a lane, accumulation registers included, as occupancy counts them.
    """

    def value(key: str) -> int:
        found = re.search(rf"\.{key}:\s+(\d+)", assembly)
        return int(found.group(1)) if found else 0

    return {
        **_matrix(assembly),
        "registers": value("vgpr_count"),
        "scalar_registers": value("sgpr_count"),
        "spill_bytes": value("private_segment_fixed_size"),
        "spill_instructions": value("vgpr_spill_count") + value("sgpr_spill_count"),
        "wide_loads": _count(r"\b(?:global|buffer)_load_dwordx4\b", assembly),
        "loads": _count(r"\b(?:global|buffer)_load_(?:d|u|s)\w+", assembly),
    }


def _matrix(listing: str) -> dict[str, Any]:
    for name, pattern in MATRIX.items():
        found = re.findall(pattern, listing)
        if found:
            opcode, _ = collections.Counter(found).most_common(1)[0]
            return {"instruction": name, "opcode": opcode, "matrix_instructions": len(found)}
    return {"instruction": "none", "opcode": "", "matrix_instructions": 0}


def _count(pattern: str, text: str) -> int:
    return len(re.findall(pattern, text))

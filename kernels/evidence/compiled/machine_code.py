"""Compile kernels ahead of time for chips that are not here, and read the machine code.

Runs in a child process in compiled mode (`kernels.evidence.child_process`); no GPU is needed. Triton is
told of a target by a stand-in driver, `kernel.warmup` compiles with tensors that have a shape and
no memory, and the disassembler from Triton's own wheel shows what came out.
"""

from __future__ import annotations

import collections
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from kernels.contract.targets import Target, occupancy
from kernels.contract.targets import target as find_target
from kernels.evidence.addresses import find
from kernels.evidence.compiled import listing, loops
from kernels.evidence.compiled.listing import Instruction
from kernels.evidence.stand_in import activate


def compile_requests(requests: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]] | Exception]:
    """Compile an experiment for a target, for each request: facts of each launch, or what went wrong.

    A request: {"experiment": "module:name", "target": "sm_90", "dtype": "bf16", "sizes": {...}, "plan":
    {...}}, the last to change what the experiment plans. Triton compiles once for all launches of this
    process that share a specialisation, and all is read at once.
    """
    answers: list[Any] = []
    made: dict[str, list[Any]] = {}  # target -> what was compiled for it
    for request in requests:
        try:
            answers.append(_compiled(request))
            made.setdefault(request["target"], []).extend(kernel for _, kernel in answers[-1])
        except Exception as error:  # noqa: BLE001 - the answer to this request, not to the others
            answers.append(error)
    facts = {name: iter(read_all(some, find_target(name))) for name, some in made.items()}
    return [
        answer
        if isinstance(answer, Exception)
        else [{"kernel": label, **next(facts[request["target"]])} for label, _ in answer]
        for request, answer in zip(requests, answers, strict=True)
    ]


def _compiled(request: dict[str, Any]) -> list[tuple[str, Any]]:
    """(label, compiled kernel) for each launch."""
    experiment = find(request["experiment"])
    target, dtype, sizes = find_target(request["target"]), request["dtype"], request["sizes"]
    plan = experiment.plan(**sizes, dtype=dtype, target=target)
    if request.get("plan"):
        plan = replace(plan, **request["plan"])
    activate(target)
    return [
        (
            launch.label or launch.kernel.__name__,
            launch.kernel.warmup(*launch.args, grid=launch.grid, **launch.options),
        )
        for launch in experiment.meta_launches(plan, dtype, **sizes)
    ]


def read(kernel: Any, target: Target) -> dict[str, Any]:
    """Facts of one compiled kernel: instruction, registers, spills, memory, occupancy, loops."""
    return read_all([kernel], target)[0]


_FACTS: dict[str, dict[str, Any]] = {}  # by what Triton calls a compilation


def read_all(kernels: Sequence[Any], target: Target) -> list[dict[str, Any]]:
    """`read` of each kernel, all compiled for `target`; the same code is read once."""
    new = {kernel.hash: kernel for kernel in kernels if kernel.hash not in _FACTS}
    if target.backend == "hip":
        found = [read_amd(kernel.asm["amdgcn"]) for kernel in new.values()]
    else:
        cubins = [kernel.asm["cubin"] for kernel in new.values()]
        codes = listing.disassemble(cubins, int(target.arch))
        found = [read_nvidia(_usage(cubin), code) for cubin, code in zip(cubins, codes, strict=True)]
    for (name, kernel), facts in zip(new.items(), found, strict=True):
        _FACTS[name] = facts | _resources(kernel, facts["registers"], target)
    return [_FACTS[kernel.hash] for kernel in kernels]


def _resources(kernel: Any, registers: int, target: Target) -> dict[str, Any]:
    """What Triton's metadata says it asks of the chip, and how many blocks live side by side then."""
    warps, shared = kernel.metadata.num_warps, kernel.metadata.shared
    columns = getattr(kernel.metadata, "tmem_size", 0) or 0
    fits = occupancy(target, registers=registers, shared_bytes=shared, warps=warps, tensor_columns=columns)
    return {
        "code": kernel.hash[:16],
        "shared_bytes": shared,
        "tensor_memory_columns": columns,
        "warps": warps,
        "stages": getattr(kernel.metadata, "num_stages", None),
        "blocks_per_sm": fits.blocks,
        "occupancy": fits.fraction,
        "limited_by": fits.limit,
    }


def _usage(cubin: bytes) -> str:
    """The resource table of a cubin, by the tool in Triton's wheel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return listing.call(listing.tool("cuobjdump"), "--dump-resource-usage", file.name)


def read_nvidia(usage: str, code: Sequence[Instruction]) -> dict[str, Any]:
    """Facts from cuobjdump's resource table and the instructions.

    spill_bytes: the stack of one thread. Triton's kernels have no other use for one.
    """
    registers, stack = map(int, re.search(r"REG:(\d+)\s+STACK:(\d+)", usage).groups())
    facts = _counted(code, "cuda")
    return facts | {"registers": registers, "spill_bytes": stack}


def read_amd(assembly: str) -> dict[str, Any]:
    """Facts from the assembly text of an AMD kernel and the metadata at its end.

    registers: vector registers a lane, accumulation registers included, as occupancy counts them.
    """

    def value(key: str) -> int:
        found = re.search(rf"\.{key}:\s+(\d+)", assembly)
        return int(found.group(1)) if found else 0

    return _counted(listing.read_amd(assembly), "hip") | {
        "registers": value("vgpr_count"),
        "scalar_registers": value("sgpr_count"),
        "spill_bytes": value("private_segment_fixed_size"),
        "spill_instructions": value("vgpr_spill_count") + value("sgpr_spill_count"),
    }


def _counted(code: Sequence[Instruction], backend: str) -> dict[str, Any]:
    """The matrix instruction, loads and spills of a whole kernel, and its loops."""
    counts = loops.count(loops.kinds(code, backend))
    facts: dict[str, Any] = {"instruction": "none", "opcode": "", "matrix_instructions": 0}
    for name, pattern in loops.MATRIX.items():
        found = [one.opcode for one in code if re.match(pattern, one.opcode)]
        if found:
            opcode, _ = collections.Counter(found).most_common(1)[0]
            facts = {"instruction": name, "opcode": opcode, "matrix_instructions": len(found)}
            break
    return facts | {
        "spill_instructions": counts["spills"],
        "wide_loads": counts["wide_loads"] + counts["wide_async_copies"],
        "loads": counts["loads"] + counts["async_copies"],
        "loops": [asdict(loop) for loop in loops.loops(code, backend)],
    }

"""The rung "compiled": what each chip is really asked to do, found out with no chip at hand.

`compiled.run(linear.experiment, m=256, k=4096, n=4096)` gives one row for each target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from book import catalog
from book.say import say
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS, Target
from kernels.contract.targets import target as find_target
from kernels.evidence import child_process
from kernels.evidence.addresses import address
from kernels.evidence.compiled.loops import Loop
from kernels.evidence.sweeps import described, sweep


@dataclass(frozen=True)
class Compiled:
    """One kernel compiled for one target. Sizes in bytes; registers and spills for one thread.

    instruction: "mma.sync", "wgmma", "tcgen05.mma", "mfma", or "none" for a kernel without a
    matrix product; opcode: the commonest such instruction in the listing. spill_bytes is 0 when
    every value stayed in registers. wide_loads of loads fetch 16 bytes at once. limited_by: what
    stops another block from living on the same multiprocessor. plan: what was put in place of the
    plan's own. code: names the machine code; rows with the same one run the same instructions. loops: see
    `loops.Loop`.
    """

    kernel: str
    target: str
    dtype: str
    instruction: str
    opcode: str
    matrix_instructions: int
    registers: int
    spill_bytes: int
    spill_instructions: int
    shared_bytes: int
    warps: int
    wide_loads: int
    loads: int
    blocks_per_sm: int
    occupancy: float
    limited_by: str
    stages: int | None = None
    tensor_memory_columns: int = 0
    scalar_registers: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    loops: tuple[Loop, ...] = ()

    @property
    def hot(self) -> Loop | None:
        """The innermost loop in which most is done: products first, then bytes that are asked for."""
        return max(
            (loop for loop in self.loops if loop.innermost),
            key=lambda loop: (loop.matrix_instructions, loop.async_copies + loop.loads, -loop.instructions),
            default=None,
        )

    @property
    def spills(self) -> bool:
        """Whether values had to leave the registers."""
        return bool(self.spill_bytes or self.spill_instructions)

    @property
    def fits(self) -> bool:
        """Whether at least one block can run there at all."""
        return self.blocks_per_sm > 0 and not self._shared_excess

    @property
    def _shared_excess(self) -> int:
        """Bytes of shared memory beyond what one block may have there."""
        return max(0, self.shared_bytes - find_target(self.target).max_shared_per_block)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with it as compiled, a sentence each with the remedy: it can't run, or it spills."""
        where = say(
            "{kernel} on {target} ({sizes}, {dtype})",
            kernel=self.kernel,
            target=self.target,
            sizes=described(self.sizes),
            dtype=self.dtype,
        )
        found = []
        if self._shared_excess:
            found.append(
                say(
                    "{where}: a block asks for {bytes:,} bytes of shared memory and may have {most:,}, so it "
                    "can't be launched; choose a smaller tile or fewer stages.",
                    where=where,
                    bytes=self.shared_bytes,
                    most=find_target(self.target).max_shared_per_block,
                )
            )
        elif not self.blocks_per_sm:
            found.append(
                say(
                    "{where}: a multiprocessor has too few {what} for one block of {warps} warps with "
                    "{registers} registers a thread; choose a smaller tile or fewer warps.",
                    where=where,
                    what=self.limited_by,
                    warps=self.warps,
                    registers=self.registers,
                )
            )
        if self.spills:
            found.append(
                say(
                    "{where}: {bytes} bytes of each thread leave its {registers} registers for memory; "
                    "choose a smaller tile, more warps or fewer stages, or allow more registers.",
                    where=where,
                    bytes=self.spill_bytes,
                    registers=self.registers,
                )
            )
        return tuple(found)

    def check(self) -> None:
        """Raise PhysicsDisagrees, with the first of `faults`, if there is one."""
        for fault in self.faults:
            raise PhysicsDisagrees(fault)


def run(
    experiment: Experiment,
    *,
    targets: Sequence[str] | None = None,
    dtype: str | None = None,
    **sizes: Any,
) -> tuple[Compiled, ...]:
    """Compile `experiment` for each target at each of these sizes; one row for each kernel.

    targets: names in `kernels.contract.targets.TARGETS`; by default all that can run the kernel. dtype: by
    default the experiment's first that the target has. One of `sizes` may be a list; sizes left
    out are those of the "compiled" sweep. Raises Unsupported for a dtype that a target lacks.
    """
    if targets is None:
        targets = targets_of(experiment, dtype)
    rows = sweep(experiment, "compiled", **sizes)
    return cases([(experiment, name, row) for name in targets for row in rows], dtype=dtype)


def cases(wanted: Iterable[tuple[Any, ...]], *, dtype: str | None = None) -> tuple[Compiled, ...]:
    """Compile each (experiment, target's name, sizes[, dtype[, plan]]) in one child process, in that order.

    dtype: where a case doesn't say its own; by default the experiment's first that the target has. plan:
    fields to put in place of those that the experiment's plan has there, {"num_stages": 2}.
    """
    asked = requests(wanted, dtype=dtype)
    answers = child_process.cached(asked, interpret=False)
    return tuple(
        _row(request, facts) for request, answer in zip(asked, answers, strict=True) for facts in answer
    )


def requests(wanted: Iterable[tuple[Any, ...]], *, dtype: str | None = None) -> list[dict[str, Any]]:
    """What `cases` asks the child process, for `child_process.ahead`."""
    found = []
    for experiment, name, sizes, *own in wanted:
        chip, kind = find_target(name), own[0] if own else dtype
        reason = why_not(experiment, chip, kind)
        if reason:
            raise Unsupported(reason)
        found.append(
            {
                "task": "compile",
                "experiment": address(experiment),
                "target": name,
                "dtype": kind or experiment.best_dtype(chip),
                "sizes": sizes,
                "plan": dict(own[1]) if own[1:] else {},
            }
        )
    return found


def _row(request: Mapping[str, Any], facts: Mapping[str, Any]) -> Compiled:
    found = tuple(Loop(**loop) for loop in facts["loops"])
    named = {name: request[name] for name in ("target", "dtype", "sizes", "plan")}
    return Compiled(**{**facts, **named, "loops": found})


def targets_of(experiment: Experiment, dtype: str | None = None) -> list[str]:
    """Names of the targets that `experiment` can be compiled for."""
    return [name for name in TARGETS if not why_not(experiment, find_target(name), dtype)]


def why_not(experiment: Experiment, target: Target, dtype: str | None = None) -> str:
    """Why `experiment` cannot be compiled for `target` in `dtype`: a sentence, or ""."""
    if not target.has_tensor_cores and experiment.unit == "matrix":
        card = catalog.accelerator(target.accelerator).short_name
        return say(
            "target = {target!r}: Triton emits no tensor-core code for it ({card}), so "
            "{experiment} is not compiled there; compile a bandwidth kernel, or choose sm_80 or "
            "later.",
            target=target.name,
            card=card,
            experiment=experiment.name,
        )
    return experiment.why_not(target, dtype)

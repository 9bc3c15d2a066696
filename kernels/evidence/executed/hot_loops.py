"""The loop in which a program spends its time: its instructions, and how often each is executed a turn.

Instructions of memory, tensor cores and synchronisation are told, and exponentials; of most of these PTX has
as many as the machine code (`tests/kernels/executed/test_static_counts.py` says of which). Arithmetic and
addresses are left out: NVIDIA's assembler merges them, and PTX says nothing of what is left. So are a warp's
own number, which `shfl.sync.idx` hands to its lanes and ptxas knows otherwise, and what only closes a group
of copies or products.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kernels.evidence.compiled.listing import Instruction as Jump
from kernels.evidence.compiled.loops import natural_loops
from kernels.evidence.executed.counts import Counts
from kernels.evidence.executed.ptx import CONTROL, WARP, Kernel

# What an instruction is for -> forms of that kind. The first that matches counts.
KINDS = {
    "copy": r"cp\.async\.c[ag]\..*",
    "load": r"ld\.global.*",
    "arrived": r"cp\.async\.wait_.*",
    "meet": r"bar(?:rier)?\.sync.*",
    "proxy": r"fence\.proxy.*",
    "feed": r"ldmatrix.*|ld\.shared.*",
    "product": r"(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)\..*",
    "products done": r"wgmma\.wait_group.*|mbarrier\.(?:try|test)_wait.*|tcgen05\.commit.*",
    "accumulators": r"tcgen05\.(?:ld|st|wait)\b.*",
    "exponential": r"ex2\..*",
    "exchange": r"shfl\.sync\.(?:bfly|up|down)\..*|redux\..*",
    "hand over": r"st\.shared.*|stmatrix.*",
    "store": r"st\.global.*",
    "atomic": r"(?:atom|red)\..*",
}
_WAITS = frozenset({"products done"})  # a loop of nothing else only waits
# Warps that execute one instruction between them (PTX ISA, "wgmma": a warpgroup is four warps).
TOGETHER = {"wgmma.mma_async": 4}


@dataclass(frozen=True)
class Step:
    """All instructions of one form in the loop that come from one line of the kernel.

    kind: of KINDS. where: "matmul.py:61". name: what the shape of its tile calls a product, else its form,
    of a wait with the number of groups that it leaves under way.
    count: instructions that one program executes in a turn, on average over all turns: each of its warps
    counts that has a thread for which the predicate holds.
    """

    kind: str
    where: str
    form: str
    name: str
    count: float


@dataclass(frozen=True)
class HotLoop:
    """turns: of one program, on average. warps: of a program. steps: in the order of the code."""

    turns: float
    warps: int
    steps: tuple[Step, ...]

    def of(self, *kinds: str) -> tuple[Step, ...]:
        """The steps of some of KINDS."""
        return tuple(step for step in self.steps if step.kind in kinds)

    def count(self, *kinds: str) -> float:
        """Instructions of these kinds that one program executes in a turn."""
        return sum(step.count for step in self.of(*kinds))


@functools.cache
def kind_of(form: str) -> str:
    """What an instruction is for: one of KINDS, or "" for arithmetic, addresses and the flow of control."""
    return next((kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, form)), "")


def hot_loop(kernel: Kernel, counts: Counts, programs: int) -> HotLoop | None:
    """The loop of a launch of so many programs in which most instructions that are told were executed.

    Loops inside it are not part of it, but for those that only wait. None for a launch without a loop.
    """
    kinds = [kind_of(one.form) for one in kernel.code]
    leaders = sorted(kernel.leaders | {0})

    def warps(place: int) -> int:
        """Those that executed it with at least one thread."""
        block = leaders[bisect_right(leaders, place) - 1]
        return counts.entered[block] - counts.idle[place]

    jumps = _jumps(kernel)
    bodies = [
        body
        for body in natural_loops(jumps)
        if any(kinds[place] and kinds[place] not in _WAITS for place in body)
    ]
    found = []
    for body in bodies:
        own = sorted(body.difference(*(other for other in bodies if other < body)))
        done = {place: warps(place) for place in own if kinds[place]}
        if weight := sum(done.values()):  # else it had no turn at these sizes
            found.append((weight, _entry(jumps, body), own, done))
    if not found:
        return None
    _, entry, own, done = max(found, key=lambda one: one[0])
    each = kernel.threads // WARP
    turns = warps(entry) / each  # of all programs
    begins = own.index(entry)
    around = {place: done[place] for place in [*own[begins:], *own[:begins]] if done.get(place)}
    return HotLoop(turns / programs, each, tuple(_steps(kernel, counts, around, turns)))


def _jumps(kernel: Kernel) -> list[Jump]:
    """The code as `natural_loops` reads it."""
    jumps = []
    for one in kernel.code:
        branch = one.form.startswith("bra") and one.form in CONTROL
        ends = (branch or one.form in ("ret", "exit")) and one.predicate is None
        jumps.append(Jump(one.form, kernel.labels[one.operands[0]] if branch else None, not ends))
    return jumps


def _entry(jumps: Sequence[Jump], body: frozenset[int]) -> int:
    """Where a loop is entered from outside; a natural loop has one such place."""
    return next(
        to
        for place, one in enumerate(jumps)
        if place not in body
        for to in (one.target, place + 1 if one.falls_through else None)
        if to in body
    )


def _steps(kernel: Kernel, counts: Counts, around: dict[int, int], turns: float) -> Iterable[Step]:
    alike: Counter[tuple[str, str]] = Counter()
    waits: dict[tuple[str, str], str] = {}  # with the number of groups that may stay under way
    for place, warps in around.items():
        one = kernel.code[place]
        alike[one.where, one.form] += warps
        if "wait_group" in one.form:
            waits[one.where, one.form] = f"{one.form} {one.operands[0]}"
    for (where, form), warps in alike.items():
        together = next((n for name, n in TOGETHER.items() if form.startswith(name)), 1)
        name = ", ".join(counts.labels.get((where, form), (waits.get((where, form), form),)))
        yield Step(kind_of(form), where, form, name, warps / turns / together)


def told(loop: HotLoop | None) -> dict[str, Any] | None:
    """As JSON has it; `read` is its inverse."""
    return None if loop is None else asdict(loop)


def read(told: dict[str, Any] | None) -> HotLoop | None:
    """What `told` made."""
    return told and HotLoop(**told | {"steps": tuple(Step(**step) for step in told["steps"])})

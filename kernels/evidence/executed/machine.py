"""The machine: a batch of programs in lockstep, and a launch, which is many batches.

A register is an array that broadcasts to [programs, threads]: a constant is (1, 1), a program's number
(programs, 1), a thread's (1, threads). It is replaced, never written into. `on` says which threads execute
an instruction, None for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed import (  # noqa: F401
    access,
    arithmetic,
    atomics,
    conversions,
    copies,
    matrix,
    tcgen05,
    warp,
    wgmma,
)
from kernels.evidence.executed.counts import Counts
from kernels.evidence.executed.formats import UINT, bits
from kernels.evidence.executed.global_races import GlobalRaces
from kernels.evidence.executed.groups import Groups
from kernels.evidence.executed.memory import POISON, GlobalMemory
from kernels.evidence.executed.ptx import WARP, WIDTH, Instruction, Kernel
from kernels.evidence.executed.races import SharedRaces
from kernels.evidence.executed.scheduler import SPINS, Scheduler

LANES = 8192  # threads of a batch: more of them bring no more speed
ATOM = 1024  # bytes; swizzles are of addresses, so each program's shared memory starts at a multiple
# Accesses that order programs.
ORDERING = re.compile(r"(?:ld|st|atom|red)\b.*\.(?:acquire|release|acq_rel)\b")
WAITED = 4_000  # turns of loops that watch memory which does not change
ORDERS = ("forward", "reverse", "random", "interleaved")


class Machine:
    """State of one batch. registers: see above; shared: uint8, of all programs one after another.

    programs: their numbers in the launch; program: their places in the batch; base: where the shared
    memory of each begins. now: the instruction that runs.
    """

    def __init__(
        self,
        kernel: Kernel,
        memory: GlobalMemory,
        programs: np.ndarray,
        grid: tuple[int, int, int],
        shared: int,
        arguments: dict[str, np.ndarray],
        counts: Counts | None,
        races: bool,
        global_races: GlobalRaces | None,
    ) -> None:
        self.kernel, self.memory, self.counts, self.global_races = kernel, memory, counts, global_races
        self.shape = (len(programs), kernel.threads)
        self.warps_each = kernel.threads // WARP
        self.programs = np.asarray(programs, np.int64)[:, None]
        self.program = np.arange(len(programs))[:, None]
        self.warp = (np.arange(kernel.threads) // WARP)[None]
        self.registers = [np.zeros((1, 1), bool if w == 1 else UINT[w]) for w in kernel.width.values()]
        self.size = -(-max(shared, 16) // ATOM) * ATOM
        self.shared = np.full(len(programs) * self.size, POISON, np.uint8)
        self.base = self.program.astype(np.int64) * self.size
        self.arguments, self.special = arguments, _special(kernel.threads, self.programs, grid)
        self.now: Instruction = kernel.code[0]
        self.found: dict[str, None] = {}
        self.inverted: dict[int, np.ndarray] = {}  # registers whose reciprocals there are, as they were then
        granule = _granule(kernel)
        tensor_cells = 4 * tcgen05.COLUMNS if any("tcgen05" in one.form for one in kernel.code) else 0
        self.races = (
            SharedRaces(len(programs), self.size, granule, self.report, tensor_cells) if races else None
        )
        # asynchronous work: copies and products on their way, and how many groups each program has closed
        self.copies: list[copies.Copy] = []
        self.copy_groups = Groups(len(programs))
        self.products: list[wgmma.Product] = []
        self.product_groups = Groups(len(programs))
        self.unready: frozenset[int] = frozenset()  # registers that something in flight will write
        self.tensor = tcgen05.TensorMemory(len(programs))
        self.yields = False  # somebody waits for others: let them run

    def report(self, what: str, why: str, count: int) -> None:
        """A race, in a sentence; the same one is kept once."""
        self.found[f"{what} by {why} ({count} cells)."] = None

    def full(self, values: np.ndarray) -> np.ndarray:
        """Values as [programs, threads]."""
        return values if values.shape == self.shape else np.broadcast_to(values, self.shape)

    def put(self, place: int, values: np.ndarray, on: np.ndarray | None) -> None:
        """A register's new values for the threads in `on`."""
        self.registers[place] = values if on is None else np.where(on, values, self.registers[place])

    def marks(self) -> np.ndarray:
        """Of each thread its program's epoch and its warp, as the race detectors have them."""
        return self.full(self.races.mark(self.program, self.warp))

    def threads(self, on: np.ndarray | None) -> np.ndarray:
        """`on` as a mask."""
        return np.ones(self.shape, bool) if on is None else on

    def active(self, on: np.ndarray | None) -> np.ndarray:
        """Which programs of the batch have a thread in `on`."""
        return np.ones(self.shape[0], bool) if on is None else on.any(1)

    def live_threads(self, on: np.ndarray | None) -> int:
        """How many threads are in `on`."""
        return self.shape[0] * self.shape[1] if on is None else int(on.sum())

    def warps(self, on: np.ndarray | None) -> int:
        """How many warps have a thread in `on`."""
        if on is None:
            return self.shape[0] * self.warps_each
        return int(on.reshape(-1, WARP).any(1).sum())


def _special(threads: int, programs: np.ndarray, grid: tuple[int, int, int]) -> dict[str, np.ndarray]:
    thread = np.arange(threads, dtype=np.uint32)[None]
    number = programs.astype(np.uint32)

    def constant(value: int) -> np.ndarray:
        return np.full((1, 1), value, np.uint32)

    found = {
        "%laneid": thread % np.uint32(WARP),
        "%warpid": thread // np.uint32(WARP),
        "global_smem": constant(0),
    }
    for i, axis in enumerate("xyz"):
        before = int(np.prod(grid[:i]))
        found[f"%tid.{axis}"] = thread if i == 0 else constant(0)
        found[f"%ntid.{axis}"] = constant(threads if i == 0 else 1)
        found[f"%ctaid.{axis}"] = number // np.uint32(before) % np.uint32(grid[i])
        found[f"%nctaid.{axis}"] = constant(grid[i])
    return found


def _granule(kernel: Kernel, space: str = "shared") -> int:
    """Bytes of the narrowest access to this memory, at most 4: what a cell of the race detector covers."""
    narrow = [
        WIDTH[one.form.rsplit(".", 1)[1]] // 8
        for one in kernel.code
        if one.form.startswith(("ld.", "st.", "atom.", "red.")) and f".{space}" in one.form
    ]
    return min([4, *narrow])


# ------------------------------------------------------------------------------------------ launch


@dataclass(frozen=True)
class Outcome:
    """What a launch left besides its results: counts (None if nobody counted) and races, in sentences."""

    counts: Counts | None
    races: tuple[str, ...]


def launch(
    kernel: Kernel,
    memory: GlobalMemory,
    grid: tuple[int, int, int],
    arguments: list[int | float],
    shared: int,
    *,
    order: str = "forward",
    seed: int = 0,
    batch: int | None = None,
    resident: int | None = None,
    count: bool = True,
    races: bool = True,
) -> Outcome:
    """Runs a decoded kernel over a grid; pointers among `arguments` are addresses in `memory`.

    shared: bytes of shared memory of a program. batch: programs in lockstep, by default what makes 8,192
    threads. resident: programs that a card holds at once, by default any number: where all that have begun
    wait, more begin, up to these. order: of programs, one of ORDERS; "interleaved" also lets single programs
    overtake each other between basic blocks, by `seed`. Raises CardRefuses for what a card would refuse, or
    never end, ValueError for an order that is none.
    """
    if order not in ORDERS:
        raise ValueError(f"order = {order!r}: choose one of {', '.join(ORDERS)}.")
    total = int(np.prod(grid))
    random, numbers = np.random.default_rng(seed), np.arange(total)
    if order == "reverse":
        numbers = numbers[::-1]
    elif order != "forward":
        numbers = random.permutation(total)
    values = {
        name: _argument(kind, value)
        for (kind, name), value in zip(kernel.parameters, arguments, strict=False)
    }
    counts, found = Counts() if count else None, {}
    across = None
    if races:
        across = GlobalRaces(
            memory.bytes.size,
            total,
            lambda what, why, n: found.setdefault(f"{what} by {why} ({n} cells)."),
            granule=_granule(kernel, "global"),
            ordered=any(ORDERING.match(one.form) for one in kernel.code),
        )
    held = min(resident or total, total)
    many = min(batch or max(1, LANES // kernel.threads), held)
    step = 1 if order == "interleaved" else many
    waiting, running, patience = list(numbers[::-1]), [], Patience(memory, total, held)
    while waiting or running:
        stuck = bool(running) and all(one.turns >= SPINS for one, _ in running)
        room = held - sum(one.resident for one, _ in running)
        while waiting and room and (stuck or len(running) < many // step):
            some = [waiting.pop() for _ in range(min(step, room, len(waiting)))]
            machine = Machine(kernel, memory, np.array(some), grid, shared, values, counts, races, across)
            one = Scheduler(machine)
            running.append((one, one.run()))
            room, stuck = room - len(some), False
        if stuck:
            patience.ask([one for one, _ in running], len(waiting))
        at = int(random.integers(len(running))) if order == "interleaved" and len(running) > 1 else 0
        one, blocks = running.pop(at)
        before = one.others
        with np.errstate(all="ignore"):
            ended = _turn(one, blocks, whole=order != "interleaved")
        if ended or one.others > before:
            for other, _ in running:
                other.turns = 0
        if ended:
            found |= one.machine.found
        else:  # whole batches have their turns one after another
            running.insert(at if order == "interleaved" else len(running), (one, blocks))
    return Outcome(counts, tuple(found))


def _turn(one: Scheduler, blocks: Iterator[None], whole: bool) -> bool:
    """Lets a batch run a basic block, or, `whole`, until it waits; whether it has ended."""
    if not whole:
        return next(blocks, blocks) is blocks
    one.turns = min(one.turns, SPINS)
    return all(one.turns <= 2 * SPINS for _ in blocks)


class Patience:
    """How long programs that all wait may do so while nothing in memory changes."""

    def __init__(self, memory: GlobalMemory, total: int, held: int) -> None:
        self.memory, self.total, self.held = memory, total, held
        self.since, self.before = 0, None

    def ask(self, running: list[Scheduler], left: int) -> None:
        """All of these wait, and `left` others can't begin. Raises CardRefuses if that is how it stays."""
        spun = sum(one.spun for one in running)
        if self.before is not None and 0 <= spun - self.since < max(WAITED, 6 * SPINS * len(running)):
            return
        if self.before is None or spun < self.since or not np.array_equal(self.before, self.memory.bytes):
            self.since, self.before = spun, self.memory.bytes.copy()
            return
        now = running[-1].machine.now
        if not left:
            raise CardRefuses(f"{now}: all programs that have not ended wait, and none is left to end that.")
        raise CardRefuses(
            f"{now}: programs wait for what none that has begun will do. If it is for those that have not, "
            f"this launch needs {self.total:,} programs at once; the card holds {self.held:,} at most (by "
            "shared memory, warps and blocks; what registers allow, PTX does not tell). Launch fewer "
            "programs, or wait for none that comes later."
        )


def _argument(kind: str, value: int | float) -> np.ndarray:
    if kind[0] == "f":
        return bits(np.full((1, 1), value), kind)
    return np.full((1, 1), int(value) & ((1 << WIDTH[kind]) - 1), UINT[WIDTH[kind]])

"""The rung "executed": the code that Triton compiles for a chip, run on this CPU.

`executed.run(linear.experiment, m=16, k=1024, n=1024)` gives one row for each target: whether the result is
right in the dtype that a card uses, which data races there are, and what the code asks of memory and tensor
cores. It knows no time: latencies, caches and the last bits of a tensor core's sums are not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from book.say import say
from kernels.contract.errors import CompilerAtFault, PhysicsDisagrees, Unsupported
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS, Target
from kernels.contract.targets import target as find_target
from kernels.contract.versions import installed
from kernels.evidence import child_process
from kernels.evidence.addresses import address
from kernels.evidence.executed import hot_loops
from kernels.evidence.executed.races import UNFENCED
from kernels.evidence.sweeps import sweep

EXECUTABLE = ("sm_80", "sm_90", "sm_100", "sm_120")  # whose instructions are known here and tried


@dataclass(frozen=True)
class Traffic:
    """Of one tensor in one direction: bytes asked for, requests of warps, 32-byte sectors they touch."""

    bytes: int
    requests: int
    sectors: int


@dataclass(frozen=True)
class Launch:
    """One launch. traffic: "load x" -> Traffic; the rest as in `counts.Counts`, summed over its programs.

    loop: where its programs spend their time; None if they have no loop.
    """

    label: str
    programs: int
    races: tuple[str, ...]
    traffic: Mapping[str, Traffic]
    wavefronts: int
    ideal_wavefronts: int
    barriers: int
    atomics: int
    tensor_flops: Mapping[str, int]
    special: Mapping[str, int]
    loop: hot_loops.HotLoop | None = None


@dataclass(frozen=True)
class Executed:
    """One experiment on one target at one size. relative_error: ||y - reference|| / ||reference||.

    compulsory_bytes: what has to cross the memory bus once, by the formula, not the execution.
    """

    experiment: str
    target: str
    dtype: str
    relative_error: float
    tolerance: float
    launches: tuple[Launch, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    compulsory_bytes: float = 0.0

    @property
    def races(self) -> tuple[str, ...]:
        """Every data race that the kernel could mend, in a sentence."""
        return tuple(race for race in self._races if UNFENCED not in race)

    @property
    def unfenced(self) -> tuple[str, ...]:
        """Every read by a tensor core of what was stored with no fence since: Triton has to set those."""
        return tuple(race for race in self._races if UNFENCED in race)

    @property
    def _races(self) -> tuple[str, ...]:
        return tuple(race for launch in self.launches for race in launch.races)

    @property
    def loop(self) -> hot_loops.HotLoop | None:
        """That of the launch with most programs' turns."""
        return max(
            (one for one in self.launches if one.loop),
            key=lambda one: one.programs * one.loop.turns,
            default=Launch("", 0, (), {}, 0, 0, 0, 0, {}, {}),
        ).loop

    @property
    def programs(self) -> int:
        """Of all its launches."""
        return sum(launch.programs for launch in self.launches)

    @property
    def tensor_flops(self) -> dict[str, int]:
        """FLOPs by tensor-core instruction."""
        found: dict[str, int] = {}
        for launch in self.launches:
            for name, flops in launch.tensor_flops.items():
                found[name] = found.get(name, 0) + flops
        return found

    def asked(self, what: str = "bytes", direction: str = "") -> int:
        """Bytes, requests or sectors that its warps ask for, of "load", "store" or "atomic" or of all."""
        return sum(
            getattr(traffic, what)
            for launch in self.launches
            for name, traffic in launch.traffic.items()
            if direction in ("", name.split()[0])
        )

    def total(self, what: str) -> int:
        """Wavefronts, ideal_wavefronts, barriers or atomics of all launches."""
        return sum(getattr(launch, what) for launch in self.launches)

    def check(self) -> None:
        """Raise PhysicsDisagrees where the result is wrong or programs or threads race.

        CompilerAtFault, a kind of it, where nothing else is wrong but that Triton left out a fence.
        """
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        where = f"{self.experiment} on {self.target} ({sizes}, {self.dtype})"
        if not self.relative_error <= self.tolerance:  # a NaN disagrees too
            raise PhysicsDisagrees(
                f"{where}: relative error {self.relative_error:.2g}, allowed {self.tolerance:.2g}: the "
                "compiled code computes something else than its reference."
            )
        if not self.launches:
            raise PhysicsDisagrees(f"{where}: nothing was started on the card, so nothing was executed.")
        if self.races:
            raise PhysicsDisagrees(f"{where}: {len(self.races)} data races, the first: {self.races[0]}")
        if self.unfenced:
            raise CompilerAtFault(
                f"{where}: Triton {installed('triton')} sets no fence.proxy.async between what threads store "
                "or copy into shared memory and the tensor core that reads it, so on a card the products may "
                "be of old numbers. Use Triton 3.9, in which no kernel of this book lacks one, or another "
                f"tile. The first of {len(self.unfenced)}: {self.unfenced[0]}"
            )


def run(
    experiment: Experiment,
    *,
    targets: Sequence[str] | None = None,
    dtype: str | None = None,
    order: str = "forward",
    tile_of: Mapping[str, int] | None = None,
    **sizes: Any,
) -> tuple[Executed, ...]:
    """Execute `experiment` for each target at each of these sizes.

    targets: by default those of EXECUTABLE that can run it. dtype: by default the experiment's first that
    the target has. order: of programs, see `machine.launch`. tile_of: see `cases`. One of `sizes` may be a
    list; sizes left out are those of the "counted" sweep. Raises Unsupported for a target or dtype that can't
    be executed.
    """
    if targets is None:
        targets = targets_of(experiment, dtype)
    rows = sweep(experiment, "counted", **sizes)
    own = (dtype, tile_of) if tile_of else (dtype,)
    return cases([(experiment, name, row, *own) for name in targets for row in rows], order=order)


def cases(
    wanted: Iterable[tuple[Any, ...]], *, dtype: str | None = None, order: str = "forward"
) -> tuple[Executed, ...]:
    """Execute each (experiment, target's name, sizes[, dtype[, tile_of]]) in one child, in that order.

    tile_of: other sizes; the tile is what they would have, so that large ones are tried on small tensors.
    """
    wanted = list(wanted)
    asked = requests(wanted, dtype=dtype, order=order)
    answers = child_process.cached(asked, interpret=False)
    return tuple(
        _row(experiment.key, request, answer)
        for (experiment, *_), request, answer in zip(wanted, asked, answers, strict=True)
    )


def requests(
    wanted: Iterable[tuple[Any, ...]], *, dtype: str | None = None, order: str = "forward"
) -> list[dict[str, Any]]:
    """What `cases` asks the child process, for `child_process.ahead`."""
    found = []
    for experiment, name, sizes, *own in wanted:
        chip, kind = find_target(name), own[0] if own and own[0] else dtype
        if reason := why_not(experiment, chip, kind):
            raise Unsupported(reason)
        found.append(
            {
                "task": "execute",
                "experiment": address(experiment),
                "target": name,
                "dtype": kind or experiment.best_dtype(chip),
                "sizes": sizes,
                "order": order,
                **({"tile_of": own[1]} if own[1:] else {}),
            }
        )
    return found


def _row(key: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> Executed:
    launches = tuple(
        Launch(
            **one
            | {
                "races": tuple(one["races"]),
                "traffic": {name: Traffic(**traffic) for name, traffic in one["traffic"].items()},
                "loop": hot_loops.read(one["loop"]),
            }
        )
        for one in answer["launches"]
    )
    return Executed(
        key,
        request["target"],
        request["dtype"],
        answer["relative_error"],
        answer["tolerance"],
        launches,
        request["sizes"],
        answer["compulsory_bytes"],
    )


def targets_of(experiment: Experiment, dtype: str | None = None) -> list[str]:
    """Names of the targets that `experiment` can be executed for."""
    return [name for name in EXECUTABLE if not why_not(experiment, TARGETS[name], dtype)]


def why_not(experiment: Experiment, target: Target, dtype: str | None = None) -> str:
    """Why `experiment` can't be executed for `target` in `dtype`: a sentence, or ""."""
    return not_executable(target) or experiment.why_not(target, dtype)


def not_executable(target: Target) -> str:
    """Why code for `target` can't be executed, whatever it computes: a sentence, or ""."""
    if target.name in EXECUTABLE:
        return ""
    return say(
        "target = {target!r}: its compiled code can't be executed here; choose {known}.",
        target=target.name,
        known=", ".join(EXECUTABLE),
    )

"""Counted evidence as plain rows, from this process or from a child in the interpreter's mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from book.say import say
from kernels.contract import devices
from kernels.contract.experiment import Experiment
from kernels.evidence import child_process, counted
from kernels.evidence.addresses import address, find
from kernels.evidence.counted import mistakes


@dataclass(frozen=True)
class CountedRow:
    """One size: what the formula says and what the kernel did. Bytes and FLOPs.

    formula_bytes: compulsory bytes by the experiment's cost. counted_bytes: distinct addresses
    that the kernel touched, workspace apart (if the formula lacks it). block_bytes, issued_bytes,
    sector_bytes, workspace_bytes: see `counted`. useful_flops: the formula's; issued_flops: those of
    whole tiles, and dot_flops those of tl.dot among them. programs, atomics: of all launches. exact:
    every tensor and every FLOP agreed, in both orders of the programs, and no two of them raced (a row
    that did not would have raised). extra: why bytes were asked for more than once, uneven: of which
    launches one program does most, in sentences.

    Of a kernel with a mistake counted_bytes are those of every launch (see `mistakes`), exact is False
    where they are not the formula's, and extra says which bytes are too many.
    """

    sizes: dict[str, int]
    dtype: str
    formula_bytes: int
    counted_bytes: int
    workspace_bytes: int
    block_bytes: int
    issued_bytes: int
    sector_bytes: int
    useful_flops: int
    issued_flops: int
    dot_flops: int
    programs: int
    atomics: int
    relative_error: float
    exact: bool
    extra: tuple[str, ...] = ()
    uneven: tuple[str, ...] = ()

    @property
    def intensity(self) -> float:
        """Useful FLOPs over counted compulsory bytes, FLOP/byte."""
        return self.useful_flops / self.counted_bytes

    @property
    def intensity_of_all(self) -> float:
        """Useful FLOPs over all counted bytes, workspace included, FLOP/byte."""
        return self.useful_flops / (self.counted_bytes + self.workspace_bytes)

    @property
    def padding(self) -> float | None:
        """Issued over useful FLOPs: what whole tiles cost; None where no FLOP is useful."""
        return self.issued_flops / self.useful_flops if self.useful_flops else None


def rows(
    experiment: Experiment,
    sizes: Sequence[dict[str, int]],
    dtype: str | None = None,
    mistaken: bool = False,
) -> tuple[CountedRow, ...]:
    """Count `experiment` at each of `sizes`; raises PhysicsDisagrees where a formula is wrong.

    mistaken: the experiment is one of a kernel with a mistake, so that only a wrong result raises.
    In a process whose kernels are compiled (a GPU machine) a child process does the counting.
    """
    if devices.MODE == "interpreted":
        return tuple(_row(experiment, one, dtype, mistaken) for one in sizes)
    case = {"task": "count", "experiment": address(experiment), "dtype": dtype, "mistaken": mistaken}
    requests = [case | {"sizes": one} for one in sizes]
    answers = child_process.run(requests, interpret=True)
    words = ("extra", "uneven")
    return tuple(CountedRow(**answer | {name: tuple(answer[name]) for name in words}) for answer in answers)


def why_not() -> str:
    """Why nothing can be counted on this machine: a sentence, or "" if it can."""
    if devices.MODE == "missing":
        return devices.why_not()
    # by the module, as ROCm's torch brings it in a distribution of another name
    found = {"triton": devices.triton.__version__, "numpy": version("numpy")}
    versions = [tuple(map(int, told.split(".")[:2])) for told in found.values()]
    if versions[0] < (3, 7) and versions[1] >= (2, 4):
        return say(
            "numpy {numpy} is too new for the interpreter of Triton {triton}: install numpy "
            "below 2.4, or Triton 3.7 or later.",
            numpy=found["numpy"],
            triton=found["triton"],
        )
    return ""


def count_request(request: dict[str, Any]) -> dict[str, Any]:
    """The child's side: one counted row as JSON can hold it."""
    return vars(_row(find(request["experiment"]), request["sizes"], request["dtype"], request["mistaken"]))


def _row(experiment: Experiment, sizes: dict[str, int], dtype: str | None, mistaken: bool) -> CountedRow:
    ran = counted.run(experiment, dtype=dtype, **sizes)
    (ran.check_result if mistaken else ran.check)(experiment)
    useful = experiment.formula(ran.dtype, **sizes)
    tiles = experiment.issued_by(ran.plan, ran.dtype, **sizes)
    # A score matrix that the formula itself has (unfused attention) is what that operation moves.
    workspace = tiles.workspace - {*useful.reads, *useful.writes}
    terms = [(name, t.unique) for group in (ran.reads, ran.writes) for name, t in group.items()]
    too_many: tuple[str, ...] | None = None
    if mistaken:
        terms = mistakes.by_launch(ran)
        too_many = mistakes.sentences(ran, useful, workspace)
    return CountedRow(
        sizes=dict(sizes),
        dtype=ran.dtype,
        formula_bytes=int(useful.bytes),
        counted_bytes=sum(size for name, size in terms if name not in workspace),
        workspace_bytes=sum(size for name, size in terms if name in workspace),
        block_bytes=ran.bytes("block"),
        issued_bytes=ran.bytes("issued"),
        sector_bytes=ran.bytes("sector"),
        useful_flops=int(useful.flops),
        issued_flops=ran.flops - int(tiles.workspace_flops),
        dot_flops=ran.dot_flops,
        programs=ran.programs,
        atomics=ran.atomics,
        relative_error=ran.relative_error,
        exact=not too_many,
        extra=ran.extra if too_many is None else too_many,
        uneven=ran.uneven,
    )

"""Counted on several ranks: what each reads, writes, computes and sends, against the formula of one.

    from kernels.ranks import linear
    per_rank.run(linear.row, ranks=2, m=16, k=1024, n=1024).check()

Every rank is a process. It holds its part of the inputs, runs the kernel in Triton's interpreter with
every access tallied, and does its collectives through gloo, counted as `kernels.ranks.collectives`
says: the payload, and what a ring sends of it. Where the system tells, what really left over the
sockets stands beside it: a third number, which no formula of ours has a hand in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from book import catalog
from book.cost import Cost
from kernels.contract import checks, devices
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence import child_process, counted
from kernels.evidence.addresses import address
from kernels.evidence.counted.counted_rows import why_not
from kernels.evidence.sweeps import described
from kernels.ranks import launch
from kernels.ranks.parallel import Parallel, answer


@dataclass(frozen=True)
class RankRow:
    """What one rank did. Bytes by tensor, each address once: reads, writes; sent, payload: see `Link`.

    flops: issued, padding included. wire: bytes that this rank's sockets really sent meanwhile, with
    gloo's own headers, or None where it can't be read. relative_error: of its part of the result.
    """

    rank: int
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    flops: int
    sent: Mapping[str, int]
    payload: Mapping[str, int]
    wire: int | None
    relative_error: float
    race: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of memory, read and written."""
        return sum(self.reads.values()) + sum(self.writes.values())


@dataclass(frozen=True)
class CountedRanks:
    """The rows of all ranks, and what each of them should be.

    formula: of one rank. issued: what one rank's plan issues, whole tiles. tolerance: of the result.
    """

    name: str
    sizes: Mapping[str, int]
    ranks: int
    dtype: str
    formula: Cost
    issued: Cost
    rows: tuple[RankRow, ...]
    tolerance: float

    def check(self) -> None:
        """Raise PhysicsDisagrees where programs race, or bytes, FLOPs or sent bytes aren't the formula's.

        Memory of each tensor to the byte; bytes sent of each tensor to the byte, of all ranks together
        where the tensor can't be cut equally; the result within `tolerance`.
        """
        for row in self.rows:
            if row.race:
                raise PhysicsDisagrees(f"{self._title(row.rank)}: {row.race}")
            for verb in ("reads", "writes"):
                expected = dict(getattr(self.formula, verb))
                expected |= {
                    t: s for t, s in getattr(self.issued, verb).items() if t in self.issued.workspace
                }
                self._equal(row.rank, verb, expected, getattr(row, verb))
            flops = self.issued.flops + self.issued.workspace_flops
            self._equal(row.rank, "does", {"FLOPs": flops}, {"FLOPs": row.flops})
            if not row.relative_error <= self.tolerance:  # a NaN disagrees too
                raise PhysicsDisagrees(
                    f"{self._title(row.rank)}: relative error {row.relative_error:.2g}, allowed "
                    f"{self.tolerance:.2g}: its part of the result is not that of the unsharded one."
                )
        self._check_sent()

    def _check_sent(self) -> None:
        piece = self.ranks * catalog.itemsize(self.dtype)
        names = {*self.formula.sent, *(name for row in self.rows for name in row.sent)}
        for name in sorted(names):
            share, sizes = self.formula.sent.get(name, 0), [row.sent.get(name, 0) for row in self.rows]
            if all(row.payload.get(name, 0) % piece == 0 for row in self.rows):
                for row, size in zip(self.rows, sizes, strict=True):
                    self._equal(row.rank, "sends", {name: share}, {name: size})
            else:  # it can't be cut equally, and one rank sends a number more than another
                self._equal(None, "all ranks send", {name: round(self.ranks * share)}, {name: sum(sizes)})

    def _equal(
        self, rank: int | None, verb: str, expected: Mapping[str, Any], got: Mapping[str, int]
    ) -> None:
        for name in sorted({*expected, *got}):
            want, have = expected.get(name, 0), got.get(name, 0)
            if want != have:
                raise PhysicsDisagrees(
                    f"{self._title(rank)}: {verb} {name}: expected {want:,} from the formula, "
                    f"counted {have:,}."
                )

    def _title(self, rank: int | None) -> str:
        where = "" if rank is None else f", rank {rank} of {self.ranks}"
        return f"{self.name} ({described(self.sizes)}, {self.dtype}{where})"


def run(
    parallel: Parallel, *, ranks: int = 2, dtype: str | None = None, timeout: float = 120, **sizes: int
) -> CountedRanks:
    """Run `parallel` once on `ranks` processes in the interpreter, and count each.

    dtype: by default the first of the experiment's that the interpreter computes correctly. timeout:
    seconds, see `launch.run`. Raises ValueError for sizes that are not the experiment's, or that can't
    be cut; RankFailed; NoRanks and NoTriton, with a sentence, where this platform has no
    torch.distributed or no Triton.
    """
    experiment = parallel.experiment
    if set(sizes) != set(experiment.sizes):
        raise ValueError(
            f"sizes = {sorted(sizes)}: {parallel.name} needs exactly {', '.join(experiment.sizes)}; give "
            "each of them one number."
        )
    checks.sizes(ranks=ranks, **sizes)
    if reason := why_not():
        raise devices.NoTriton(reason)
    dtype = dtype or counted.interpretable(experiment)
    itemsize, local = catalog.itemsize(dtype), parallel.local(ranks, **sizes)
    formula = parallel.cost(**sizes, ranks=ranks, itemsize=itemsize)
    plan = experiment.plan(**local, dtype=dtype, target=devices.STAND_IN)
    issued = experiment.issued_by(plan, dtype, **local)
    request = {"parallel": address(parallel), "sizes": sizes, "dtype": dtype}
    told = child_process.environment(interpret=True)
    answers = launch.run(
        f"{__name__}:count_request", request, ranks=ranks, timeout=timeout, backend="gloo", environment=told
    )
    rows = tuple(RankRow(**answer) for answer in answers)
    return CountedRanks(
        parallel.name, sizes, ranks, dtype, formula, issued, rows, experiment.tolerance(dtype)
    )


def count_request(request: dict[str, Any]) -> dict[str, Any]:
    """One rank's side: its counts, as JSON can hold them (see `RankRow`)."""
    with counted.count() as tally:
        known = answer(request)
    return {
        **{name: known[name] for name in ("rank", "sent", "payload", "wire", "relative_error")},
        "reads": {name: traffic.unique for name, traffic in tally.reads().items()},
        "writes": {name: traffic.unique for name, traffic in tally.writes().items()},
        "flops": tally.dot_flops + tally.alu_flops,
        "race": tally.race,
    }

"""The rung "counted": the kernel itself, run in Triton's interpreter, every byte and FLOP tallied.

    row = counted.run(linear.experiment, m=16, k=1024, n=1024)
    row.reads["w"].unique, row.dot_flops
    row.check(linear.experiment)          # raises PhysicsDisagrees where a formula is wrong

    with counted.count() as tally:        # or around any launches
        linear.linear(x, w)

Five byte counts for each tensor. *Unique*: each address once in all launches, the compulsory traffic
that the formulas give. *By launch*: each address once in each launch, what reaches memory if no cache
keeps anything from one launch to the next. *Block*: each address once in each load, if nothing is
kept between loads. DRAM moves something between the first and the last. *Issued*: every lane that asks.
*Sector*: block, in the whole 32-byte sectors that hardware moves. Masked-off lanes count nowhere.

An experiment runs twice: its programs in order, then in reverse. Both must give the same results and
the same counts, and no program may touch what another one of its launch writes, unless an atomic
orders them (`races`). The second run costs as much as the first. It is needed where programs meet in
atomics; where they don't, and no race is found, each program sees only what no other one changes, and
the order can't matter: then the second run tries the detector itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from kernels.contract import devices
from kernels.contract.accuracy import relative_error
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.experiment import Experiment
from kernels.evidence.counted import extra_traffic, orders
from kernels.evidence.counted.interpreter import Order, count
from kernels.evidence.counted.tally import Tally, Traffic

__all__ = ["Counted", "Tally", "Traffic", "count", "interpretable", "relative_error", "run"]


@dataclass(frozen=True)
class Counted:
    """What one run of an experiment moved and did. Bytes, FLOPs and programs of all its launches.

    plan: the tiles and splits that ran. dot_flops: 2mnk of every tl.dot on whole tiles. alu_flops:
    floating-point adds, subtracts and multiplies element by element, n - 1 for a tl.sum of n.
    sfu_ops: exponentials, roots, divisions and their like, which are in no FLOP count. atomics: lanes
    that changed memory by an atomic. relative_error: ||y - reference|| / ||reference|| in float64.
    race: the first race between two programs of a launch; disagreement: what came out differently when
    the programs ran in reverse; sentences, or "". extra: why bytes were asked for more than once, a
    sentence for each tensor; uneven: a sentence for each launch of which one program does most.
    """

    name: str
    sizes: Mapping[str, int]
    dtype: str
    plan: Any
    reads: Mapping[str, Traffic]
    writes: Mapping[str, Traffic]
    dot_flops: int
    alu_flops: int
    programs: int
    relative_error: float
    sfu_ops: int = 0
    atomics: int = 0
    race: str = ""
    disagreement: str = ""
    extra: tuple[str, ...] = ()
    uneven: tuple[str, ...] = ()

    @property
    def flops(self) -> int:
        """All FLOPs that were issued, padding included."""
        return self.dot_flops + self.alu_flops

    def bytes(self, kind: str = "unique") -> int:
        """Bytes read and written: kind is "unique", "block", "issued" or "sector"."""
        return sum(getattr(t, kind) for t in (*self.reads.values(), *self.writes.values()))

    def check(self, experiment: Experiment) -> None:
        """Raise PhysicsDisagrees unless no program races and every count equals the formula's, exactly.

        Unique bytes of each tensor equal `experiment.cost`, which equals its table of tensors; those of
        the workspace, and all FLOPs, equal `experiment.issued` for the plan that ran; the result is
        within `tolerance`.
        """
        self.check_result(experiment)
        useful = experiment.formula(self.dtype, **self.sizes)
        tiles = experiment.issued_by(self.plan, self.dtype, **self.sizes)
        table = experiment.compulsory(self.dtype, **self.sizes)
        for verb in ("reads", "writes"):
            counted, issued = getattr(self, verb), getattr(tiles, verb)
            expected = {name: issued[name] for name in issued if name in tiles.workspace}
            expected |= getattr(useful, verb)
            for name in sorted({*counted, *expected}):
                have = counted[name].unique if name in counted else 0
                self._equal(f"{verb} of {name}, bytes", expected.get(name, 0), have)
            own = {n: size for n, size in getattr(useful, verb).items() if n not in useful.workspace}
            for name in sorted({*own, *getattr(table, verb)}):
                by_formula, by_table = own.get(name, 0), getattr(table, verb).get(name, 0)
                self._equal(f"{verb} of {name}, bytes by the table of tensors", by_formula, by_table)
        self._equal("FLOPs issued", tiles.flops + tiles.workspace_flops, self.flops)

    def check_result(self, experiment: Experiment) -> None:
        """Raise PhysicsDisagrees where programs race, or where the result is not the reference's.

        It asks nothing of bytes and FLOPs: that is all that holds of a kernel with a mistake.
        """
        for wrong in filter(None, (self.race, self.disagreement)):
            raise PhysicsDisagrees(f"{self._title()}: {wrong}")
        allowed = experiment.tolerance(self.dtype)
        if not self.relative_error <= allowed:  # a NaN disagrees too
            raise PhysicsDisagrees(
                f"{self._title()}: relative error {self.relative_error:.2g}, allowed {allowed:.2g}: "
                "the kernel computes something else than its reference."
            )

    def _equal(self, what: str, expected: int, counted: int) -> None:
        if expected != counted:
            raise PhysicsDisagrees(
                f"{self._title()}: {what}: expected {expected:,} from the formula, counted {counted:,}."
            )

    def _title(self) -> str:
        return f"{self.name} ({', '.join(f'{k} = {v}' for k, v in self.sizes.items())}, {self.dtype})"


def run(experiment: Experiment, *, dtype: str | None = None, **sizes: int) -> Counted:
    """Run `experiment` at these sizes in the interpreter, in two orders of its programs, and count.

    dtype: by default the first of the experiment's that the interpreter computes correctly. Raises
    RuntimeError where kernels are compiled (use `kernels.evidence.child_process` there), ValueError for
    sizes that the experiment does not have.
    """
    if set(sizes) != set(experiment.sizes):
        raise ValueError(
            f"sizes = {sorted(sizes)}: {experiment.name} needs exactly {', '.join(experiment.sizes)}; "
            "give each of them one number."
        )
    dtype = dtype or interpretable(experiment)
    inputs = experiment.inputs(**sizes, dtype=dtype, device="cpu", seed=0)
    expected = experiment.expected(inputs)
    tally, results = _in_order(experiment, inputs, "in order")
    inputs = experiment.inputs(**sizes, dtype=dtype, device="cpu", seed=0)  # some are written in place
    again, reversed_results = _in_order(experiment, inputs, "reversed")
    names = [name for name, tensor in experiment.tensors.items() if tensor.written]
    allowed = experiment.tolerance(dtype) if tally.atomics else 0.0
    return Counted(
        name=experiment.name,
        sizes=MappingProxyType(dict(sizes)),
        dtype=dtype,
        plan=experiment.plan(**sizes, dtype=dtype, target=devices.this_chip()),
        reads=MappingProxyType(tally.reads()),
        writes=MappingProxyType(tally.writes()),
        dot_flops=tally.dot_flops,
        alu_flops=tally.alu_flops,
        programs=tally.programs,
        relative_error=relative_error(results, expected),
        sfu_ops=tally.sfu_ops,
        atomics=tally.atomics,
        race=tally.race or again.race,
        disagreement=orders.results_differ(names, results, reversed_results, allowed)
        or orders.counts_differ(tally, again),
        extra=extra_traffic.sentences(tally),
        uneven=tally.balance.sentences(),
    )


def _in_order(
    experiment: Experiment, inputs: Mapping[str, Any], order: Order
) -> tuple[Tally, tuple[torch.Tensor, ...]]:
    with count(inputs, order) as tally:
        return tally, experiment.results(inputs)


def interpretable(experiment: Experiment) -> str:
    """Its first dtype that the interpreter computes rightly. Raises Unsupported for bf16 alone."""
    for dtype in experiment.dtypes:
        if experiment.operands(dtype) != "bf16":
            return dtype
    raise Unsupported(
        f"{experiment.name} runs in {', '.join(experiment.dtypes)}: Triton's interpreter multiplies bf16 "
        "wrongly, so nothing is counted; give it fp16 as well, which moves the same bytes."
    )

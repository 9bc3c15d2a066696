"""Two runs of one experiment whose programs ran in different orders: what they disagree on.

No program of a right kernel depends on which of the others ran before it, so results are equal bit
for bit, and so is every count. The one exception: atomics that add floating-point numbers round
differently in another order. Then the results may differ by what the experiment allows against its
reference, since each of the two may be that far from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from book.say import say
from kernels.contract.accuracy import relative_error
from kernels.evidence.counted.tally import Tally


def results_differ(
    names: Sequence[str],
    first: Sequence[torch.Tensor],
    second: Sequence[torch.Tensor],
    allowed: float,
) -> str:
    """The first tensor and element that two orders leave different, as a sentence; "" if none.

    names: of the tensors. allowed: 0 for bit by bit, else ||first - second|| / ||first||.
    """
    for name, mine, theirs in zip(names, first, second, strict=True):
        differ = _bits(mine) != _bits(theirs)
        if not differ.any() or (allowed and relative_error(theirs, mine) <= allowed):
            continue
        index = tuple(int(i) for i in torch.nonzero(differ)[0])
        return say(
            "{tensor}[{index}] is {mine:.6g} when the programs run in order, and {theirs:.6g} when they run "
            "in reverse; {count:,} of the {all:,} numbers differ: what one program needs, another one makes.",
            tensor=name,
            index=", ".join(map(str, index)),
            mine=mine[index].double().item(),
            theirs=theirs[index].double().item(),
            count=int(differ.sum()),
            all=differ.numel(),
        )
    return ""


def counts_differ(first: Tally, second: Tally) -> str:
    """The first count that two orders give differently, as a sentence; "" if none."""
    mine, theirs = _counts(first), _counts(second)
    for what in {**mine, **theirs}:
        if mine.get(what, 0) != theirs.get(what, 0):
            return say(
                "{what}: {mine:,} when the programs run in order, and {theirs:,} when they run in reverse: "
                "what a program does depends on which of the others ran before it.",
                what=what,
                mine=mine.get(what, 0),
                theirs=theirs.get(what, 0),
            )
    return ""


def _counts(tally: Tally) -> dict[str, int]:
    """Every count by the words for it."""
    counts = {}
    for name, traffic in tally.reads().items():
        for kind, size in vars(traffic).items():
            counts[say("{kind} bytes read of {tensor}", kind=kind.replace("_", " "), tensor=name)] = size
    for name, traffic in tally.writes().items():
        for kind, size in vars(traffic).items():
            counts[say("{kind} bytes written of {tensor}", kind=kind.replace("_", " "), tensor=name)] = size
    return {
        **counts,
        say("programs"): tally.programs,
        say("FLOPs of products"): tally.dot_flops,
        say("other FLOPs"): tally.alu_flops,
        say("special functions"): tally.sfu_ops,
        say("atomics"): tally.atomics,
    }


def _bits(x: torch.Tensor) -> torch.Tensor:
    """The bits of each number: NaN is equal to itself, and 0 is not -0."""
    size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    return x.contiguous().view(size)

"""What a kernel with a mistake moved too much: launch by launch, tensor by tensor, against the formula.

The bytes of each launch are counted as if no cache kept anything from the launch before: a weight of
many gigabytes that two launches read crosses the memory's wires twice. The right kernels move the
same by this count as by the other: none of their launches reads what another has read.
"""

from __future__ import annotations

from collections.abc import Collection

from book.cost import Cost
from book.say import say
from kernels.evidence.counted import Counted

SENTENCES = 3  # at most: the tensors that weigh most


def by_launch(ran: Counted) -> list[tuple[str, int]]:
    """(tensor, bytes) of everything that was read or written, each address once in each launch."""
    return [
        (whole(name), traffic.by_launch)
        for group in (ran.reads, ran.writes)
        for name, traffic in group.items()
    ]


def whole(name: str) -> str:
    """The tensor that a part of it belongs to: counting calls parts x, x', x''."""
    return name.rstrip("'")


def sentences(ran: Counted, useful: Cost, workspace: Collection[str]) -> tuple[str, ...]:
    """A sentence for each tensor whose bytes are not the formula's, most bytes first; none if all are.

    workspace: tensors that are no part of the mistake.
    """
    moved = {verb: _sum(getattr(ran, verb), workspace) for verb in ("reads", "writes")}
    off: list[tuple[int, str]] = []
    for name in sorted({*moved["reads"], *moved["writes"]}):
        read, written = (moved[verb].get(name, 0) for verb in ("reads", "writes"))
        due = [int(getattr(useful, verb).get(name, 0)) for verb in ("reads", "writes")]
        if [read, written] != due:
            off.append((read + written - sum(due), _sentence(name, read, written, *due)))
    return tuple(words for _, words in sorted(off, key=lambda one: -one[0])[:SENTENCES])


def _sum(traffic: dict, workspace: Collection[str]) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, one in traffic.items():
        if whole(name) not in workspace:
            total[whole(name)] = total.get(whole(name), 0) + one.by_launch
    return total


def _sentence(name: str, read: int, written: int, reads_due: int, writes_due: int) -> str:
    if not reads_due and not writes_due:
        return say(
            "{tensor}: {written:,} bytes written and {read:,} read, where the formula has no such tensor.",
            tensor=name,
            written=written,
            read=read,
        )
    if read != reads_due and written != writes_due:
        return say(
            "{tensor}: {read:,} bytes read and {written:,} written, where the formula has {reads:,} and "
            "{writes:,}.",
            tensor=name,
            read=read,
            written=written,
            reads=reads_due,
            writes=writes_due,
        )
    if read == reads_due:
        return say(
            "{tensor}: {times:.4g} times as many bytes written as the formula has.",
            tensor=name,
            times=written / writes_due,
        )
    if not reads_due:
        return say("{tensor}: {read:,} bytes read, where the formula reads none.", tensor=name, read=read)
    return say(
        "{tensor}: {times:.4g} times as many bytes read as the formula has.",
        tensor=name,
        times=read / reads_due,
    )
